"""Import files of conversations into the app: one file at a time, in the background, with progress.

Nothing of a file leaves the machine, and nothing in it chooses a path: ids that are not valid in an address are
replaced. If a file is refused, what was already imported stays; importing the same file again adds nothing twice.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import IO

from everlong.core import Json, JsonObject, ref_of
from everlong.engine import Threads
from everlong.errors import EverlongError, InputError, NoThread
from everlong.store import Imported, Passed, Session, import_session, sessions_of
from everlong.web.state.settings import OWNER
from everlong.web.state.versions import Versions

__all__ = ["Imports"]

MOST_SESSIONS = 50_000  # conversations of one file
MOST_NOTES = 20  # reasons that are listed; the others are only counted
LONGEST_NOTE = 300  # characters
MOST_SHOWN = 200  # threads that are named
LONGEST_ID = 160  # characters
PLAIN_ID = re.compile(r"[A-Za-z0-9._~:-]{1,120}")


class Imports:
    """The imports of the app, one at a time. Belongs to one event loop."""

    def __init__(self, threads: Threads, versions: Versions, owner: str = "") -> None:
        self._threads = threads
        self._owner = owner
        self._versions = versions
        self._lock = asyncio.Lock()

    @property
    def busy(self) -> bool:
        """Whether a file is being imported."""
        return self._lock.locked()

    async def run(self, file: IO[bytes], name: str) -> AsyncIterator[JsonObject]:
        """Import a file and yield what happens: progress, then one event with the result, or why it failed."""
        async with self._lock:
            report = _Report()
            events = self._events(file, name, report)
            while True:
                try:
                    event = await asyncio.to_thread(next, events, None)
                except EverlongError as error:
                    yield {**report.shown(), "type": "failed", "message": _short(str(error))}
                    return
                if event is None:
                    break
                yield event
            yield {**report.shown(), "type": "done"}

    def _events(self, file: IO[bytes], name: str, report: "_Report") -> Iterator[JsonObject]:
        for number, session in enumerate(sessions_of(file, name), start=1):
            if number > MOST_SESSIONS:
                raise InputError(f"the file has more than {MOST_SESSIONS:,} conversations; split it")
            if isinstance(session, Passed):
                report.note(f"{session.name}: {session.reason}")
                continue
            report.add(session, self._keep(session))
            yield {**report.counted(), "type": "progress"}

    def _keep(self, session: Session) -> Imported | None:
        """Store a conversation; None if there is nothing in it."""
        if not session.entries:
            return None
        imported = import_session(self._threads, replace(session, id=self._id(session)), owner=OWNER)
        if session.version and imported.new and imported.branch_of:
            shown = self._versions.of(imported.branch_of).shown
            shared = self._threads.thread(imported.thread).parent[1]
            self._versions.add(imported.branch_of, shared, imported.thread)
            if session.hidden:
                self._versions.show(shown)
        return imported

    def _id(self, session: Session) -> str:
        """Return the id of a conversation here. With several users it depends on the owner: two may import one file."""
        plain = _plain(session)
        if self._owner:
            try:
                self._threads.thread(plain)
            except NoThread:
                return f"{ref_of(self._owner + plain)}-{plain}"[:LONGEST_ID]
        return plain


def _plain(session: Session) -> str:
    """Return an id that is valid in an address: the file's own, else one derived from it."""
    return session.id if PLAIN_ID.fullmatch(session.id) else f"{session.format}-{ref_of(session.id)}"


class _Report:
    """The result of an import so far."""

    def __init__(self) -> None:
        self.new = self.versions = self.grown = self.known = self.empty = self.messages = self.unread = 0
        self.notes: list[str] = []
        self.threads: list[Json] = []
        self.formats: dict[str, None] = {}

    def add(self, session: Session, imported: Imported | None) -> None:
        """Count a conversation."""
        for warning in session.warnings:
            self.note(f"{session.title or session.id}: {warning}")
        if imported is None:
            self.empty += 1
            return
        self.formats[session.format] = None
        self.messages += imported.messages
        if imported.new and session.version and imported.branch_of:
            self.versions += 1
        elif imported.new:
            self.new += 1
        elif imported.messages or imported.points:
            self.grown += 1
        else:
            self.known += 1
        if (imported.new or imported.messages) and not session.hidden and len(self.threads) < MOST_SHOWN:
            self.threads.append(imported.thread)

    def note(self, text: str) -> None:
        """Record why something was skipped."""
        self.unread += 1
        if len(self.notes) < MOST_NOTES:
            self.notes.append(_short(text))

    def counted(self) -> JsonObject:
        """Return the counts."""
        counts = {"new": self.new, "grown": self.grown, "known": self.known, "empty": self.empty}
        return {**counts, "versions": self.versions, "messages": self.messages}

    def shown(self) -> JsonObject:
        """Return everything."""
        shown: JsonObject = {"unread": self.unread, "notes": [*self.notes], "threads": [*self.threads]}
        return {**self.counted(), **shown, "formats": [*self.formats]}


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_NOTE else f"{line[:LONGEST_NOTE]}…"
