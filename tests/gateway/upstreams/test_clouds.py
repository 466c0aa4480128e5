"""Upstreams at clouds: however an operator writes their address, every path is asked where the cloud has it."""

import pytest

from everlong.errors import InputError, Refused
from everlong.gateway.clients import Client
from everlong.gateway.config import GatewayConfig, UpstreamTable
from everlong.gateway.surfaces import AZURE, BEDROCK, VERTEX
from everlong.gateway.upstreams.headers import headers_for
from everlong.gateway.upstreams.providers import routes_from
from everlong.gateway.upstreams.routing import Upstream
from everlong.wire import classify

CHAT, RESPONSES, ANTHROPIC = "openai-chat", "openai-responses", "anthropic"
RESOURCES = (
    "https://me.openai.azure.com",
    "https://me.cognitiveservices.azure.com",
    "https://me.services.ai.azure.com",
    "https://me.openai.azure.us",
    "https://eastus.api.cognitive.microsoft.com",
)


def only_upstream(where: str, **environment: str) -> Upstream:
    [upstream] = routes_from(GatewayConfig(upstream=where), environment).upstreams
    return upstream


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize("written", ["", "/", "/openai", "/openai/", "/openai/v1", "/openai/v1/", "/v1"])
def test_an_azure_resource_may_be_written_as_people_do(resource: str, written: str) -> None:
    upstream = only_upstream(resource + written)
    assert upstream.address("/v1") == f"{resource}/openai/v1", "a client of plain OpenAI"
    assert upstream.address("/openai/v1") == f"{resource}/openai/v1"
    assert upstream.address("/openai") == f"{resource}/openai", "deployments"
    assert upstream.address("/anthropic/v1") == f"{resource}/anthropic/v1"
    assert upstream.address("") == resource
    assert upstream.endpoint.provider == AZURE


@pytest.mark.parametrize(
    ("written", "usual"),
    [
        ("https://me.services.ai.azure.com/anthropic", "https://me.services.ai.azure.com/anthropic/v1"),
        ("https://me.services.ai.azure.com/anthropic/v1", "https://me.services.ai.azure.com/anthropic/v1"),
        ("https://me.services.ai.azure.com/models", "https://me.services.ai.azure.com/models"),
        (
            "https://me.services.ai.azure.com/api/projects/p",
            "https://me.services.ai.azure.com/api/projects/p/openai/v1",
        ),
        ("https://europe-west1-aiplatform.googleapis.com", "https://europe-west1-aiplatform.googleapis.com/v1"),
        ("https://aiplatform.googleapis.com/v1beta1", "https://aiplatform.googleapis.com/v1"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "https://bedrock-runtime.us-east-1.amazonaws.com/v1"),
        (
            "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",
            "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",
        ),
    ],
)
def test_where_plain_paths_are_at_other_addresses(written: str, usual: str) -> None:
    assert only_upstream(written).address("/v1") == usual


@pytest.mark.parametrize(
    ("where", "base", "address"),
    [
        (
            "https://us-east5-aiplatform.googleapis.com",
            "/v1beta1",
            "https://us-east5-aiplatform.googleapis.com/v1beta1",
        ),
        ("https://us-east5-aiplatform.googleapis.com/v1", "/v1", "https://us-east5-aiplatform.googleapis.com/v1"),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com", "", "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        ("http://proxy.example/azure/openai", "/openai/v1", "http://proxy.example/azure/openai/v1"),
        ("http://proxy.example/azure/openai/v1", "/openai", "http://proxy.example/azure/openai"),
        ("http://proxy.example/azure", "/openai", "http://proxy.example/azure/openai"),
        ("http://proxy.example", "", "http://proxy.example"),
        ("openai", "/openai/v1", "https://api.openai.com/v1"),
        ("anthropic", "/anthropic/v1", "https://api.anthropic.com/v1"),
        ("groq", "/openai/v1", "https://api.groq.com/openai/v1"),
    ],
)
def test_where_the_paths_of_clouds_are(where: str, base: str, address: str) -> None:
    assert only_upstream(where).address(base) == address


@pytest.mark.parametrize(
    ("name", "environment", "url", "key"),
    [
        (
            "azure",
            {"AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com/", "AZURE_OPENAI_API_KEY": "k-1"},
            "https://me.openai.azure.com/openai/v1",
            "k-1",
        ),
        ("vertex", {"CLOUD_ML_REGION": "us-east5"}, "https://us-east5-aiplatform.googleapis.com/v1", ""),
        ("google-vertex", {"CLOUD_ML_REGION": "global"}, "https://aiplatform.googleapis.com/v1", ""),
        ("vertex", {"CLOUD_ML_REGION": "eu"}, "https://aiplatform.eu.rep.googleapis.com/v1", ""),
        (
            "bedrock",
            {"AWS_REGION": "us-west-2", "AWS_BEARER_TOKEN_BEDROCK": "b-1"},
            "https://bedrock-runtime.us-west-2.amazonaws.com/v1",
            "b-1",
        ),
    ],
)
def test_a_cloud_by_name_is_where_the_variables_of_its_sdks_say(
    name: str, environment: dict[str, str], url: str, key: str
) -> None:
    upstream = only_upstream(name, **environment)
    assert (upstream.endpoint.url, upstream.endpoint.key) == (url, key)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("azure", "https://RESOURCE.openai.azure.com"),
        ("azure-openai", "https://RESOURCE.openai.azure.com"),
        ("vertex", "https://REGION-aiplatform.googleapis.com"),
        ("bedrock", "https://bedrock-runtime.REGION.amazonaws.com"),
        ("https://me.openai.azure.com/openai/deployments/gpt-4o", "an Azure upstream without a deployment"),
        ("https://me.openai.azure.com/openai/deployments/gpt-4o/chat/completions", "https://RESOURCE.openai.azure.com"),
    ],
)
def test_an_address_that_does_not_say_enough_is_told_what_to_write(written: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        only_upstream(written)


TWO = GatewayConfig(
    upstreams=(
        UpstreamTable(url="anthropic"),
        UpstreamTable(url="https://me.openai.azure.com", name="azure"),
        UpstreamTable(url="https://us-east5-aiplatform.googleapis.com", name="vertex"),
        UpstreamTable(url="https://bedrock-runtime.us-east-1.amazonaws.com", name="bedrock"),
    )
)


@pytest.mark.parametrize(
    ("model", "fmt", "cloud", "name"),
    [
        ("claude-opus-4-5", ANTHROPIC, "", "api.anthropic.com"),
        ("claude-opus-4-5@20251101", ANTHROPIC, VERTEX, "vertex"),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", ANTHROPIC, BEDROCK, "bedrock"),
        ("my-deployment", CHAT, AZURE, "azure"),
        ("my-deployment", CHAT, "", "azure"),
        ("my-deployment", RESPONSES, AZURE, "azure"),
        ("meta/llama-3", CHAT, VERTEX, "vertex"),
    ],
)
def test_paths_of_a_cloud_go_to_that_cloud_and_nowhere_else(model: str, fmt: str, cloud: str, name: str) -> None:
    routes = routes_from(TWO, {})
    found = routes.choose(model, fmt, cloud).name
    assert found == ("anthropic" if name == "api.anthropic.com" else name)
    if cloud:
        assert routes.default(fmt, cloud).name == name


def test_a_known_provider_is_never_asked_below_the_paths_of_a_cloud() -> None:
    routes = routes_from(GatewayConfig(upstream="openai"), {})
    with pytest.raises(Refused, match="azure") as refused:
        routes.choose("my-deployment", CHAT, AZURE)
    assert refused.value.status == 404


@pytest.mark.parametrize(
    ("where", "client", "expected"),
    [
        ("https://me.openai.azure.com", b"authorization", ("api-key", "own")),
        ("https://me.openai.azure.com", b"api-key", ("api-key", "own")),
        ("https://me.services.ai.azure.com/anthropic", b"x-api-key", ("x-api-key", "own")),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", b"x-api-key", ("authorization", "Bearer own")),
        ("https://us-east5-aiplatform.googleapis.com", b"x-api-key", ("authorization", "Bearer own")),
        ("http://proxy.example/azure", b"api-key", ("api-key", "own")),
        ("http://proxy.example/azure", b"authorization", ("authorization", "Bearer own")),
    ],
)
def test_a_key_of_its_own_is_sent_as_the_cloud_reads_it(where: str, client: bytes, expected: tuple[str, str]) -> None:
    config = GatewayConfig(upstreams=(UpstreamTable(url=where, key="own"),))
    [upstream] = routes_from(config, {}).upstreams
    headers = headers_for(upstream, Client(scope="s", key="theirs"), [(client, b"theirs")])
    assert [(name, value) for name, value in headers.items() if name != "accept-encoding"] == [expected]


FILTERED = (
    '{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI\'s content management '
    "policy. Please modify your prompt and retry. To learn more about our content filtering policies please read our "
    'documentation: https://go.microsoft.com/fwlink/?linkid=2198766","type":null,"param":"prompt","code":'
    '"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":'
    '{"filtered":true,"severity":"high"},"jailbreak":{"filtered":false,"detected":false},"self_harm":{"filtered":false,'
    '"severity":"safe"},"sexual":{"filtered":false,"severity":"safe"},"violence":{"filtered":false,"severity":"safe"}}}}}'
)


def test_a_filtered_prompt_is_no_overflow() -> None:
    assert not classify(FILTERED, status=400).smaller_may_pass
