"""The shape of a model client. What it is asked and what it replies are values of `everlong.wire`."""

from collections.abc import AsyncGenerator
from typing import Protocol

from everlong.wire import Caching, CallGrew, Failed, Finished, Reply, Request, Restarted, Said, Thought

__all__ = ["Caching", "CallGrew", "Failed", "Finished", "Model", "Reply", "Request", "Restarted", "Said", "Thought"]


class Model(Protocol):
    """A model behind some endpoint. Closing the iterator cancels the call upstream."""

    #: The wire format it speaks: one of `wire.read.BODY_FORMATS`.
    fmt: str
    #: What figures learned about it are kept under; two servers never share a name.
    endpoint: str
    #: The provider's name in the registry; "" if it is none that the registry knows.
    provider: str

    def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        """The pieces of the answer; the last is Finished or Failed."""

    async def served_window(self, model: str) -> int | None:
        """The window in force that the server itself tells; asked once. None if it does not tell."""
