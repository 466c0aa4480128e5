"""Clients of a gateway's keys without a gateway: by tables of a file, or in a store of their own."""

from collections.abc import Sequence

from everlong.gateway.clients import Clients
from everlong.gateway.config import KeyTable
from everlong.gateway.keys.records import KeyRecords, KeyRing
from everlong.store import MemoryThreads

__all__ = ["clients_of"]


def clients_of(tables: Sequence[KeyTable] = (), records: KeyRecords | None = None, *, closed: bool = False) -> Clients:
    """Return the clients whose keys are in tables of a file, and in a store."""
    ring = KeyRing(tables, records or KeyRecords(MemoryThreads()))
    ring.refresh()
    return Clients(ring, closed=closed)
