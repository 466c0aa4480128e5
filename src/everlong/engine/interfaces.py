"""The three replaceable parts of a context: Provider loads, Compressor shrinks, Assembler puts together.

Only a Provider does I/O. `view_of` is the Compressor and `assemble` the Assembler that ship with us; anything
of the same shape can stand in their place.
"""

from typing import Protocol

from everlong.core import History, Message, Role, Text
from everlong.engine.view import View, Wish

__all__ = ["Assembler", "Compressor", "Provider", "assemble"]


class Provider(Protocol):
    """Loads what was said. The only one of the three that may wait for something."""

    async def load(self, thread: str, limit: int | None = None) -> History:
        """The last `limit` messages of a thread, oldest first."""


class Compressor(Protocol):
    """Brings a history under a limit. Pure: the same input gives the same view."""

    def __call__(self, history: History, wish: Wish, previous: View | None = None) -> View:
        """What would be sent."""


class Assembler(Protocol):
    """Puts the pieces of a request together. Pure."""

    def __call__(self, system: str, history: History, user: str) -> History:
        """System text, then history, then what the user says now."""


def assemble(system: str, history: History, user: str) -> History:
    """System text, history, user message; what is empty is left out.

    Example: assemble("be brief", (), "hi") -> system message, user message
    """
    head = (Message(Role.SYSTEM, (Text(system),)),) if system else ()
    asked = (Message(Role.USER, (Text(user),)),) if user else ()
    return (*head, *history, *asked)
