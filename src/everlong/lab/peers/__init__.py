"""Other libraries as strategies, each running in an environment of its own.

`PEER_NAMES` and `peer_named` are loaded when they are first used: a peer's own process imports this package too, and
has nothing but the standard library and the peer.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everlong.lab.peers.serving import peer_named
    from everlong.lab.peers.table import PEER_NAMES

__all__ = ["PEER_NAMES", "peer_named"]

_HOMES = {
    "PEER_NAMES": "everlong.lab.peers.table",
    "peer_named": "everlong.lab.peers.serving",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
