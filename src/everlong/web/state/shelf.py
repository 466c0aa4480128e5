"""Where a person keeps threads: in folders, and pinned on top.

The folder of a thread and its pin are in the thread's metadata, so they go with it. The list of folders is one fact of
the store: a folder may be empty. A change here does not count as a change of the thread, so its age stays the same.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from threading import Lock

from everlong.core import JsonObject, JsonText, Thread
from everlong.engine import Threads
from everlong.errors import NoThread, Refused
from everlong.web.fields import invalid
from everlong.web.state.settings import FACTS, OWNER
from everlong.web.state.versions import Versions

__all__ = ["Place", "Shelf", "place_of"]

FOLDERS_FACT = "folders"
METADATA_KEY = "shelf"
LONGEST_NAME = 80  # characters
MOST_FOLDERS = 500


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a thread; `folder` is "" if it is in none."""

    folder: str = ""
    pinned: bool = False


def place_of(metadata: JsonObject) -> Place:
    """Return the place that the metadata of a thread names; what cannot be read counts as none."""
    stored = metadata.get(METADATA_KEY)
    if not isinstance(stored, dict):
        return Place()
    folder = stored.get("folder")
    return Place(folder[:LONGEST_NAME] if isinstance(folder, str) else "", stored.get("pinned") is True)


def _with_place(metadata: JsonText, place: Place) -> JsonText:
    fields = json.loads(metadata)
    stored: JsonObject = {}
    if place.folder:
        stored["folder"] = place.folder
    if place.pinned:
        stored["pinned"] = True
    kept = {key: value for key, value in fields.items() if key != METADATA_KEY}
    return json.dumps(kept | ({METADATA_KEY: stored} if stored else {}), ensure_ascii=False)


class Shelf:
    """The folders of the app and what is in them. Safe in any operating system thread."""

    def __init__(self, threads: Threads, versions: Versions) -> None:
        self._threads = threads
        self._versions = versions
        self._lock = Lock()

    def folders(self, used: Iterable[str] = ()) -> list[str]:
        """Return the names of the folders, sorted, with those that only threads name (from an import)."""
        names = {*self._stored(), *filter(None, used)}
        return sorted(names, key=lambda name: (name.casefold(), name))

    def add(self, name: str) -> str:
        """Make a folder and return its name. Raises Refused if it exists, or there are too many."""
        with self._lock:
            names, wanted = self._stored(), _checked(name)
            if _same(wanted, self._all()):
                raise Refused("a folder with this name already exists", status=409, kind="folder_exists")
            if len(names) >= MOST_FOLDERS:
                raise Refused(f"there can be at most {MOST_FOLDERS} folders", status=409, kind="too_many_folders")
            self._store([*names, wanted])
            return wanted

    def rename(self, name: str, new: str) -> str:
        """Give a folder another name, with all threads in it."""
        wanted = _checked(new)
        with self._lock:
            if _same(wanted, (other for other in self._all() if other != name)):
                raise Refused("a folder with this name already exists", status=409, kind="folder_exists")
            self._store([*(other for other in self._stored() if other != name), wanted])
        self._move_all(name, wanted)
        return wanted

    def remove(self, name: str) -> int:
        """Remove a folder and return how many threads were in it. They stay."""
        with self._lock:
            self._store([other for other in self._stored() if other != name])
        return self._move_all(name, "")

    def put(self, thread: Thread, *, folder: str | None = None, pinned: bool | None = None) -> Thread:
        """Put a conversation into a folder ("" takes it out), pin it, or unpin it; what is None stays."""
        place = place_of(json.loads(thread.metadata))
        if folder is not None:
            place = replace(place, folder=_checked(folder) if folder else "")
            if folder and not _same(folder, self._all()):
                self.add(folder)
        if pinned is not None:
            place = replace(place, pinned=pinned)
        for member in self._versions.of(thread.id).members:
            self._place(self._threads.thread(member.thread), place)
        return self._threads.thread(thread.id)

    def _place(self, thread: Thread, place: Place) -> None:
        self._threads.change(thread.id, metadata=_with_place(thread.metadata, place), at=thread.updated)

    def _move_all(self, name: str, folder: str) -> int:
        """Move all threads of a folder, hidden ones too."""
        inside = [
            thread
            for thread in self._threads.threads(owner=OWNER, archived=None)
            if place_of(json.loads(thread.metadata)).folder == name
        ]
        for thread in inside:
            place = replace(place_of(json.loads(thread.metadata)), folder=folder)
            try:
                self._place(thread, place)
            except NoThread:  # removed meanwhile
                continue
        return len(inside)

    def _all(self) -> list[str]:
        """The folders that were made, and those that threads name."""
        listed = self._threads.threads(owner=OWNER, archived=None)
        return self.folders(place_of(json.loads(thread.metadata)).folder for thread in listed)

    def _stored(self) -> list[str]:
        try:
            names = json.loads(self._threads.fact(FACTS, FOLDERS_FACT) or "[]")
        except (ValueError, RecursionError):
            return []
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def _store(self, names: list[str]) -> None:
        self._threads.keep_fact(FACTS, FOLDERS_FACT, json.dumps(names, ensure_ascii=False))


def _checked(name: str) -> str:
    """Return a name in one line. Raises Refused if it is blank or too long."""
    wanted = " ".join(name.split())
    if not wanted:
        raise invalid("the folder needs a name")
    if len(wanted) > LONGEST_NAME:
        raise invalid(f"the name of a folder can have at most {LONGEST_NAME} characters")
    return wanted


def _same(name: str, others: Iterable[str]) -> bool:
    return name.casefold() in {other.casefold() for other in others}
