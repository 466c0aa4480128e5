"""Versions of a conversation: the original, and one for each regenerated answer and each edited message.

Each version is a thread that branched off another. Together they are a family, of which the lists show one. Where two
versions part, a person can switch from one to the other; nothing is lost.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import cast

from everlong.core import Json, JsonObject, JsonText, Thread
from everlong.engine import Threads
from everlong.errors import NoThread
from everlong.web.fields import stored_object

__all__ = ["VERSION_OF", "Family", "Member", "Versions", "is_hidden", "mark_versions"]

FAMILIES = "versions"  # facts: the family of each first thread
VERSION_OF, HIDDEN = "version_of", "hidden_version"  # in a thread's metadata


@dataclass(frozen=True, slots=True)
class Member:
    """A thread of a family: the member that it branched off, and how many rows it shares with that one."""

    thread: str
    parent: str = ""
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Family:
    """The versions of a conversation, the first thread first; `shown` is the one that the lists show."""

    members: tuple[Member, ...]
    shown: str

    @property
    def first(self) -> str:
        """The thread that all versions come from."""
        return self.members[0].thread

    def forks(self, thread: str) -> dict[int, tuple[str, ...]]:
        """Return where other versions part from a thread: by row, a thread of each version there, oldest first.

        Of versions that part from each other only later, one stands for all: the shown one, else the newest.
        Example: an answer at row 2 that was asked for again -> {2: ("first", "second")}
        """
        apart: dict[int, list[str]] = {}
        for member in self.members:
            if member.thread != thread:
                apart.setdefault(self._common(thread, member.thread), []).append(member.thread)
        return {row: self._one_each(row, thread, others) for row, others in sorted(apart.items())}

    def _one_each(self, row: int, thread: str, others: Sequence[str]) -> tuple[str, ...]:
        groups: list[list[str]] = [[thread]]
        for other in others:
            same = next((group for group in groups[1:] if self._common(group[0], other) > row), None)
            if same is None:
                groups.append([other])
            else:
                same.append(other)
        age = {member.thread: at for at, member in enumerate(self.members)}
        groups.sort(key=lambda group: self._born(group, row, age))
        return tuple(
            thread if thread in group else self.shown if self.shown in group else max(group, key=age.__getitem__)
            for group in groups
        )

    def _born(self, group: Sequence[str], row: int, age: Mapping[str, int]) -> int:
        """Return when the version of a group began: with the oldest thread that has its row."""
        kin = [name for name in age if name == group[0] or self._common(name, group[0]) > row]
        return min(age[name] for name in kin)

    def _common(self, one: str, other: str) -> int:
        """Return how many rows two members share."""
        lines = (self._line(one), self._line(other))
        shared = [name for name in lines[0] if name in lines[1]]
        ancestor = shared[0]
        return min(lines[0][ancestor], lines[1][ancestor])

    def _line(self, thread: str) -> dict[str, int]:
        """Return a member and its ancestors, nearest first, each with how many of its rows the member has."""
        by_name = {member.thread: member for member in self.members}
        rows = LIMITLESS
        line = {thread: rows}
        while (member := by_name[thread]).parent in by_name and member.parent not in line:
            rows = min(rows, member.shared)
            thread = member.parent
            line[thread] = rows
        return line


LIMITLESS = 1 << 62


class Versions:
    """The families of all threads of a store. Safe in any operating system thread."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._known: dict[str, Family] = {}
        self._lock = Lock()

    def of(self, thread: str) -> Family:
        """Return the family of a thread; one that has no other version is its own family."""
        first = stored_object(self._threads.thread(thread).metadata).get(VERSION_OF)
        return self._family(first if isinstance(first, str) else thread)

    def _family(self, first: str) -> Family:
        with self._lock:
            known = self._known.get(first)
        if known is None:
            known = self._stored(first)
            with self._lock:
                self._known[first] = known
        return known

    def _stored(self, first: str) -> Family:
        family = _load(self._threads.fact(FAMILIES, first))
        if family is None:
            return Family((Member(first),), first)
        return replace(family, members=tuple(member for member in family.members if self._exists(member.thread)))

    def _exists(self, thread: str) -> bool:
        try:
            self._threads.thread(thread)
        except NoThread:
            return False
        return True

    def add(self, parent: str, shared: int, branch: str) -> Family:
        """Add a thread that has just branched off, and show it in the place of its parent."""
        family = self.of(parent)
        family = replace(family, members=(*family.members, Member(branch, parent, shared)))
        self._mark(branch, {VERSION_OF: family.first})
        return self._show(family, branch)

    def free(self, thread: str) -> Thread:
        """Turn a branch into a separate conversation; return it."""
        self._mark(thread, {VERSION_OF: False, HIDDEN: False})
        return self._threads.thread(thread)

    def show(self, thread: str) -> Family:
        """Make the lists show this version of its family."""
        family = self.of(thread)
        return family if family.shown == thread else self._show(family, thread)

    def remove(self, thread: str) -> tuple[str, ...]:
        """Forget the family of a thread and return its members, the first one included."""
        family = self.of(thread)
        self._threads.drop_fact(FAMILIES, family.first)
        with self._lock:
            self._known.pop(family.first, None)
        return tuple(member.thread for member in family.members)

    def _show(self, family: Family, thread: str) -> Family:
        archived = self._threads.thread(family.shown).archived
        family = replace(family, shown=thread)
        self._threads.keep_fact(FAMILIES, family.first, _dump(family))
        with self._lock:
            self._known[family.first] = family
        for member in family.members:
            self._mark(member.thread, {HIDDEN: member.thread != thread})
        self._threads.change(thread, archived=archived, at=self._threads.thread(thread).updated)
        return family

    def _mark(self, thread: str, marks: JsonObject) -> None:
        """Set marks in the metadata of a thread; those that are False are removed."""
        try:
            stored = self._threads.thread(thread)
        except NoThread:  # the family outlives a member
            return
        metadata = stored_object(stored.metadata)
        changed = {name: value for name, value in (metadata | marks).items() if marks.get(name) is not False}
        if changed != metadata:
            # A mark is not a person's change, so the thread keeps its age.
            self._threads.change(thread, metadata=json.dumps(changed, ensure_ascii=False), at=stored.updated)


def mark_versions(rows: Sequence[JsonObject], forks: Mapping[int, tuple[str, ...]], thread: str, *, last: bool) -> None:
    """Mark the rows where versions part with the threads of those versions. `last`: the thread ends with these rows.

    If the row of a fork is not a message, the next message gets the mark; if there is none yet, the one before.
    """
    messages = [row for row in rows if row["kind"] == "message" and row["role"] != "tool"]
    for fork, versions in forks.items():
        if not rows or fork < cast("int", rows[0]["order"]):
            continue
        row = next((row for row in messages if cast("int", row["order"]) >= fork), None)
        if row is None and last and messages:
            row = messages[-1]
        if row is not None:
            row["versions"] = {"at": versions.index(thread), "threads": [*versions]}


def is_hidden(metadata: JsonObject) -> bool:
    """Return whether the lists show another version in the place of a thread with this metadata."""
    return bool(metadata.get(HIDDEN))


def _dump(family: Family) -> JsonText:
    members: list[Json] = [[member.thread, member.parent, member.shared] for member in family.members]
    return json.dumps({"shown": family.shown, "members": members}, ensure_ascii=False)


def _load(text: JsonText | None) -> Family | None:
    """Return the family; None if there is none, or it cannot be read."""
    try:
        fields = json.loads(text or "")
        members = tuple(Member(str(name), str(parent), int(shared)) for name, parent, shared in fields["members"])
        return Family(members, str(fields["shown"])) if members else None
    except (ValueError, KeyError, TypeError):
        return None
