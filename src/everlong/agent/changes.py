"""Keep files as they were before the agent changed them, so that a person can restore them.

Each change stores the earlier content in `.everlong/changes` of the workspace: readable only by the user, ignored by
git, and within limits; the oldest copies go first. The agent's file tools may not write there.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from time import time_ns

from everlong.agent.definitions import Place
from everlong.agent.workspace import inside, open_inner, open_reading, remove_file, replace_file
from everlong.errors import InputError, Refused

__all__ = ["LARGEST", "Change", "Changes", "digest", "keep_change"]

FOLDER = (".everlong", "changes")  # of the workspace
MOST = 200  # changes that are kept
MOST_BYTES = 64_000_000  # of all contents together
LARGEST = 16_000_000  # bytes of one
NOT_FOR_GIT = b"*\n"
RECORD, CONTENT = ".json", ".before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a file by a call. The earlier version is kept, unless there was none or it was too large."""

    id: str
    #: The person's thread, and the call.
    thread: str
    call: str
    tool: str
    #: As the tools name it: in the workspace, or absolute.
    path: str
    time: str
    new: bool
    kept: bool
    #: The digest of what the call wrote.
    after: str


def digest(content: bytes | None) -> str:
    """Return the SHA-256 digest of a file's content; "" if there is no file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


@contextmanager
def keep_change(place: Place, tool: str, path: str, before: bytes | None, after: bytes) -> Iterator[bool]:
    """Store a file's content before it is changed; yield whether it can be restored. A failed change is forgotten."""
    kept = before is None or len(before) <= LARGEST
    change = Change(
        id=f"{time_ns():020d}-{token_hex(4)}",
        thread=place.gate.thread or place.thread,
        call=place.call,
        tool=tool,
        path=path,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        new=before is None,
        kept=kept,
        after=digest(after),
    )
    store = Changes(place.workspace)
    written, done = store.write(change, before if kept else None), False
    try:
        yield written and kept
        done = True
    finally:
        if not done:
            store.forget((change,))


class Changes:
    """The changes that are kept in a workspace. `allowed` are other folders that tools may use."""

    def __init__(self, workspace: Path, allowed: tuple[Path, ...] = ()) -> None:
        self._workspace = workspace
        self._allowed = allowed

    def listed(self, thread: str) -> list[Change]:
        """Return the changes of a thread, newest first."""
        return [change for change in reversed(self._all()) if change.thread == thread]

    def restore(self, thread: str, change_id: str, *, force: bool = False) -> Change:
        """Restore a file to its state before a change of the thread. A file that was new then is removed.

        Raises Refused if there is no such change, or if the file has changed since, unless `force`.
        """
        mine = self.listed(thread)
        change = next((each for each in mine if each.id == change_id), None)
        if change is None:
            raise Refused("this change does not exist", status=404, kind="no_change")
        if not change.kept:
            raise Refused(f"{change.path}: the file was too large to keep a copy", status=409, kind="not_kept")
        later = [each for each in mine if each.path == change.path and each.id >= change.id]
        place = Place(thread=thread, call="", workspace=self._workspace, allowed=self._allowed)
        if not force and digest(_content(place, change.path)) != later[0].after:
            raise Refused(
                f"{change.path}: the file has been changed since then; restoring it would lose those changes",
                status=409,
                kind="changed",
            )
        if change.new:
            remove_file(place, change.path)
        else:
            replace_file(place, change.path, self._read(change))
        self.forget(later)
        return change

    def sides(self, thread: str, change_id: str) -> tuple[bytes, bytes] | None:
        """Return a file before and after a change of the thread; None if one of them is gone.

        The state after it is what the file is now, or what the next change of the file kept.
        """
        mine = self.listed(thread)
        change = next((each for each in mine if each.id == change_id), None)
        if change is None or not change.kept:
            return None
        place = Place(thread=thread, call="", workspace=self._workspace, allowed=self._allowed)
        try:
            before = b"" if change.new else self._read(change)
            later = [each for each in mine if each.path == change.path and each.id > change.id and each.kept]
            after = self._read(later[-1]) if later and not later[-1].new else _content(place, change.path)
        except InputError:
            return None
        if after is None or digest(after) != change.after:
            return None
        return before, after

    def write(self, change: Change, before: bytes | None) -> bool:
        """Keep a change, and return whether that was possible."""
        try:
            with self._opened(make=True) as folder:
                with suppress(FileExistsError):
                    _create(folder, ".gitignore", NOT_FOR_GIT)
                if before is not None:
                    _create(folder, change.id + CONTENT, before)
                _create(folder, change.id + RECORD, json.dumps(asdict(change)).encode())
                self._give_up_oldest(folder)
        except OSError:
            return False
        return True

    def forget(self, changes: "tuple[Change, ...] | list[Change]") -> None:
        """Remove the kept changes."""
        with suppress(OSError), self._opened() as folder:
            for change in changes:
                _remove(folder, change.id)

    def _all(self) -> list[Change]:
        """Return every change that can be read, the oldest first."""
        try:
            with self._opened() as folder:
                return [change for name in _records(folder) if (change := _record(folder, name)) is not None]
        except OSError:
            return []

    def _read(self, change: Change) -> bytes:
        try:
            with self._opened() as folder:
                return _bytes(folder, change.id + CONTENT)
        except OSError as error:
            raise InputError(f"{change.path}: the copy of the old file cannot be read: {error.strerror}") from None

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """Open the folder of the changes without following links. With `make`, create it and make it private."""
        folder = open_inner(Path(os.path.realpath(self._workspace)), FOLDER, mode=0o700 if make else None)
        try:
            if make:
                os.fchmod(folder, 0o700)
            yield folder
        finally:
            os.close(folder)

    def _give_up_oldest(self, folder: int) -> None:
        names = _records(folder)
        sizes = {name: _size(folder, name.removesuffix(RECORD) + CONTENT) for name in names}
        total = sum(sizes.values())
        for name in names[:-1]:
            if len(sizes) <= MOST and total <= MOST_BYTES:
                return
            total -= sizes.pop(name)
            _remove(folder, name.removesuffix(RECORD))


def _content(place: Place, path: str) -> bytes | None:
    """Return the content of a file now; None if there is no file."""
    if not inside(place, path).exists():
        return None
    with open_reading(place, path) as file:
        return file.read(LARGEST + 1)


def _create(folder: int, name: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(content)


def _bytes(folder: int, name: str) -> bytes:
    with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
        return file.read(LARGEST)


def _records(folder: int) -> list[str]:
    with os.scandir(folder) as listing:
        return sorted(item.name for item in listing if item.name.endswith(RECORD))


def _record(folder: int, name: str) -> Change | None:
    try:
        return Change(**json.loads(_bytes(folder, name)))
    except (OSError, ValueError, TypeError):
        return None  # not ours


def _size(folder: int, name: str) -> int:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_size
    except OSError:
        return 0


def _remove(folder: int, change_id: str) -> None:
    for ending in (RECORD, CONTENT):
        with suppress(OSError):
            os.unlink(change_id + ending, dir_fd=folder)
