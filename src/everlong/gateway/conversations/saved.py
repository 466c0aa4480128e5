"""Whole conversations in the store, as threads, if the gateway is set to keep them."""

import json
from dataclasses import dataclass
from uuid import uuid4

from everlong.core import Role
from everlong.engine import Threads, text_title
from everlong.errors import NoThread
from everlong.gateway.conversations.conversation import Conversation
from everlong.gateway.conversations.state_store import OURS, StateStore

__all__ = ["SavedConversations"]

THREADS = "threads"  # the kind of notes about saved threads


@dataclass(frozen=True, slots=True)
class _SavedThread:
    """A thread whose first `rows` are the first `units` of a conversation."""

    thread: str
    units: int
    rows: int


class SavedConversations:
    """Stores whole conversations as threads while they grow, if the gateway is set to keep them.

    They can be listed, searched and exported with `everlong sessions`. A conversation that differs earlier becomes a
    branch. Everything is written in the background, by the single writer thread.
    """

    def __init__(self, state_store: StateStore) -> None:
        self._state_store = state_store
        self._last: dict[str, _SavedThread] = {}

    def keep(self, conversation: Conversation) -> None:
        """Store the conversation's current messages soon."""
        units = len(conversation.digests)
        if self._state_store.keep == "text" and units:
            self._state_store.later(lambda: self._write(conversation, units))

    def forget(self, conversation: Conversation) -> None:
        """Forget a conversation that left memory; its thread is found again by its messages."""
        self._state_store.later(lambda: self._last.pop(conversation.thread, None))

    def _write(self, conversation: Conversation, units: int) -> None:
        """Store the first `units` of the conversation; they no longer change, even if more are added meanwhile."""
        store = self._state_store.store
        known = self._last.get(conversation.thread) or self._find(conversation, units)
        if known is not None and known.units >= units:
            self._last[conversation.thread] = known
            return
        saved = (known and self._continue(store, known)) or self._begin(store, conversation)
        new = [message for unit in conversation.messages[saved.units : units] for message in unit]
        store.append(saved.thread, new, expected=saved.rows)
        saved = _SavedThread(saved.thread, units, saved.rows + len(new))
        self._last[conversation.thread] = saved
        note = json.dumps({"thread": saved.thread, "rows": saved.rows})
        self._state_store.keep_note(THREADS, _place(conversation), conversation.digests[units - 1].hex(), note)

    def _find(self, conversation: Conversation, units: int) -> _SavedThread | None:
        """Return the thread with the longest part of the conversation."""
        notes = self._state_store.notes(THREADS, _place(conversation))
        for length in range(units, 0, -1):
            note = notes.get(conversation.digests[length - 1].hex())
            if note is not None:
                fields = json.loads(note)
                return _SavedThread(fields["thread"], length, fields["rows"])
        return None

    def _continue(self, store: Threads, known: _SavedThread) -> _SavedThread | None:
        """Return the thread if it still ends there, a branch if it has grown otherwise, None if it was removed."""
        try:
            thread = store.thread(known.thread)
            if thread.length == known.rows:
                return known
            branch = store.branch(known.thread, known.rows, uuid4().hex, title=thread.title)
        except NoThread:
            return None
        return _SavedThread(branch.id, known.units, known.rows)

    def _begin(self, store: Threads, conversation: Conversation) -> _SavedThread:
        messages = [message for unit in conversation.messages for message in unit]
        question = next((message.text for message in messages if message.role is Role.USER and message.text), "")
        thread = store.create(uuid4().hex, owner=OURS + conversation.scope, title=text_title(question))
        store.append(thread.id, conversation.opening)
        return _SavedThread(thread.id, 0, len(conversation.opening))


def _place(conversation: Conversation) -> str:
    return f"{conversation.scope}/{conversation.root}"
