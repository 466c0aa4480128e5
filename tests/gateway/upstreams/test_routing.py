"""Which upstream answers for a model."""

from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, strategies as st

from everlong.errors import InputError, Refused
from everlong.gateway.config import GatewayConfig, KeyTable, UpstreamTable, load_config
from everlong.gateway.surfaces import FORMATS
from everlong.gateway.upstreams.providers import PROVIDERS, routes_from
from everlong.gateway.upstreams.routing import Routes, Upstream
from everlong.llm import KNOWN, Endpoint

CHAT, RESPONSES, ANTHROPIC, GEMINI = "openai-chat", "openai-responses", "anthropic", "gemini"
USUAL = (CHAT, RESPONSES, ANTHROPIC)
EVERYTHING = tuple(FORMATS)
OWN_KEYS = (KeyTable(name="a", hash="ab" * 32),)


def upstream(name: str, *models: str, formats: tuple[str, ...] = EVERYTHING) -> Upstream:
    return Upstream(name=name, endpoint=Endpoint(url=f"http://{name}/v1"), models=models or ("*",), formats=formats)


ROUTES = Routes(
    [
        upstream("claude", "claude-*", formats=(ANTHROPIC,)),
        upstream("small", "*-mini", "o[1-9]*"),
        upstream("openai", "gpt-*", formats=(CHAT, RESPONSES)),
        upstream("vendor", "vendor/*", formats=(CHAT,)),
    ],
    stripping=frozenset({"openai"}),
)


@pytest.mark.parametrize(
    ("model", "fmt", "name"),
    [
        ("claude-opus-4-5", ANTHROPIC, "claude"),
        ("Claude-Opus", ANTHROPIC, "claude"),
        ("gpt-5-mini", CHAT, "small"),
        ("o3", ANTHROPIC, "small"),
        ("gpt-5", RESPONSES, "openai"),
        ("GPT-5", CHAT, "openai"),
        ("openai/anything", CHAT, "openai"),
        ("OpenAI/gpt-5-mini", CHAT, "openai"),
        ("claude/gpt-5-mini", CHAT, "small"),
        ("small/x/y", ANTHROPIC, "small"),
        ("vendor/x", CHAT, "vendor"),
    ],
)
def test_the_first_that_speaks_the_format_and_knows_the_model(model: str, fmt: str, name: str) -> None:
    assert ROUTES.choose(model, fmt).name == name


@pytest.mark.parametrize(
    ("model", "fmt"), [("llama", CHAT), ("", CHAT), ("claude-opus", CHAT), ("http://evil/gpt", CHAT), ("vendor", CHAT)]
)
def test_an_unknown_model_is_refused_with_the_patterns(model: str, fmt: str) -> None:
    with pytest.raises(Refused) as refused:
        ROUTES.choose(model, fmt)
    assert (refused.value.status, refused.value.kind) == (404, "unknown_model")
    assert "*-mini, o[1-9]*, gpt-*, vendor/*" in str(refused.value)


def test_a_refusal_repeats_little_of_a_long_name() -> None:
    with pytest.raises(Refused) as refused:
        ROUTES.choose("x\n" * 100_000, CHAT)
    assert len(str(refused.value)) < 500
    assert "\n" not in str(refused.value)


def test_without_a_model_the_first_that_speaks_the_format() -> None:
    assert ROUTES.default(ANTHROPIC).name == "claude"
    assert ROUTES.default(CHAT).name == "small"
    with pytest.raises(Refused, match="supports anthropic"):
        Routes([upstream("one", formats=(CHAT,))]).default(ANTHROPIC)
    with pytest.raises(Refused, match="supports anthropic"):
        Routes([upstream("one", formats=(CHAT,))]).choose("claude-1", ANTHROPIC)


@pytest.mark.parametrize(
    ("name", "model", "sent"),
    [
        ("openai", "openai/gpt-5", "gpt-5"),
        ("openai", "OpenAI/gpt-5", "gpt-5"),
        ("openai", "gpt-5", "gpt-5"),
        ("openai", "openai/", "openai/"),
        ("openai", "other/gpt-5", "other/gpt-5"),
        ("vendor", "vendor/x", "vendor/x"),
    ],
)
def test_the_prefix_goes_where_the_upstream_wants_none(name: str, model: str, sent: str) -> None:
    chosen = next(one for one in ROUTES.upstreams if one.name == name)
    assert ROUTES.model_sent(chosen, model) == sent


@given(st.text(max_size=60), st.sampled_from(EVERYTHING))
def test_no_name_of_a_model_leads_to_another_host(model: str, fmt: str) -> None:
    try:
        chosen = ROUTES.choose(model, fmt)
    except Refused:
        return
    assert chosen in ROUTES.upstreams


# --- from the environment ----------------------------------------------------------------------


def where(routes: Routes, model: str, fmt: str) -> tuple[str, str]:
    chosen = routes.choose(model, fmt)
    return chosen.endpoint.url, chosen.endpoint.key


def test_every_known_provider_has_a_row() -> None:
    assert set(PROVIDERS) == set(KNOWN)
    for name, known in PROVIDERS.items():
        assert known.models, name
        assert set(known.formats) <= set(EVERYTHING), name


def test_a_provider_without_a_row_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "https://models.example/v1"
    monkeypatch.setitem(cast("dict[str, tuple[str, str, str]]", KNOWN), "newcomer", (address, CHAT, "NEWCOMER_KEY"))
    with pytest.raises(InputError, match="of newcomer: use its address instead"):
        routes_from(GatewayConfig(upstream="newcomer"), {})
    assert routes_from(GatewayConfig(upstream=address), {}).default(CHAT).endpoint.provider == "newcomer"


def test_one_address_for_everything_is_asked_in_every_format() -> None:
    (only,) = routes_from(GatewayConfig(upstream="http://127.0.0.1:9/v1"), {}).upstreams
    assert only.formats == EVERYTHING


def test_without_anything_clients_reach_the_makers_with_their_own_keys() -> None:
    routes = routes_from(GatewayConfig(), {})
    assert where(routes, "claude-x", ANTHROPIC) == ("https://api.anthropic.com/v1", "")
    assert where(routes, "claude-x", CHAT) == ("https://api.openai.com/v1", "")
    assert where(routes, "anything", RESPONSES) == ("https://api.openai.com/v1", "")
    assert where(routes, "llama3.2", "ollama") == ("http://127.0.0.1:11434/v1", "")
    google = routes.choose("anything", GEMINI)
    assert (google.name, google.endpoint.key) == ("google", "")
    assert google.address("/v1beta") == "https://generativelanguage.googleapis.com/v1beta"
    assert google.address("/v1alpha") == "https://generativelanguage.googleapis.com/v1alpha"


KEYS = {
    "ANTHROPIC_API_KEY": "k-anthropic\n",
    "OPENAI_API_KEY": "k-openai",
    "GEMINI_API_KEY": "k-google",
    "DEEPSEEK_API_KEY": "k-deepseek",
    "MOONSHOT_API_KEY": "k-moonshotai",
    "DASHSCOPE_API_KEY": "k-alibaba",
    "ZHIPU_API_KEY": "k-zhipuai",
    "XAI_API_KEY": "k-xai",
    "MISTRAL_API_KEY": "k-mistral",
    "GROQ_API_KEY": "k-groq",
    "OPENROUTER_API_KEY": "k-openrouter",
}


@pytest.mark.parametrize(
    ("model", "fmt", "name"),
    [
        ("claude-opus-4-5", ANTHROPIC, "anthropic"),
        ("claude-opus-4-5", CHAT, "openrouter"),
        ("gpt-5.2", CHAT, "openai"),
        ("o4-mini", RESPONSES, "openai"),
        ("chatgpt-4o-latest", CHAT, "openai"),
        ("codex-mini-latest", RESPONSES, "openai"),
        ("ft:gpt-4o:me::1", CHAT, "openai"),
        ("gemini-3-pro", CHAT, "google"),
        ("deepseek-chat", CHAT, "deepseek"),
        ("kimi-k2", CHAT, "moonshotai"),
        ("moonshot-v1-8k", CHAT, "moonshotai"),
        ("qwen3-max", CHAT, "alibaba"),
        ("glm-4.6", CHAT, "zhipuai"),
        ("grok-4", RESPONSES, "xai"),
        ("mistral-large", CHAT, "mistral"),
        ("codestral-latest", CHAT, "mistral"),
        ("llama-3.3-70b-versatile", CHAT, "groq"),
        ("openai/gpt-oss-120b", CHAT, "openai"),
        ("meta-llama/llama-4", CHAT, "groq"),
        ("minimax/m2", CHAT, "openrouter"),
        ("deepseek-chat", ANTHROPIC, "openrouter"),
    ],
)
def test_keys_in_the_environment_become_upstreams(model: str, fmt: str, name: str) -> None:
    chosen = routes_from(GatewayConfig(), KEYS).choose(model, fmt)
    assert (chosen.name, chosen.endpoint.key) == (name, f"k-{name}")


def test_two_keys_and_an_unknown_model() -> None:
    routes = routes_from(GatewayConfig(), {"OPENAI_API_KEY": "a", "DEEPSEEK_API_KEY": "b", "MISTRAL_API_KEY": " "})
    with pytest.raises(Refused, match=r"gpt-\*.*deepseek-\*"):
        routes.choose("llama", CHAT)


def test_a_single_key_takes_every_model_of_its_formats_and_the_rest_is_the_clients() -> None:
    routes = routes_from(GatewayConfig(), {"OPENAI_API_KEY": "k"})
    assert where(routes, "any", CHAT) == ("https://api.openai.com/v1", "k")
    assert where(routes, "any", ANTHROPIC) == ("https://api.anthropic.com/v1", "")
    routes = routes_from(GatewayConfig(), {"DEEPSEEK_API_KEY": "k"})
    assert where(routes, "any", CHAT) == ("https://api.deepseek.com/v1", "k")
    assert where(routes, "any", RESPONSES) == ("https://api.openai.com/v1", "")


def test_keys_of_the_gateway_are_passed_on_to_nobody() -> None:
    with pytest.raises(InputError, match="needs its own key for an upstream"):
        routes_from(GatewayConfig(keys=OWN_KEYS), {})
    routes = routes_from(GatewayConfig(keys=OWN_KEYS), {"OPENAI_API_KEY": "k"})
    assert all(one.endpoint.key for one in routes.upstreams)
    with pytest.raises(Refused):
        routes.choose("claude-x", ANTHROPIC)


# --- one for everything ------------------------------------------------------------------------

LOCAL = "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("option", "environment", "url", "key", "formats"),
    [
        (LOCAL, {}, LOCAL, "", EVERYTHING),
        (LOCAL + "/", {"EVERLONG_KEY": "k"}, LOCAL, "k", EVERYTHING),
        ("http://127.0.0.1:8000", {}, LOCAL, "", EVERYTHING),
        ("", {"EVERLONG_UPSTREAM": LOCAL, "EVERLONG_KEY": "k"}, LOCAL, "k", EVERYTHING),
        (LOCAL, {"EVERLONG_UPSTREAM": "http://other/v1", "EVERLONG_KEY": "k"}, LOCAL, "", EVERYTHING),
        ("anthropic", {"ANTHROPIC_API_KEY": "k"}, "https://api.anthropic.com/v1", "k", (ANTHROPIC,)),
        ("https://api.openai.com/v1", {"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1", "", (CHAT, RESPONSES)),
        ("https://api.deepseek.com/v1", {}, "https://api.deepseek.com/v1", "", (CHAT,)),
        ("https://api.deepseek.com/anthropic/v1", {}, "https://api.deepseek.com/anthropic/v1", "", EVERYTHING),
        ("ollama", {}, "http://127.0.0.1:11434/v1", "", (*USUAL, "ollama")),
        ("", {"EVERLONG_UPSTREAM": LOCAL, "OPENAI_API_KEY": "other"}, LOCAL, "", EVERYTHING),
    ],
)
def test_one_upstream_for_everything(
    option: str, environment: dict[str, str], url: str, key: str, formats: tuple[str, ...]
) -> None:
    routes = routes_from(GatewayConfig(upstream=option, upstreams=(UpstreamTable(url="groq"),)), environment)
    assert len(routes.upstreams) == 1
    one = routes.choose("whatever/it-is", formats[0])
    assert (one.endpoint.url, one.endpoint.key, one.formats) == (url, key, formats)


def test_the_format_of_the_environment_is_the_endpoints() -> None:
    routes = routes_from(GatewayConfig(), {"EVERLONG_UPSTREAM": LOCAL, "EVERLONG_FORMAT": ANTHROPIC})
    assert routes.default(CHAT).endpoint.fmt == ANTHROPIC
    with pytest.raises(InputError, match="EVERLONG_FORMAT must be one of"):
        routes_from(GatewayConfig(), {"EVERLONG_UPSTREAM": LOCAL, "EVERLONG_FORMAT": "soap"})


# --- from the file -----------------------------------------------------------------------------


def test_configured_upstreams(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(
        """
        [[upstreams]]
        url = "anthropic"
        [[upstreams]]
        name = "box"
        url = "http://box:9000/v1"
        key = "env:BOX"
        models = ["big-*"]
        headers = { "x-team" = "core" }
        [[upstreams]]
        url = "http://box:9001"
        key_env = "BOX"
        strip_prefix = true
        formats = ["openai-chat"]
        """,
        encoding="utf-8",
    )
    routes = routes_from(load_config(str(file), {}, {}), {"ANTHROPIC_API_KEY": "a", "BOX": "b", "OPENAI_API_KEY": "c"})
    assert [one.name for one in routes.upstreams] == ["anthropic", "box", "box:9001"]
    assert where(routes, "claude-x", ANTHROPIC) == ("https://api.anthropic.com/v1", "a")
    assert where(routes, "big-x", ANTHROPIC) == ("http://box:9000/v1", "b")
    assert where(routes, "small", CHAT) == ("http://box:9001/v1", "b")
    assert routes.choose("big-x", CHAT).endpoint.headers == (("x-team", "core"),)
    assert routes.model_sent(routes.upstreams[2], "box:9001/m") == "m"
    assert routes.model_sent(routes.upstreams[1], "box/m") == "box/m"
    assert "b" not in repr(routes.upstreams[1].endpoint).replace("box", "")


def test_a_known_provider_alone_answers_for_every_model() -> None:
    assert routes_from(GatewayConfig(upstreams=(UpstreamTable(url="openai"),)), {}).choose("new", CHAT).name == "openai"


SECRET = "sk-very-secret"
BAD = [
    ("no address", UpstreamTable(url=SECRET), {}, "an upstream must be an http or https address or one of anthropic,"),
    ("no scheme", UpstreamTable(url="localhost:8000"), {}, "an upstream must be an http or https address"),
    ("another scheme", UpstreamTable(url="file:///etc/passwd"), {}, "an upstream must be an http or https address"),
    ("no port", UpstreamTable(url="http://host:port/v1"), {}, "an upstream must be an http or https address"),
    ("half a bracket", UpstreamTable(url="http://[::1/v1"), {}, "an upstream must be an http or https address"),
    ("a password", UpstreamTable(url=f"https://me:{SECRET}@host/v1"), {}, "must not contain a user name or password"),
    ("a query", UpstreamTable(url=f"https://host?key={SECRET}"), {}, "must not contain a query or fragment"),
    (
        "no variable",
        UpstreamTable(url="openai", key_env="MINE"),
        {},
        "its key must be in the variable MINE, which is not set",
    ),
    ("empty", UpstreamTable(url="openai", key="env:MINE"), {"MINE": " "}, "its key must be in the variable MINE"),
    ("two keys", UpstreamTable(url="openai", key=SECRET, key_env="B"), {"B": "b"}, "has both key and key_env"),
    (
        "a line end",
        UpstreamTable(url="openai", key=f"{SECRET}\nx"),
        {},
        "contains characters that are not allowed in a key",
    ),
    ("no header", UpstreamTable(url="openai", headers={"a b": SECRET}), {}, "headers: 'a b' is not a valid header"),
    (
        "line end",
        UpstreamTable(url="openai", headers={"a": f"{SECRET}\r\nb: c"}),
        {},
        "headers: 'a' is not a valid header",
    ),
]


@pytest.mark.parametrize(("table", "environment", "line"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_upstream_is_told_without_its_secret(
    table: UpstreamTable, environment: dict[str, str], line: str
) -> None:
    with pytest.raises(InputError) as refused:
        routes_from(GatewayConfig(upstreams=(table,)), environment)
    assert line in str(refused.value)
    assert SECRET not in str(refused.value)
