"""Clouds that serve other makers' models at addresses of their customers, and how these addresses are written.

Azure's address is a resource, Vertex's and Bedrock's a region. So a name alone is not enough, unless a variable that
their own SDKs read has the rest.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from everlong.errors import InputError
from everlong.gateway.surfaces import AZURE, BEDROCK, FORMATS, VERTEX
from everlong.gateway.upstreams.routing import CLOUD_ADDRESSES, USUAL_BASE, USUAL_FORMATS
from everlong.windows import canonical
from everlong.wire import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES

__all__ = ["Cloud", "Place", "cloud_at", "cloud_named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What an address at a cloud means: the base URL of the formats there, and where other bases are."""

    url: str
    formats: tuple[str, ...]
    addresses: Mapping[str, str] = field(default_factory=dict)
    #: Whether it has only the cloud's own paths.
    only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """One cloud: its name in the registry of windows, its host names, and what an address there means."""

    name: str
    hosts: re.Pattern[str]
    place: Callable[[SplitResult], Place]
    #: Returns the address from the variables of its SDKs; "" if there is none.
    from_environment: Callable[[Mapping[str, str]], str]
    #: The variable of its key, and the headers that may have the key, the usual one first.
    key_variable: str = ""
    key_headers: tuple[str, ...] = ("authorization",)


def cloud_at(url: str) -> Cloud | None:
    """Return the cloud that an address belongs to. Example: "https://me.openai.azure.com/openai" -> Azure"""
    host = urlsplit(url).hostname or ""
    return next((cloud for cloud in CLOUDS if cloud.hosts.fullmatch(host)), None)


def cloud_named(name: str, environment: Mapping[str, str]) -> tuple[Cloud, str] | None:
    """Return the cloud of that name and its address from the environment; None if it is not a cloud's name.

    Raises InputError that says what to write if the environment lacks the address.
    """
    cloud = next((cloud for cloud in CLOUDS if cloud.name == canonical(name)), None)
    if cloud is None:
        return None
    address = cloud.from_environment(environment)
    if not address:
        raise InputError(
            f"{name} does not say which resource: write its address, such as {CLOUD_ADDRESSES[cloud.name]}"
        )
    return cloud, address


def _root(address: SplitResult) -> str:
    return f"{address.scheme}://{address.netloc}"


# --- Azure -----------------------------------------------------------------------------------------

RESOURCES = re.compile(
    r"[a-z0-9-]+\.(?:openai\.azure\.(?:com|us|cn)|cognitiveservices\.azure\.(?:com|us|cn)|services\.ai\.azure\.com"
    r"|api\.cognitive\.microsoft\.(?:com|us))"
)
OPENAI, CLAUDE = "/openai/v1", "/anthropic/v1"


def _azure_place(address: SplitResult) -> Place:
    """Return the place of an Azure upstream, however much of its address was written. Raises InputError."""
    root, path = _root(address), address.path.rstrip("/")
    if "/deployments" in path:
        written = CLOUD_ADDRESSES[AZURE]
        raise InputError(f"write an Azure upstream without a deployment: {written}; clients name deployments")
    if path.endswith(("/anthropic", CLAUDE)):
        return Place(url=root + path.removesuffix("/v1") + USUAL_BASE, formats=(ANTHROPIC.name,))
    if path in ("", USUAL_BASE) or path.endswith(("/openai", OPENAI)) or re.fullmatch("/api/projects/[^/]+", path):
        before = path.removesuffix("/v1").removesuffix("/openai")
        return Place(
            url=root + before + OPENAI,
            formats=(OPENAI_CHAT.name, OPENAI_RESPONSES.name, ANTHROPIC.name),
            addresses={"": root, CLAUDE: root + CLAUDE},
        )
    return Place(url=root + path, formats=(OPENAI_CHAT.name, OPENAI_RESPONSES.name))


# --- Vertex and Bedrock ----------------------------------------------------------------------------


def _regional_place(address: SplitResult) -> Place:
    """Return the place of a regional address: the cloud's own paths or, with a path of its own, the formats' paths."""
    path = address.path.rstrip("/")
    if path in ("", "/v1", "/v1beta1"):
        return Place(url=_root(address) + USUAL_BASE, formats=tuple(FORMATS), only=True)
    return Place(url=_root(address) + path, formats=USUAL_FORMATS)


def _vertex_host(environment: Mapping[str, str]) -> str:
    region = environment.get("CLOUD_ML_REGION", "").strip()
    if region in ("us", "eu"):
        return f"https://aiplatform.{region}.rep.googleapis.com"
    prefix = "" if region == "global" else f"{region}-"
    return f"https://{prefix}aiplatform.googleapis.com" if region else ""


def _bedrock_host(environment: Mapping[str, str]) -> str:
    region = (environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "").strip()
    return f"https://bedrock-runtime.{region}.amazonaws.com" if region else ""


CLOUDS = (
    Cloud(
        name=AZURE,
        hosts=RESOURCES,
        place=_azure_place,
        from_environment=lambda environment: environment.get("AZURE_OPENAI_ENDPOINT", "").strip(),
        key_variable="AZURE_OPENAI_API_KEY",
        key_headers=("api-key", "x-api-key"),
    ),
    Cloud(
        name=VERTEX,
        hosts=re.compile(r"(?:[a-z0-9-]+-)?aiplatform(?:\.[a-z]+\.rep)?\.googleapis\.com"),
        place=_regional_place,
        from_environment=_vertex_host,
    ),
    Cloud(
        name=BEDROCK,
        hosts=re.compile(r"bedrock-runtime(?:-fips)?\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?"),
        place=_regional_place,
        from_environment=_bedrock_host,
        key_variable="AWS_BEARER_TOKEN_BEDROCK",
    ),
)
