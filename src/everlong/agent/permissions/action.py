"""An action: what a tool is about to do, as a person sees it and patterns match it.

Tools describe their actions, and `Permissions` decides about them. The terminal, the app and programs only ask.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["Action", "ActionKind", "Answer", "Approve"]

#: What is acted on: a file, a shell, an address of the network, or whatever some other tool does.
ActionKind: TypeAlias = Literal["file", "command", "network", "tool"]


class Answer(StrEnum):
    """A person's answer to an action."""

    NO = "no"
    #: This action. A file that was changed once may be changed again in the same thread.
    ONCE = "once"
    #: Every action of this kind in this thread; of tools that are not ours, every call of this tool.
    THREAD = "thread"
    #: Whatever the action's `pattern` covers, in this workspace, from now on.
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What a tool is about to do, shown in full to the person who is asked: see `visible`.

    `subject` is what patterns are matched with: a path in the workspace, a command, a host, the name of a tool.
    `details` is the complete action: a unified diff, the command, the address, the arguments.
    """

    tool: str
    kind: ActionKind
    subject: str
    details: str
    #: What else is worth knowing: where a command runs, what a server says about its tool.
    hint: str = ""
    #: For a file: its real path, and the digest of its content ("" if it is new).
    path: Path | None = None
    basis: str = ""

    # Filled in for the person who is asked:
    #: The person's thread, even if a sub-agent acts.
    thread: str = ""
    #: What ALWAYS would cover; "" if it cannot be said in one line.
    pattern: str = ""
    #: Lines and pieces of lines of the details that are not shown. The details mark each place.
    hidden: int = 0
    answers: tuple[Answer, ...] = (Answer.NO, Answer.ONCE)


#: Asks a person about an action. Only one of its `answers` counts, anything else is a no.
Approve: TypeAlias = Callable[[Action], Awaitable[Answer]]
