"""Whole conversations in the store, where the gateway is told to keep them: threads like any others.

They can be listed, searched and exported with `everlong sessions`. A conversation that turns off earlier is a branch.
Everything here runs behind the answers, in the one thread that writes.
"""

import json
from dataclasses import dataclass
from uuid import uuid4

from everlong.core import Role
from everlong.engine import Threads, text_title
from everlong.errors import NoThread
from everlong.gateway.conversation import Conversation
from everlong.gateway.keeping import OURS, Keeping

__all__ = ["Texts"]

NOTES = "threads"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A thread that holds the first `units` of a conversation in its first `rows`."""

    thread: str
    units: int
    rows: int


class Texts:
    """Writes conversations down as they grow."""

    def __init__(self, kept: Keeping) -> None:
        self._kept = kept
        self._last: dict[str, _Kept] = {}

    def keep(self, conversation: Conversation) -> None:
        """Write down, soon, what the conversation says now."""
        units = len(conversation.digests)
        if self._kept.keep == "text" and units:
            self._kept.later(lambda: self._write(conversation, units))

    def forget(self, conversation: Conversation) -> None:
        """The conversation left memory; where it is kept is found again by what it says."""
        self._kept.later(lambda: self._last.pop(conversation.thread, None))

    def _write(self, conversation: Conversation, units: int) -> None:
        """The first `units` of the conversation: these do not change any more, whatever is added meanwhile."""
        store = self._kept.store
        known = self._last.get(conversation.thread) or self._found(conversation, units)
        if known is not None and known.units >= units:
            self._last[conversation.thread] = known
            return
        kept = (known and self._continued(store, known)) or self._begun(store, conversation)
        new = [message for unit in conversation.said[kept.units : units] for message in unit]
        store.append(kept.thread, new, expected=kept.rows)
        kept = _Kept(kept.thread, units, kept.rows + len(new))
        self._last[conversation.thread] = kept
        note = json.dumps({"thread": kept.thread, "rows": kept.rows})
        self._kept.keep_note(NOTES, _place(conversation), conversation.digests[units - 1].hex(), note)

    def _found(self, conversation: Conversation, units: int) -> _Kept | None:
        """The thread that holds the longest part of what is said."""
        notes = self._kept.notes(NOTES, _place(conversation))
        for length in range(units, 0, -1):
            note = notes.get(conversation.digests[length - 1].hex())
            if note is not None:
                said = json.loads(note)
                return _Kept(said["thread"], length, said["rows"])
        return None

    def _continued(self, store: Threads, known: _Kept) -> _Kept | None:
        """The thread itself where it ends there; a branch of it where it went on otherwise; None if it was removed."""
        try:
            thread = store.thread(known.thread)
            if thread.length == known.rows:
                return known
            branch = store.branch(known.thread, known.rows, uuid4().hex, title=thread.title)
        except NoThread:
            return None
        return _Kept(branch.id, known.units, known.rows)

    def _begun(self, store: Threads, conversation: Conversation) -> _Kept:
        said = [message for unit in conversation.said for message in unit]
        asked = next((message.text for message in said if message.role is Role.USER and message.text), "")
        thread = store.create(uuid4().hex, owner=OURS + conversation.scope, title=text_title(asked))
        store.append(thread.id, conversation.opening)
        return _Kept(thread.id, 0, len(conversation.opening))


def _place(conversation: Conversation) -> str:
    return f"{conversation.scope}/{conversation.root}"
