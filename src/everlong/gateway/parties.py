"""Who speaks through the gateway: the client that asks and the upstream that answers. Values only."""

from dataclasses import dataclass, field

from everlong.llm import Endpoint

__all__ = ["Client", "Limits", "Upstream"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one client may do; None is no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    at_once: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Whoever a key belongs to. State is kept under `scope`, which is made of the key and does not tell it.

    `key` is what the client sent, for upstreams that want the client's own. `mode` and `recall` are None where the
    gateway's setting holds.
    """

    scope: str
    name: str = ""
    key: str = field(default="", repr=False)
    mode: str | None = None
    recall: bool | None = None
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A server that answers, and the models it answers for: patterns as of a shell, such as "claude-*".

    `formats` are the wire formats it speaks. Without a key of its own the client's is passed on.
    """

    name: str
    endpoint: Endpoint
    models: tuple[str, ...] = ("*",)
    formats: tuple[str, ...] = ("openai-chat", "openai-responses", "anthropic")
