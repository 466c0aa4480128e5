"""Columns to values and back: texts as bytes, threads. Nothing here talks to the database."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, LiteralString

from everlong.core import Thread, bytes_of
from everlong.store.bodies import text_of_bytes

__all__ = ["THREAD_COLUMNS", "name_key", "thread_of"]

THREAD_COLUMNS: LiteralString = (
    "id, owner, title, created, updated, archived, length, messages, points, parent, shared, settings, metadata"
)


def name_key(name: str) -> bytes:
    """What a name of any length is looked up by."""
    return sha256(bytes_of(name)).digest()


def thread_of(columns: Sequence[Any]) -> Thread:
    """The thread in `THREAD_COLUMNS`."""
    name, owner, title, created, updated, archived, length, messages, points, parent, shared, settings, more = columns
    return Thread(
        id=text_of_bytes(name),
        owner=text_of_bytes(owner),
        title=text_of_bytes(title),
        created=created,
        updated=updated,
        archived=archived,
        length=length,
        messages=messages,
        points=points,
        parent=(text_of_bytes(parent), shared),
        settings=text_of_bytes(settings),
        metadata=text_of_bytes(more),
    )
