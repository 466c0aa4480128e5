"""The peers: other libraries that bring a history under a budget, each in a separate environment.

`PEER_NAMES` and `open_peer` are loaded on first use, because a peer's own process imports this package too, and has
only the standard library and the peer.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everlong.lab.peers.peer import open_peer
    from everlong.lab.peers.table import PEER_NAMES

__all__ = ["PEER_NAMES", "open_peer"]

_HOMES = {
    "PEER_NAMES": "everlong.lab.peers.table",
    "open_peer": "everlong.lab.peers.peer",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
