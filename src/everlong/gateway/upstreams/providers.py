"""The upstreams that an operator has named: in the configuration, or by keys in the environment.

Known providers are a table: which models they answer for, and which formats they speak.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from everlong.errors import InputError
from everlong.gateway.config import AddressTable, GatewayConfig, UpstreamTable
from everlong.gateway.surfaces import FORMATS
from everlong.gateway.upstreams.clouds import Cloud, cloud_at, cloud_named
from everlong.gateway.upstreams.routing import USUAL_BASE, USUAL_FORMATS, Routes, Upstream
from everlong.llm import KNOWN, WITNESS, Endpoint, endpoint_at
from everlong.wire import ANTHROPIC, GEMINI, OLLAMA, OPENAI_CHAT, OPENAI_RESPONSES

__all__ = ["PROVIDERS", "expect_upstream", "routes_from"]

CHAT, RESPONSES = (OPENAI_CHAT.name,), (OPENAI_CHAT.name, OPENAI_RESPONSES.name)
MESSAGES = (ANTHROPIC.name,)
GOOGLE = "https://generativelanguage.googleapis.com"
#: The providers that made these formats.
MAKERS = tuple(sorted({each.server.maker for each in FORMATS.values()}))


@dataclass(frozen=True, slots=True)
class Provider:
    """What is known of a provider: its models, its formats, and whether its model ids begin with its own name."""

    models: tuple[str, ...]
    formats: tuple[str, ...]
    #: "openai/gpt-5" is forwarded as "gpt-5"; OpenRouter and Groq have ids that begin with their own name.
    strips: bool = True
    #: Its address for our formats, if that is not its usual one; and its addresses for the paths of other bases.
    url: str = ""
    addresses: Mapping[str, str] = field(default_factory=dict)
    #: The cloud if it has only that cloud's own paths, and the headers in which it reads a key.
    only: str = ""
    key_headers: tuple[str, ...] = ()


#: In order of preference; OpenRouter and Ollama accept every model.
PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(("claude-*",), MESSAGES, addresses={"/anthropic/v1": KNOWN["anthropic"][0]}),
    "openai": Provider(
        ("gpt-*", "o[1-9]*", "chatgpt-*", "codex*", "computer-use-*", "text-embedding-*", "ft:*"),
        RESPONSES,
        addresses={"/openai/v1": KNOWN["openai"][0]},
    ),
    "google": Provider(
        ("gemini-*", "gemma-*"),
        (OPENAI_CHAT.name, GEMINI.name),
        url=f"{GOOGLE}/v1beta/openai",
        addresses={USUAL_BASE: f"{GOOGLE}/v1beta/openai", **{base: GOOGLE + base for base in GEMINI.api.bases}},
    ),
    "deepseek": Provider(("deepseek-*",), CHAT),
    "moonshotai": Provider(("moonshot-*", "kimi-*"), CHAT),
    "alibaba": Provider(("qwen*", "qwq*", "qvq*"), RESPONSES),
    "zhipuai": Provider(("glm-*",), CHAT),
    "xai": Provider(("grok-*",), USUAL_FORMATS),
    "mistral": Provider(
        ("mistral-*", "ministral-*", "magistral-*", "codestral-*", "devstral-*", "pixtral-*", "open-mi*"), CHAT
    ),
    "groq": Provider(("llama-*", "groq/*", "meta-llama/*", "openai/gpt-oss-*"), RESPONSES, strips=False),
    "openrouter": Provider(("*",), USUAL_FORMATS, strips=False),
    "ollama": Provider(("*",), (*USUAL_FORMATS, OLLAMA.name), strips=False),
}


def routes_from(config: GatewayConfig, environment: Mapping[str, str]) -> Routes:
    """Return the upstreams that the operator named: one for everything, those of the file, or those with keys.

    A format that none of the keys covers goes to its maker with the client's own key, unless clients have keys of the
    gateway, which must not leave it. Raises InputError.
    """
    single = config.upstream or environment.get("EVERLONG_UPSTREAM", "")
    if single:
        routes = _one_for_everything(single, environment)
    elif config.upstreams:
        routes = _configured(config.upstreams, environment)
    else:
        routes = _keyed(environment, own_keys=config.closed)
    for one in (site for each in routes.upstreams for site in (each, *each.sites)):
        if not re.fullmatch(r"[\x21-\x7e]*", one.endpoint.key):
            raise InputError(
                f"the key of the upstream {one.name} contains characters that are not allowed in a key, such as spaces"
            )
    return routes


def _keyed(environment: Mapping[str, str], *, own_keys: bool) -> Routes:
    """The providers whose keys are in the environment; with `own_keys`, no client's key is forwarded."""
    variables = {name: KNOWN[name][2] for name in PROVIDERS}
    keyed = [name for name, variable in variables.items() if variable and environment.get(variable, "").strip()]
    found = [_provider(name, environment) for name in keyed]
    spoken = {fmt for one in found for fmt in one.formats}
    if len(found) == 1:
        found = [replace(found[0], models=("*",))]
    if not own_keys:
        makers = [_provider(name, {}) for name in MAKERS]
        rest = [(one, tuple(fmt for fmt in _made_by(one.name) if fmt not in spoken)) for one in makers]
        found += [replace(one, models=("*",), formats=formats) for one, formats in rest if formats]
    if not found:
        raise InputError(
            "clients use keys of this gateway (--open needs none), so it needs its own key for an upstream: add "
            "[[upstreams]], or set a variable such as OPENAI_API_KEY"
        )
    return Routes(found, stripping=frozenset(one.name for one in found if PROVIDERS[one.name].strips))


def _made_by(provider: str) -> tuple[str, ...]:
    """The formats that a provider made; it may speak others too."""
    return tuple(name for name, each in FORMATS.items() if each.server.maker == provider)


def _provider(name: str, environment: Mapping[str, str]) -> Upstream:
    endpoint, _ = _endpoint(name, "", environment)
    known = PROVIDERS[name]
    return _upstream(name, endpoint, known, models=known.models)


def _upstream(
    name: str, endpoint: Endpoint, known: Provider | None, *, models: tuple[str, ...], formats: tuple[str, ...] = ()
) -> Upstream:
    """The upstream with what is known of it; `formats` are those that the operator named."""
    known = known or Provider(models, USUAL_FORMATS)
    return Upstream(
        name=name,
        endpoint=endpoint,
        models=models,
        formats=formats or known.formats,
        addresses=known.addresses,
        only=known.only,
        key_headers=known.key_headers,
    )


def _one_for_everything(where: str, environment: Mapping[str, str]) -> Routes:
    # A key that was set for one address is not sent to another.
    own = environment.get("EVERLONG_UPSTREAM", "") in ("", where)
    key, fmt = (environment.get(name, "") if own else "" for name in ("EVERLONG_KEY", "EVERLONG_FORMAT"))
    endpoint, known = _endpoint(where, key, environment)
    if fmt and fmt not in FORMATS:
        raise InputError(f"EVERLONG_FORMAT must be one of {', '.join(FORMATS)}, not {fmt!r}")
    endpoint = replace(endpoint, fmt=fmt) if fmt else endpoint
    name = _name(where, endpoint)
    # A server that does not speak a format will say so itself.
    formats = () if known else tuple(FORMATS)
    return Routes(
        [_upstream(name, endpoint, known, models=("*",), formats=formats)],
        stripping=frozenset({name} if known and known.strips else ()),
    )


def _configured(tables: Sequence[UpstreamTable], environment: Mapping[str, str]) -> Routes:
    found: list[Upstream] = []
    stripping: set[str] = set()
    for place, table in enumerate(tables):
        endpoint, known = _endpoint(table.url, _key(table, f"upstreams[{place}]", environment), environment)
        name = table.name or _name(table.url, endpoint)
        usual = known.models if known and len(tables) > 1 else ("*",)
        endpoint = replace(endpoint, headers=_headers(table, place))
        first = _upstream(name, endpoint, known, models=table.models or usual, formats=table.formats)
        found.append(_with_sites(first, table, place, environment))
        usually = known is not None and known.strips
        if usually if table.strip_prefix is None else table.strip_prefix:
            stripping.add(name)
    return Routes(found, stripping=frozenset(stripping))


def _with_sites(first: Upstream, table: UpstreamTable, place: int, environment: Mapping[str, str]) -> Upstream:
    """The upstream with its other addresses. Raises InputError if one belongs to another provider."""
    if table.weight and not table.also:
        raise InputError(f"upstreams[{place}].weight needs an upstream with several addresses: add also = [...]")
    sites = [replace(first, weight=table.weight)]
    for number, other in enumerate(table.also, start=1):
        field = f"upstreams[{place}].also[{number - 1}]"
        key = _key(other, field, environment) or first.endpoint.key
        endpoint, known = _endpoint(other.url, key, environment)
        if endpoint.provider != first.endpoint.provider:
            named = [each.provider or "another server" for each in (endpoint, first.endpoint)]
            raise InputError(
                f"{field}.url is an address of {named[0]}, but upstreams[{place}] is {named[1]}: "
                "requests never move to another provider; add a separate upstream"
            )
        if bool(other.weight) != bool(table.weight):
            missing = f"{field}.weight" if table.weight else f"upstreams[{place}].weight"
            raise InputError(f"{missing} is missing: set a weight for every address of an upstream, or for none")
        endpoint = replace(endpoint, headers=first.endpoint.headers)
        if endpoint.name in (site.endpoint.name for site in sites):
            raise InputError(f"{field}.url appears twice: the addresses of an upstream must differ")
        site = _upstream(first.name, endpoint, known, models=first.models, formats=first.formats)
        sites.append(replace(site, weight=other.weight, number=number))
    return replace(first, weight=table.weight, sites=tuple(sites) if table.also else ())


def expect_upstream(where: str, environment: Mapping[str, str]) -> None:
    """Raise InputError unless this names an upstream: an address, a provider, or the witness."""
    if where != WITNESS:
        _endpoint(where, "", environment)


def _endpoint(where: str, key: str, environment: Mapping[str, str]) -> tuple[Endpoint, Provider | None]:
    """The endpoint for a provider's name or an address, and what is known of it. A bare address gets /v1."""
    named = cloud_named(where, environment)
    if named is not None:
        return _cloud_endpoint(*named, key or environment.get(named[0].key_variable, ""))
    if where in KNOWN:
        known = PROVIDERS.get(where)
        if known is None:
            raise InputError(f"the gateway does not know the models and formats of {where}: use its address instead")
        endpoint = endpoint_at(where, key=key, environment=environment)
        return (replace(endpoint, url=known.url, fmt=known.formats[0]) if known.url else endpoint), known
    try:
        address = urlsplit(where)
        proper = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:  # such as a port that is not a number or an open bracket
        proper = False
    if not proper:  # not repeated in the error: it may be a key in the wrong place
        raise InputError(f"an upstream must be an http or https address or one of {', '.join(KNOWN)}, {WITNESS}")
    cloud = cloud_at(where)
    if cloud is not None:
        return _cloud_endpoint(cloud, where, key)
    endpoint = endpoint_at(where if address.path.strip("/") else where.rstrip("/") + "/v1", key=key)
    # Other paths of a provider often speak other formats, such as DeepSeek's /anthropic.
    usual = endpoint.provider in MAKERS or endpoint.url in (url for url, _, _ in KNOWN.values())
    return endpoint, PROVIDERS.get(endpoint.provider) if usual else None


def _cloud_endpoint(cloud: Cloud, where: str, key: str) -> tuple[Endpoint, Provider]:
    """The endpoint for an address at a cloud, and what that address means."""
    place = cloud.place(urlsplit(where))
    endpoint = replace(endpoint_at(place.url, key=key, fmt=place.formats[0]), provider=cloud.name)
    known = Provider(
        ("*",),
        place.formats,
        strips=False,
        addresses=place.addresses,
        only=cloud.name if place.only else "",
        key_headers=cloud.key_headers,
    )
    return endpoint, known


def _name(where: str, endpoint: Endpoint) -> str:
    return where if where in KNOWN else urlsplit(endpoint.url).netloc


def _key(table: UpstreamTable | AddressTable, field: str, environment: Mapping[str, str]) -> str:
    if table.key and table.key_env:
        raise InputError(f"{field} has both key and key_env: set only one")
    variable = table.key_env or (table.key[4:].strip() if table.key.startswith("env:") else "")
    if not variable:
        return table.key
    key = environment.get(variable, "")
    if not key.strip():
        raise InputError(f"{field}: its key must be in the variable {variable}, which is not set")
    return key


def _headers(table: UpstreamTable, place: int) -> tuple[tuple[str, str], ...]:
    for name, value in table.headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not re.fullmatch(r"[\t\x20-\x7e]*", value):
            raise InputError(f"upstreams[{place}].headers: {name!r} is not a valid header, or its value has line ends")
    return tuple(table.headers.items())
