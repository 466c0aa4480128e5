"""The table of threads and their owners: everything about a thread except its log."""

from dataclasses import dataclass, replace
from typing import Any

from everlong.core import Thread
from everlong.errors import NoThread, StoreError, ThreadExists
from everlong.store.sqlite.connections import Link
from everlong.store.sqlite.schema import kept_text, kept_time, readable, text_from, time_from

__all__ = [
    "StoredThread",
    "add_thread",
    "change_thread",
    "check_same",
    "find_thread",
    "get_thread",
    "list_threads",
    "name_of",
    "search_scope",
]

COLUMNS = """threads.number, threads.owner, threads.name, owners.name, title, created, updated, archived,
    length, messages, points, parent, shared, settings, metadata,
    (SELECT count(*) FROM log AS made WHERE made.thread = threads.number AND made.kind IN (1, 2) AND made.kind = 1
        AND made.removed IS NULL
        AND NOT EXISTS (SELECT 1 FROM log AS gone WHERE gone.thread = made.thread AND gone.kind IN (1, 2)
            AND gone.kind = 2 AND gone.target = made.position))"""
FROM = "FROM threads JOIN owners ON owners.number = threads.owner"
CHANGEABLE = ("title", "archived", "settings", "metadata", "updated", "length", "messages", "points")


@dataclass(frozen=True, slots=True)
class StoredThread:
    """A thread with its number and its owner's number in this file."""

    number: int
    owner: int
    thread: Thread


def find_thread(db: Link, name: str) -> StoredThread | None:
    """Return the thread of that name, or None."""
    row = db.execute(f"SELECT {COLUMNS} {FROM} WHERE threads.name = ?", (kept_text(name),)).fetchone()
    if row is None:
        return None
    stored = _stored_thread(db, row)
    if stored is None:
        raise StoreError(f"thread {name!r} cannot be read: its row in the store is damaged")
    return stored


def get_thread(db: Link, name: str) -> StoredThread:
    """Return the thread of that name. Raises NoThread."""
    stored = find_thread(db, name)
    if stored is None:
        raise NoThread(f"there is no thread {name!r}")
    return stored


def check_same(db: Link, stored: StoredThread) -> None:
    """Raise NoThread if the thread was removed meanwhile.

    A later thread, even one of the same name, may have its number.
    """
    now = find_thread(db, stored.thread.id)
    if now is None or (now.number, now.thread.created) != (stored.number, stored.thread.created):
        raise NoThread(f"there is no thread {stored.thread.id!r}")


def list_threads(db: Link, owner: str | None, archived: bool | None, limit: int, skip: int) -> list[Thread]:
    """List threads, most recently changed first."""
    terms: list[str] = []
    values: list[Any] = []
    if owner is not None:
        terms.append("threads.owner = (SELECT number FROM owners WHERE name = ?)")
        values.append(kept_text(owner))
    if archived is not None:
        terms.append("archived = ?")
        values.append(archived)
    where = f"WHERE {' AND '.join(terms)}" if terms else ""
    rows = db.execute(
        f"SELECT {COLUMNS} {FROM} {where} ORDER BY updated DESC, threads.number LIMIT ? OFFSET ?",
        (*values, limit, skip),
    )
    listed = (_stored_thread(db, row) for row in rows.fetchall())
    return [stored.thread for stored in listed if stored is not None]


def add_thread(db: Link, thread: Thread) -> StoredThread:
    """Add a thread. Raises ThreadExists."""
    if find_thread(db, thread.id) is not None:
        raise ThreadExists(f"thread {thread.id!r} already exists")
    fields = {
        "name": kept_text(thread.id),
        "owner": _made_owner(db, thread.owner),
        "title": kept_text(thread.title),
        "created": kept_time(thread.created),
        "updated": kept_time(thread.updated),
        "length": thread.length,
        "messages": thread.messages,
        "points": thread.points,
        "parent": kept_text(thread.parent[0]),
        "shared": thread.parent[1],
        "settings": kept_text(thread.settings),
        "metadata": kept_text(thread.metadata),
    }
    marks = ", ".join(f":{name}" for name in fields)
    db.execute(f"INSERT INTO threads ({', '.join(fields)}) VALUES ({marks})", fields)
    return get_thread(db, thread.id)


def change_thread(db: Link, number: int, fields: dict[str, str | bytes | int]) -> None:
    """Set these columns of a thread."""
    columns = ", ".join(f"{name} = :{name}" for name in CHANGEABLE if name in fields)
    db.execute(f"UPDATE threads SET {columns} WHERE number = :number", {**fields, "number": number})


def search_scope(db: Link, thread: str | None, owner: str | None) -> tuple[int | None, list[int]]:
    """The number of the thread to search (None: all threads) and the numbers of the owners to search."""
    name = None if owner is None else kept_text(owner)
    query = "SELECT number FROM owners WHERE :name IS NULL OR name = :name"
    numbers = [number for (number,) in db.execute(query, {"name": name})]
    if thread is None:
        return None, numbers
    stored = get_thread(db, thread)
    return stored.number, [stored.owner] if stored.owner in numbers else []


def _made_owner(db: Link, owner: str) -> int:
    db.execute("INSERT OR IGNORE INTO owners (name) VALUES (?)", (kept_text(owner),))
    (number,) = db.execute("SELECT number FROM owners WHERE name = ?", (kept_text(owner),)).fetchone()
    return int(number)


def name_of(db: Link, number: int) -> str:
    """The name of a thread; its number if the name cannot be read."""
    found = db.execute("SELECT name FROM threads WHERE number = ?", (number,)).fetchone()
    name = None if found is None else readable(text_from, found[0])
    return f"number {number}" if name is None else name


def _stored_thread(db: Link, row: tuple[Any, ...]) -> StoredThread | None:
    """The thread in a row; None, and a warning, if it cannot be read."""
    stored = readable(_parse_thread, row)
    if stored is None:
        db.damage.warn(f"thread number {row[0]} cannot be read; the stored data is unchanged")
        return None
    thread = stored.thread
    settings = db.damage.json_object(thread.settings, thread.id, "settings")
    metadata = db.damage.json_object(thread.metadata, thread.id, "metadata")
    return replace(stored, thread=replace(thread, settings=settings, metadata=metadata))


def _parse_thread(row: tuple[Any, ...]) -> StoredThread:
    number, owner, name, owner_name, title, created, updated, archived, length, messages, points, *rest = row
    parent, shared, settings, metadata, standing = rest
    if not all(isinstance(figure, int) for figure in (length, messages, points, shared)):
        raise TypeError("not a number")
    thread = Thread(
        id=text_from(name),
        owner=text_from(owner_name),
        title=text_from(title),
        created=time_from(created),
        updated=time_from(updated),
        archived=bool(archived),
        length=length,
        messages=messages,
        points=points,
        standing=standing,
        parent=(text_from(parent), shared),
        settings=text_from(settings),
        metadata=text_from(metadata),
    )
    return StoredThread(number, owner, thread)
