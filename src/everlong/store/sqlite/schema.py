"""The tables, the migrations from older versions, and how values are stored in columns.

`PRAGMA user_version` is the number of migrations that a file has had; `application_id` says that the file is ours. A
released migration never changes; new ones are added after it. Times are stored as microseconds, texts as text, and a
text that is not valid Unicode as its bytes.
"""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from everlong.core import bytes_of
from everlong.errors import InputError, StoreError
from everlong.store.bodies import text_of_bytes

__all__ = [
    "MIGRATIONS",
    "VERSION",
    "kept_text",
    "kept_time",
    "migrate",
    "readable",
    "show_as_newest",
    "text_from",
    "time_from",
    "version_of",
]

APPLICATION = 0x45564C47  # "EVLG"

THREADS = """
CREATE TABLE owners (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
CREATE TABLE threads (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    owner INTEGER NOT NULL REFERENCES owners,
    title TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0,
    length INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0,
    points INTEGER NOT NULL DEFAULT 0,
    parent TEXT NOT NULL DEFAULT '',
    shared INTEGER NOT NULL DEFAULT 0,
    settings TEXT NOT NULL DEFAULT '{}',
    metadata TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX threads_by_change ON threads (updated);
CREATE INDEX threads_of_owner ON threads (owner, updated);
"""

# A branch copies rows, not bodies. Texts of 2 kB and more are in `texts`, once for all bodies that use them.
LOG = """
CREATE TABLE bodies (
    number INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);
CREATE TABLE texts (
    name TEXT NOT NULL UNIQUE,
    content BLOB NOT NULL
);
CREATE TABLE log (
    thread INTEGER NOT NULL REFERENCES threads,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    time INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    target INTEGER,
    body INTEGER NOT NULL REFERENCES bodies,
    PRIMARY KEY (thread, position)
) WITHOUT ROWID;
CREATE UNIQUE INDEX log_by_name ON log (thread, name);
CREATE INDEX log_by_body ON log (body);
CREATE INDEX log_points ON log (thread, kind, position, target) WHERE kind IN (1, 2);
CREATE TABLE refs (
    thread INTEGER NOT NULL REFERENCES threads,
    ref BLOB NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (thread, ref)
) WITHOUT ROWID;
"""

# The index has our own terms, each prefixed with its owner's number, so that no search reads another owner's words.
WORDS = """
CREATE VIRTUAL TABLE words USING fts5 (terms, content = '', tokenize = "ascii tokenchars '_'");
"""

BESIDE = """
CREATE TABLE pins (
    number INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL REFERENCES threads,
    name TEXT NOT NULL,
    position INTEGER,
    body TEXT NOT NULL
);
CREATE INDEX pins_of_thread ON pins (thread);
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL REFERENCES threads,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    parent TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (thread, name)
);
CREATE INDEX events_by_parent ON events (thread, parent);
CREATE TABLE counts (
    vocabulary TEXT NOT NULL,
    ref TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (vocabulary, ref)
) WITHOUT ROWID;
CREATE TABLE facts (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
"""

# Facts get a time, and a table with row ids, so that large values are not in the tree that is searched. Existing facts
# count as stored now. `text_uses` says which bodies use a large text, so that the text is deleted with the last of
# them. The mark for such a text cannot occur inside any text, so existing bodies can be searched for it.
RETENTION = """
CREATE TABLE timed_facts (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    kept INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
);
INSERT INTO timed_facts (kind, name, value, kept)
    SELECT kind, name, value, strftime('%s', 'now') * 1000000 FROM facts;
DROP TABLE facts;
ALTER TABLE timed_facts RENAME TO facts;
CREATE INDEX facts_by_time ON facts (kind, kept);
CREATE TABLE text_uses (
    text TEXT NOT NULL,
    body INTEGER NOT NULL REFERENCES bodies,
    PRIMARY KEY (text, body)
) WITHOUT ROWID;
WITH RECURSIVE found (body, name, rest) AS (
    SELECT number, '', body FROM bodies WHERE instr(body, '{"@text":"')
    UNION ALL
    SELECT body, substr(rest, instr(rest, '{"@text":"') + 10, 64), substr(rest, instr(rest, '{"@text":"') + 74)
    FROM found WHERE instr(rest, '{"@text":"')
)
INSERT OR IGNORE INTO text_uses (text, body) SELECT name, body FROM found WHERE name IN (SELECT name FROM texts);
"""

# `removed` is the removal in force that names a row. A row in `erasing` says that something was erased and that the
# file must be rewritten, so that no page contains it.
REMOVALS = """
ALTER TABLE log ADD COLUMN removed INTEGER;
CREATE INDEX log_removed ON log (thread, removed) WHERE removed IS NOT NULL;
CREATE TABLE erasing (
    since INTEGER NOT NULL
);
"""

# Embeddings of messages, as float16; they are deleted with their rows.
VECTORS = """
CREATE TABLE vectors (
    thread INTEGER NOT NULL REFERENCES threads,
    position INTEGER NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (thread, model, position)
);
"""

#: The migrations from each version to the next.
MIGRATIONS: tuple[str, ...] = (THREADS + LOG + WORDS + BESIDE, RETENTION, REMOVALS, VECTORS)
VERSION = len(MIGRATIONS)


def migrate(db: sqlite3.Connection, path: str, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Migrate the file to the newest version, inside a write transaction. Raises if it is newer or not ours."""
    version = version_of(db, path, len(migrations))
    for script in migrations[version:]:
        for statement in filter(str.strip, script.split(";")):
            db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {len(migrations)}")


def show_as_newest(db: sqlite3.Connection, version: int) -> None:
    """Let this connection read a file of an older version, which cannot be written, like one of the newest version."""
    if version <= MIGRATIONS.index(REMOVALS):
        db.execute("CREATE TEMP VIEW log AS SELECT *, NULL AS removed FROM main.log")
    if version <= MIGRATIONS.index(VECTORS):
        db.execute("CREATE TEMP TABLE vectors (thread, position, model, vector)")


def version_of(db: sqlite3.Connection, path: str, newest: int = VERSION) -> int:
    """Return how many migrations the file has had; 0 for an empty file."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION and (tables or version):
        raise InputError(f"{path} is the database of another program")
    if version > newest:
        raise StoreError(
            f"{path} was written by a newer Everlong (version {version}, this one knows {newest}): upgrade to open it"
        )
    return int(version)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def kept_time(time: datetime) -> int:
    """A time as microseconds since 1970, exactly."""
    return (time - EPOCH) // MICROSECOND


def time_from(column: int) -> datetime:
    """The time of a column that `kept_time` filled."""
    return EPOCH + column * MICROSECOND


Column = TypeVar("Column")


def readable(read: Callable[[Any], Column], column: object) -> Column | None:
    """Return the value of a column; None if it is damaged. SQLite stores any kind of value in any column."""
    try:
        return read(column)
    except (TypeError, ValueError, OverflowError):
        return None


def kept_text(text: str) -> str | bytes:
    """Return a text as SQLite accepts it; one with lone surrogates, which is not valid Unicode, as its bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return bytes_of(text)
    return text


def text_from(column: str | bytes) -> str:
    """The text of a column that `kept_text` filled."""
    return column if isinstance(column, str) else text_of_bytes(column)
