"""Clients of SDKs that a test makes: they are closed when it is over, so that no socket is left to the next one."""

from typing import Protocol, TypeVar

__all__ = ["close_clients", "closed_later"]


class Closable(Protocol):
    """A client that holds connections."""

    def close(self) -> None:
        """Close them."""


ClientT = TypeVar("ClientT", bound=Closable)

_open: list[Closable] = []


def closed_later(client: ClientT) -> ClientT:
    """Return the client; it is closed after the test."""
    _open.append(client)
    return client


def close_clients() -> None:
    """Close the clients of the test that is over."""
    while _open:
        _open.pop().close()
