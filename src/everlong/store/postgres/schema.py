"""The tables, the migrations from older versions, and threads as columns.

Everything is in the schema `everlong`. Names and texts that people choose are `bytea`, because Postgres' `text` allows
no NUL and no lone surrogate, and people's texts may have them. Bodies are JSON in ASCII; `texts` has each large text
once, by content. Names of any length are looked up by their sha256.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, LiteralString

from psycopg import Connection

from everlong.core import Thread, bytes_of
from everlong.errors import StoreError
from everlong.store.bodies import text_of_bytes
from everlong.store.damage import Damage

__all__ = ["THREAD_COLUMNS", "VERSION", "migrate", "name_key", "thread_of"]

_FIRST: LiteralString = """
CREATE TABLE everlong.threads (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bytea NOT NULL,
    owner bytea NOT NULL,
    title bytea NOT NULL,
    created timestamptz NOT NULL,
    updated timestamptz NOT NULL,
    archived boolean NOT NULL DEFAULT false,
    length integer NOT NULL DEFAULT 0,
    messages integer NOT NULL DEFAULT 0,
    points integer NOT NULL DEFAULT 0,
    head integer NOT NULL DEFAULT 0,     -- rows of leading system text
    words bigint NOT NULL DEFAULT 0,     -- of all messages, for the ranking
    events integer NOT NULL DEFAULT 0,
    parent bytea NOT NULL DEFAULT '',
    shared integer NOT NULL DEFAULT 0,   -- rows that it shares with its parent
    settings bytea NOT NULL DEFAULT '{}',
    metadata bytea NOT NULL DEFAULT '{}',
    made_by uuid NOT NULL                -- the call that made it: repeated after a lost answer, it finds its own
);
CREATE UNIQUE INDEX threads_by_id ON everlong.threads (sha256(id));
CREATE INDEX threads_by_owner ON everlong.threads (sha256(owner), updated DESC);
CREATE INDEX threads_by_time ON everlong.threads (updated DESC);

CREATE TABLE everlong.rows (
    thread bigint NOT NULL,
    place integer NOT NULL,
    id bytea NOT NULL,
    time timestamptz NOT NULL,
    kind smallint NOT NULL,
    target integer,                      -- the boundary of a point, the point of a withdrawal
    size integer NOT NULL,               -- characters, large texts included
    body text NOT NULL,
    PRIMARY KEY (thread, place)
);
CREATE UNIQUE INDEX rows_by_id ON everlong.rows (thread, sha256(id));
CREATE INDEX rows_of_points ON everlong.rows (thread, place) WHERE kind <> 0;

CREATE TABLE everlong.texts (name bytea PRIMARY KEY, content bytea NOT NULL);

CREATE TABLE everlong.refs (
    thread bigint NOT NULL,
    ref bytea NOT NULL,
    place integer NOT NULL,
    PRIMARY KEY (thread, ref)
);

CREATE TABLE everlong.terms (
    thread bigint NOT NULL,
    place integer NOT NULL,
    words integer NOT NULL,
    keys bigint[] NOT NULL,
    PRIMARY KEY (thread, place)
);
ALTER TABLE everlong.terms ALTER COLUMN keys SET STORAGE EXTERNAL;  -- hashes do not get smaller
CREATE INDEX terms_by_key ON everlong.terms USING gin (keys) WITH (gin_pending_list_limit = 1024);

CREATE TABLE everlong.pins (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread bigint NOT NULL,
    id bytea NOT NULL,
    place integer,
    content bytea NOT NULL
);
CREATE INDEX pins_by_thread ON everlong.pins (thread, number);

CREATE TABLE everlong.events (
    thread bigint NOT NULL,
    place integer NOT NULL,
    id bytea NOT NULL,
    kind text NOT NULL,
    parent bytea,                        -- the start that it ends, or null
    body text NOT NULL,
    PRIMARY KEY (thread, place)
);
CREATE UNIQUE INDEX events_by_id ON everlong.events (thread, sha256(id));
CREATE UNIQUE INDEX events_one_outcome ON everlong.events (thread, sha256(parent)) WHERE parent IS NOT NULL;

CREATE TABLE everlong.counts (
    vocabulary bytea NOT NULL,
    ref bytea NOT NULL,
    tokens integer NOT NULL,
    PRIMARY KEY (vocabulary, ref)
);
CREATE TABLE everlong.facts (kind bytea NOT NULL, key bytea NOT NULL, value bytea NOT NULL);
CREATE UNIQUE INDEX facts_by_key ON everlong.facts (sha256(kind), sha256(key));
"""

# Existing facts count as stored now. `text_uses` says which threads use a large text, and where first, so that the text
# is deleted with the last of them. The mark for such a text in a body cannot occur inside any text.
_RETENTION: LiteralString = r"""
ALTER TABLE everlong.facts ADD COLUMN kept timestamptz NOT NULL DEFAULT now();
CREATE INDEX facts_by_time ON everlong.facts (sha256(kind), kept);
CREATE TABLE everlong.text_uses (
    thread bigint NOT NULL,
    text bytea NOT NULL,
    place integer NOT NULL,
    PRIMARY KEY (thread, text)
);
INSERT INTO everlong.text_uses (thread, text, place)
    SELECT thread, decode(found[1], 'hex'), min(place)
    FROM everlong.rows, regexp_matches(body, '\{"@text":"([0-9a-f]{64})"\}', 'g') AS found
    GROUP BY thread, found[1];
CREATE INDEX text_uses_by_text ON everlong.text_uses (text);
"""

# The removal in force that names a row.
_REMOVALS: LiteralString = """
ALTER TABLE everlong.rows ADD COLUMN removed integer;
CREATE INDEX rows_removed ON everlong.rows (thread, removed) WHERE removed IS NOT NULL;
"""

# Embeddings of messages, as float16; they are deleted with their rows.
_VECTORS: LiteralString = """
CREATE TABLE everlong.vectors (
    thread bigint NOT NULL,
    place integer NOT NULL,
    model bytea NOT NULL,
    vector bytea NOT NULL,
    PRIMARY KEY (thread, model, place)
);
ALTER TABLE everlong.vectors ALTER COLUMN vector SET STORAGE EXTERNAL;  -- they do not get smaller
"""

# The version of the tables, next to the oldest version that can use them: programs of both run at the same time.
_SIDE_BY_SIDE: LiteralString = "ALTER TABLE everlong.version ADD COLUMN made integer NOT NULL DEFAULT 0;"

#: The migrations from each version to the next. They are only ever added, and they only add: programs of the previous
#: version keep reading and writing meanwhile, so a column that they do not know needs a default.
_MIGRATIONS: tuple[LiteralString, ...] = (_FIRST, _RETENTION, _REMOVALS, _VECTORS, _SIDE_BY_SIDE)
VERSION = len(_MIGRATIONS)
#: The oldest version whose programs can use these tables. Only a migration that does more than add may raise it.
_OLDEST = 4

_LOCK = 0x65766572  # a number that no other program uses; the process that holds it may change the tables


def migrate(connection: Connection[Any]) -> None:
    """Migrate the database to this version, one process at a time, all or nothing.

    A newer database is used as it is, if its migrations only added things. Raises StoreError if this program cannot use
    it.
    """
    if _is_usable(*_versions(connection)):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        made, oldest = _versions(connection)
        if _is_usable(made, oldest):
            return
        connection.execute("CREATE SCHEMA IF NOT EXISTS everlong")
        connection.execute("CREATE TABLE IF NOT EXISTS everlong.version (number integer NOT NULL)")
        for migration in _MIGRATIONS[made:]:
            connection.execute(migration)
        connection.execute("DELETE FROM everlong.version")
        connection.execute("INSERT INTO everlong.version (number, made) VALUES (%s, %s)", (_OLDEST, VERSION))


def _is_usable(made: int, oldest: int) -> bool:
    """Whether the tables exist in this version or a newer one. Raises StoreError if this program cannot use them."""
    if oldest > VERSION:
        raise StoreError(
            f"the database was made by a newer Everlong (its tables need version {oldest},"
            f" this one knows {VERSION}): upgrade to open it"
        )
    return made >= VERSION


def _versions(connection: Connection[Any]) -> tuple[int, int]:
    """The version of the tables, and the oldest version whose programs can use them; zeros if there are no tables."""
    # Not by `to_regclass`, which may not see yet that another process has just created the table.
    table = connection.execute("SELECT FROM pg_tables WHERE schemaname = 'everlong' AND tablename = 'version'")
    if table.fetchone() is None:
        return 0, 0
    row = connection.execute("SELECT to_jsonb(version) FROM everlong.version").fetchone()
    if row is None:
        return 0, 0
    oldest = int(row[0]["number"])
    return int(row[0].get("made", 0)) or oldest, oldest


#: The last column counts the points in force, which no withdrawal or removal names.
THREAD_COLUMNS: LiteralString = (
    "id, owner, title, created, updated, archived, length, messages, points, parent, shared, settings, metadata,"
    " (SELECT count(*) FROM everlong.rows AS made WHERE made.thread = threads.number AND made.kind <> 0"
    " AND made.kind = 1 AND made.removed IS NULL"
    " AND NOT EXISTS (SELECT FROM everlong.rows AS gone WHERE gone.thread = made.thread"
    " AND gone.kind <> 0 AND gone.kind = 2 AND gone.target = made.place))"
)


def name_key(name: str) -> bytes:
    """The key by which a name of any length is looked up."""
    return sha256(bytes_of(name)).digest()


def thread_of(columns: Sequence[Any], damage: Damage) -> Thread | None:
    """The thread in a row of `THREAD_COLUMNS`; None, and a warning, if it cannot be read."""
    try:
        thread = _thread(columns)
    except UnicodeDecodeError:
        damage.warn(f"thread {columns[0].hex()} cannot be read; the stored data is unchanged")
        return None
    return replace(
        thread,
        settings=damage.json_object(thread.settings, thread.id, "settings"),
        metadata=damage.json_object(thread.metadata, thread.id, "metadata"),
    )


def _thread(columns: Sequence[Any]) -> Thread:
    name, owner, title, created, updated, archived, length, messages, points, parent, shared, *rest = columns
    settings, more, standing = rest
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
        standing=standing,
        parent=(text_of_bytes(parent), shared),
        settings=text_of_bytes(settings),
        metadata=text_of_bytes(more),
    )
