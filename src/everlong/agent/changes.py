"""What files were before the agent changed them, so that a person can have them back.

Each change keeps the content before it in `.everlong/changes` of the workspace: for the user alone, not for git, and
within limits, the oldest given up first. The agent's own tools for files may not write there.
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
    """A change of a file by a call: what it was before is kept, unless there was nothing or too much."""

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
    """Return what a content is known by; "" where there is no file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


@contextmanager
def keep_change(place: Place, tool: str, path: str, before: bytes | None, after: bytes) -> Iterator[bool]:
    """Keep what a file is while it is changed; yield whether it could be kept. A change that fails is forgotten."""
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
    """The changes that are kept in a workspace. `allowed` are the folders beside it that tools may use."""

    def __init__(self, workspace: Path, allowed: tuple[Path, ...] = ()) -> None:
        self._workspace = workspace
        self._allowed = allowed

    def listed(self, thread: str) -> list[Change]:
        """Return the changes of a thread, the newest first."""
        return [change for change in reversed(self._all()) if change.thread == thread]

    def restore(self, thread: str, change_id: str, *, force: bool = False) -> Change:
        """Make a file what it was before a change of the thread: one that was new then is removed.

        Raises Refused if there is no such change, or if somebody else changed the file since, unless `force`.
        """
        mine = self.listed(thread)
        change = next((each for each in mine if each.id == change_id), None)
        if change is None:
            raise Refused("there is no such change to restore", status=404, kind="no_change")
        if not change.kept:
            raise Refused(f"{change.path}: it was too large to be kept", status=409, kind="not_kept")
        later = [each for each in mine if each.path == change.path and each.id >= change.id]
        place = Place(thread=thread, call="", workspace=self._workspace, allowed=self._allowed)
        if not force and digest(_content(place, change.path)) != later[0].after:
            raise Refused(
                f"{change.path}: somebody else changed it since; restoring it would lose that",
                status=409,
                kind="changed",
            )
        if change.new:
            remove_file(place, change.path)
        else:
            replace_file(place, change.path, self._read(change))
        self.forget(later)
        return change

    def write(self, change: Change, before: bytes | None) -> bool:
        """Keep a change; return whether it could be kept."""
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
        """Give up what is kept of changes."""
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
            raise InputError(f"{change.path}: what it was is gone: {error.strerror}") from None

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """Open the folder of the changes, following no link; nobody else may look into it."""
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
    """Return what stands in a file now, None if there is none."""
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
