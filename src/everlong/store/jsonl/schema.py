"""The tables of the index. All of it is derived from the session files; another version is thrown away and rebuilt."""

__all__ = ["SCHEMA", "VERSION"]

VERSION = 1

SCHEMA = """
CREATE TABLE sessions (
    session INTEGER PRIMARY KEY,
    file TEXT NOT NULL UNIQUE,
    key BLOB NOT NULL,
    inode INTEGER NOT NULL DEFAULT 0,
    mtime INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,      -- bytes of the file that are indexed
    lines INTEGER NOT NULL DEFAULT 0,     -- lines of the file up to there
    said INTEGER NOT NULL DEFAULT 0,      -- lines that nanobot counts as messages
    stamp INTEGER NOT NULL DEFAULT -1,    -- where in the file its time of change stands; -1: cannot be set in place
    generation INTEGER NOT NULL DEFAULT 0, -- grows when rows moved
    ended INTEGER NOT NULL DEFAULT 1,     -- whether the file ends with a line feed
    stale INTEGER NOT NULL DEFAULT 0,     -- whether the file lacks the metadata that counts
    first TEXT NOT NULL DEFAULT '',       -- the first metadata line
    header TEXT NOT NULL DEFAULT '',      -- the metadata that counts
    owner TEXT NOT NULL DEFAULT '',
    archived INTEGER NOT NULL DEFAULT 0,
    updated TEXT NOT NULL DEFAULT '',
    length INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0,
    points INTEGER NOT NULL DEFAULT 0,
    words INTEGER NOT NULL DEFAULT 0,     -- rows that search and references know
    weight REAL NOT NULL DEFAULT 0       -- and how many words they have
);
CREATE INDEX sessions_by_key ON sessions (key);
CREATE INDEX sessions_by_time ON sessions (updated);
CREATE TABLE rows (
    session INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    id TEXT NOT NULL,
    kind INTEGER NOT NULL,
    role TEXT NOT NULL,
    time TEXT NOT NULL,
    place INTEGER NOT NULL,               -- offset in the file; -1: nanobot's own summary, not a row of the file yet
    size INTEGER NOT NULL,
    print BLOB NOT NULL,
    said INTEGER NOT NULL,                -- which of nanobot's messages it is
    target INTEGER,                       -- the row that it refers to
    withdrawn INTEGER,                    -- the row that withdrew this point
    PRIMARY KEY (session, ord)
) WITHOUT ROWID;
CREATE UNIQUE INDEX rows_by_id ON rows (session, id);
CREATE INDEX rows_of_note ON rows (session, kind, ord) WHERE kind > 0;
CREATE TABLE refs (session INTEGER NOT NULL, ref TEXT NOT NULL, ord INTEGER NOT NULL,
    PRIMARY KEY (session, ref, ord)) WITHOUT ROWID;
CREATE TABLE postings (term TEXT NOT NULL, session INTEGER NOT NULL, ord INTEGER NOT NULL, weight REAL NOT NULL,
    length REAL NOT NULL, PRIMARY KEY (term, session, ord)) WITHOUT ROWID;
"""
