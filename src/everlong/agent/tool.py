"""A tool: something the model may call. Values only; the decorator that makes one of a function is in `making`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from everlong.core import Image, JsonObject, JsonText

__all__ = ["Approve", "Outcome", "Place", "Tool"]

#: Asked before a tool acts: the tool's name and, in words, what it is about to do. True lets it.
Approve = Callable[[str, str], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to. A failure is an outcome too: the model reads it and goes on."""

    text: str
    failed: bool = False
    images: tuple[Image, ...] = ()


async def _nobody(name: str, what: str) -> bool:  # noqa: ARG001 - nobody to ask
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call is made: the thread and call it belongs to, the workspace, and whom to ask."""

    thread: str
    call: str
    workspace: Path
    #: Folders beside the workspace that may be used as well.
    allowed: tuple[Path, ...] = ()
    approve: Approve = field(default=_nobody, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool. `parameters` is the JSON schema of its arguments; `run` never raises for what the model did wrong.

    `asks` tools act on the world beyond the workspace: they are approved before they run, unless that is switched off.
    """

    name: str
    description: str
    parameters: JsonText
    run: Callable[[JsonObject, Place], Awaitable[Outcome]] = field(repr=False)
    asks: bool = False
