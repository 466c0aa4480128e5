"""Endpoints: the addresses, keys and formats of models, from names, URLs and the environment."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote, urlsplit

from everlong.core import JsonText, did_you_mean, expect_text
from everlong.errors import InputError
from everlong.wire import Outgoing

__all__ = ["KNOWN", "USUAL_MODELS", "Endpoint", "Way", "endpoint_at", "endpoint_from_environment", "endpoint_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How to call a server that has its own paths or its own name for a model."""

    #: The model, and the server's name for it.
    model: str
    sent: str
    #: The path below the address, with "{model}" for the name; "" for the format's own path.
    path: str = ""
    query: str = ""
    #: Fields to add to the body, as JSON, and fields to remove.
    fields: tuple[tuple[str, JsonText], ...] = ()
    without: frozenset[str] = frozenset()
    #: The header that carries the key; "" for the format's own.
    key_header: str = ""

    def request(self, outgoing: Outgoing, model: str, key: str) -> Outgoing:
        """Return a request in the form that the server accepts."""
        name = self.sent if model == self.model else model
        body = {field: value for field, value in outgoing.body.items() if field not in self.without}
        if "model" in body:
            body["model"] = name
        headers = dict(outgoing.headers)
        if self.key_header and key:
            headers = {header: value for header, value in headers.items() if value not in (key, f"Bearer {key}")}
            headers[self.key_header] = f"Bearer {key}" if self.key_header == "authorization" else key
        path = self.path.replace("{model}", quote(name, safe=":@")) if self.path else outgoing.path
        return Outgoing(
            path=f"{path}?{self.query}" if self.query else path,
            body=body | {field: json.loads(value) for field, value in self.fields},
            headers=headers,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of a model server, its format and its key. Its repr never shows the key."""

    url: str
    fmt: str = "openai-chat"
    provider: str = ""
    key: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    way: Way | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key.strip())  # files and variables often end with a line end
        address = urlsplit(self.url)
        if address.username or address.password:
            raise InputError("the address of an endpoint must not contain a user name or password: use the key instead")
        if address.query or address.fragment:
            raise InputError("the address of an endpoint must not contain a query or fragment: remove it")
        if address.scheme not in ("http", "https") or not address.hostname:
            raise InputError(f"the address of an endpoint must start with http:// or https://, not {self.url!r}")

    @property
    def name(self) -> str:
        """The name under which learned figures are stored: the address without its final slash."""
        return self.url.rstrip("/")


#: Providers by name: address, format, and the variable that usually holds the key.
KNOWN: Mapping[str, tuple[str, str, str]] = {
    "anthropic": ("https://api.anthropic.com/v1", "anthropic", "ANTHROPIC_API_KEY"),
    "openai": ("https://api.openai.com/v1", "openai-chat", "OPENAI_API_KEY"),
    "google": ("https://generativelanguage.googleapis.com/v1beta", "gemini", "GEMINI_API_KEY"),
    "openrouter": ("https://openrouter.ai/api/v1", "openai-chat", "OPENROUTER_API_KEY"),
    "deepseek": ("https://api.deepseek.com/v1", "openai-chat", "DEEPSEEK_API_KEY"),
    "moonshotai": ("https://api.moonshot.cn/v1", "openai-chat", "MOONSHOT_API_KEY"),
    "alibaba": ("https://dashscope.aliyuncs.com/compatible-mode/v1", "openai-chat", "DASHSCOPE_API_KEY"),
    "zhipuai": ("https://open.bigmodel.cn/api/paas/v4", "openai-chat", "ZHIPU_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "openai-chat", "GROQ_API_KEY"),
    "mistral": ("https://api.mistral.ai/v1", "openai-chat", "MISTRAL_API_KEY"),
    "xai": ("https://api.x.ai/v1", "openai-chat", "XAI_API_KEY"),
    "ollama": ("http://127.0.0.1:11434/v1", "openai-chat", ""),
}
#: The model to use at each provider by default.
USUAL_MODELS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4o",
    "google": "gemini-2.5-flash",
    "openrouter": "openai/gpt-4o",
    "deepseek": "deepseek-chat",
    "moonshotai": "kimi-k2-0905-preview",
    "alibaba": "qwen-plus",
    "zhipuai": "glm-4.6",
    "groq": "llama-3.3-70b-versatile",
    "mistral": "mistral-large-latest",
    "xai": "grok-4",
}


def endpoint_at(where: str, *, key: str = "", fmt: str = "", environment: Mapping[str, str] | None = None) -> Endpoint:
    """Return the endpoint of a known provider or of a URL.

    - `where`: a provider such as "anthropic", or a URL.
    - `key`: the API key; by default the one in `environment`.
    - `fmt`: the wire format, if it is not the provider's usual one.

    Example: "anthropic" -> https://api.anthropic.com/v1, its format, the key in ANTHROPIC_API_KEY
    """
    expect_text("where", where, "the name of a provider or an address")
    if where in KNOWN:
        url, usual, variable = KNOWN[where]
        found = (environment or {}).get(variable, "") if variable else ""
        return Endpoint(url=url, fmt=fmt or usual, provider=where, key=key or found)
    if "/" not in where and ":" not in where and "." not in where:
        raise InputError(f"unknown provider {where!r}{did_you_mean(where, KNOWN)}; an address starts with https://")
    url = where.rstrip("/")
    host = urlsplit(url).hostname
    provider = next((name for name, (known, _, _) in KNOWN.items() if urlsplit(known).hostname == host), "")
    usual = next((usual for known, usual, _ in KNOWN.values() if known == url), "openai-chat")
    return Endpoint(url=url, fmt=fmt or usual, provider="" if provider == "ollama" else provider, key=key)


def endpoint_of(where: str, *, key: str = "", environment: Mapping[str, str]) -> Endpoint:
    """Return what `endpoint_at` returns, but at the base URL that the SDK's environment variable names.

    Example: "openai" with OPENAI_BASE_URL=http://127.0.0.1:8333/v1 -> that address, with the key in OPENAI_API_KEY
    """
    known = endpoint_at(where, key=key, environment=environment)
    elsewhere = environment.get(f"{where.upper()}_BASE_URL", "").rstrip("/") if where in KNOWN else ""
    if not elsewhere:
        return known
    version = urlsplit(known.url).path.rpartition("/")[2]
    return replace(known, url=elsewhere if urlsplit(elsewhere).path.strip("/") else f"{elsewhere}/{version}")


def endpoint_from_environment(environment: Mapping[str, str]) -> Endpoint | None:
    """Return the endpoint in the environment: EVERLONG_UPSTREAM, or the first provider whose key is set; else None."""
    upstream = environment.get("EVERLONG_UPSTREAM")
    if upstream:
        key, fmt = environment.get("EVERLONG_KEY", ""), environment.get("EVERLONG_FORMAT", "")
        return endpoint_at(upstream, key=key, fmt=fmt, environment=environment)
    for name, (_, _, variable) in KNOWN.items():
        if variable and environment.get(variable):
            return endpoint_at(name, environment=environment)
    return None
