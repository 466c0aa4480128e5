"""The formats that clients speak to the gateway, one row each: where a request goes, and where its parts stand."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["DIALECTS", "Dialect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One wire format as clients speak it. `path` is below the base address, fields are those of the body."""

    fmt: str
    path: str
    #: The field of the messages, and the one of the system text; "" where it is a message.
    messages: str
    system: str
    #: Fields that say how long the answer may be; the first is the one that is written where none is there.
    lengths: tuple[str, ...]


DIALECTS: Mapping[str, Dialect] = {
    dialect.fmt: dialect
    for dialect in (
        Dialect(
            fmt="openai-chat",
            path="/chat/completions",
            messages="messages",
            system="",
            lengths=("max_tokens", "max_completion_tokens"),
        ),
        Dialect(
            fmt="openai-responses",
            path="/responses",
            messages="input",
            system="instructions",
            lengths=("max_output_tokens",),
        ),
        Dialect(fmt="anthropic", path="/messages", messages="messages", system="system", lengths=("max_tokens",)),
    )
}
