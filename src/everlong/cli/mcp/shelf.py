"""The user's sessions of every program, found where each program keeps them and opened when needed.

A file of another program is imported into a store in memory, so that everything a store offers works with it. The
user's own store is read directly. Nothing is written anywhere.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from threading import Lock

from everlong.core import Hit, Thread
from everlong.engine import Threads
from everlong.errors import EverlongError, InputError, NoThread
from everlong.store import import_session, open_store, sessions_in
from everlong.wire import SESSION_FORMATS, SESSION_SUFFIXES

__all__ = ["OWN", "PROGRAMS", "Listed", "Shelf", "places_of"]

#: The name of the user's own store among the programs.
OWN = "everlong"
SUFFIXES = (*SESSION_SUFFIXES, *(f"{suffix}.gz" for suffix in SESSION_SUFFIXES))
#: The programs that keep their sessions in files on this machine.
PROGRAMS = (OWN, *(name for name, known in SESSION_FORMATS.items() if known.folders))
MOST_FILES = 20_000  # that are examined; if there are more, the newest folders come first
LARGEST_FILE = 64 << 20  # bytes of a session that is opened
MOST_SEARCHED = 200  # sessions of other programs, the newest, that a search over all of them reads
MOST_BYTES = 96 << 20  # of these files in total
MOST_THREADS = 10_000  # of the user's own store that are listed


@dataclass(frozen=True, slots=True)
class Listed:
    """A session: its key ("codex:ID"), its program, its last change, and its place.

    A `path` of None means our own store.
    """

    key: str
    program: str
    changed: datetime
    path: Path | None = None
    size: int = 0
    title: str = ""
    messages: int = 0


def places_of(home: Path, environment: Mapping[str, str], programs: Sequence[str]) -> dict[str, tuple[Path, ...]]:
    """Return the folders of each program's sessions, according to the program's own variables."""
    return {name: SESSION_FORMATS[name].places(home, environment) for name in programs if name in SESSION_FORMATS}


@dataclass(slots=True)
class Shelf:
    """The sessions. `own` is the user's store, None if there is none. Requests are served one at a time."""

    places: Mapping[str, Sequence[Path]]
    own: Threads | None = None
    _memory: Threads = field(default_factory=lambda: open_store("memory:"))
    #: What was imported: the state of the file, and its thread.
    _imported: dict[str, tuple[tuple[int, datetime], str]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def sessions(self, program: str = "") -> list[Listed]:
        """Return the sessions of a program or of all, the latest changed first, without opening any."""
        if program and program not in PROGRAMS:
            raise InputError(f"program {program!r} is not one of {', '.join(PROGRAMS)}")
        listed = [one for one in (*self._own_sessions(), *self._files()) if not program or one.program == program]
        return sorted(listed, key=lambda one: one.changed, reverse=True)

    def described(self, listed: Listed) -> Listed:
        """Return a session with its title and number of messages, which requires opening it."""
        if listed.path is None:
            return listed
        try:
            thread = self._thread(listed)
        except (EverlongError, OSError):
            return replace(listed, title="(cannot be read)")
        return replace(listed, title=thread.title, messages=thread.messages)

    def open(self, key: str) -> tuple[Threads, Thread]:
        """Return the store of a session, and its thread. Raises InputError if there is no such session."""
        program, _, name = key.partition(":")
        if program == OWN and self.own is not None:
            try:
                return self.own, self.own.thread(name)
            except NoThread:
                raise _unknown(key) from None
        found = next((one for one in self._files() if one.key == key), None)
        if found is None:
            raise _unknown(key)
        try:
            return self._memory, self._thread(found)
        except OSError as error:
            raise InputError(f"{key} cannot be read: {error.strerror or error}") from None

    def search(self, query: str, program: str, limit: int) -> tuple[list[tuple[str, Hit]], int, int]:
        """Return the messages that answer a query, best first, with their sessions' keys.

        Also returns how many sessions were searched, and how many there are.
        """
        listed = self.sessions(program)
        files = [one for one in listed if one.path is not None]
        looked = list(islice(self._within(files), MOST_SEARCHED))
        keys: dict[str, str] = {}
        for one in looked:
            try:
                keys[self._thread(one).id] = one.key
            except (EverlongError, OSError):
                continue
        hits = [(keys[hit.thread], hit) for hit in self._memory.search(query, limit=limit * 4) if hit.thread in keys]
        own = self.own if program in ("", OWN) else None
        if own is not None:
            hits += [(f"{OWN}:{hit.thread}", hit) for hit in own.search(query, limit=limit)]
        hits.sort(key=lambda row: -row[1].score)
        return hits[:limit], len(listed) - len(files) + len(looked), len(listed)

    # --- files ------------------------------------------------------------------------------------

    def _own_sessions(self) -> Iterator[Listed]:
        if self.own is not None:
            for thread in self.own.threads(archived=None, limit=MOST_THREADS):
                yield Listed(f"{OWN}:{thread.id}", OWN, thread.updated, title=thread.title, messages=thread.messages)

    def _files(self) -> Iterator[Listed]:
        for program, folders in self.places.items():
            taken: set[str] = set()
            for folder in folders:
                for path in islice(_walked(folder), MOST_FILES):
                    try:
                        state = path.stat()
                    except OSError:
                        continue
                    name = _stem(path.name)
                    if name in taken:
                        name = _stem(path.relative_to(folder).as_posix())
                    taken.add(name)
                    changed = datetime.fromtimestamp(state.st_mtime, UTC)
                    yield Listed(f"{program}:{name}", program, changed, path, state.st_size)

    def _within(self, files: Sequence[Listed]) -> Iterator[Listed]:
        """Yield the newest files up to a total size."""
        total = 0
        for one in files:
            if one.size <= LARGEST_FILE and total + one.size <= MOST_BYTES:
                total += one.size
                yield one

    def _thread(self, listed: Listed) -> Thread:
        """Import a file unless its current state is imported already, and return its thread."""
        assert listed.path is not None
        state = (listed.size, listed.changed)
        with self._lock:
            known = self._imported.get(listed.key)
            if known is None or known[0] != state:
                if listed.size > LARGEST_FILE:
                    raise InputError(f"{listed.key} is larger than {LARGEST_FILE >> 20} MB")
                read = sessions_in(listed.path.read_bytes(), listed.key, listed.changed)
                first = next((session for session in read if session.messages), None)
                if first is None:
                    raise InputError(f"{listed.key} contains no conversation")
                done = import_session(self._memory, replace(first, id=listed.key))
                known = self._imported[listed.key] = (state, done.thread)
            return self._memory.thread(known[1])


def _walked(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that may be sessions. Links are not followed."""
    for root, folders, names in os.walk(folder):
        folders.sort(reverse=True)  # folders are often days: newest first
        for name in sorted(names, reverse=True):
            path = Path(root, name)
            if name.endswith(SUFFIXES) and not path.is_symlink():
                yield path


def _stem(name: str) -> str:
    name = name.removesuffix(".gz")
    return next((name.removesuffix(suffix) for suffix in SESSION_SUFFIXES if name.endswith(suffix)), name)


def _unknown(key: str) -> InputError:
    return InputError(f"there is no session {key!r}: list_sessions shows all")
