"""Which messages were accepted: a page that is not sure whether its message arrived sends it again with the same name.

The names of messages that are not stored yet are kept here; a stored message has its name as the id of its row. A
message that arrives at a process that does not run the turn of its thread is passed to the right one through the store.
"""

import asyncio
import json
import re
from collections import OrderedDict
from time import time
from uuid import uuid4

from everlong.core import JsonText, Message
from everlong.engine import Threads
from everlong.errors import StoreError
from everlong.store import decode_entry, encode_entry, kind_of

__all__ = ["HandedMessages", "SentMessages", "is_message_name"]

HANDED = "app message"  # the kind of the facts

REMEMBERED = 2_000  # names of the messages that were accepted last
MESSAGE_NAME = re.compile(r"[A-Za-z0-9-]{8,64}")


def is_message_name(text: str) -> bool:
    """Return whether a page may give a message that name. Example: "3f0c2a11-6f0e-4a52-9a44-0e7e2f0f8a01" -> True"""
    return MESSAGE_NAME.fullmatch(text) is not None


class SentMessages:
    """The names of accepted messages. Belongs to one event loop."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._taken: OrderedDict[tuple[str, str], None] = OrderedDict()

    def take(self, thread: str, name: str) -> bool:
        """Accept a message once; return whether it is new. A message without a name always is."""
        key = (thread, name)
        if not name:
            return True
        if key in self._taken:
            return False
        self._taken[key] = None
        while len(self._taken) > REMEMBERED:
            self._taken.popitem(last=False)
        return True

    def release(self, thread: str, name: str) -> None:
        """Forget a message that could not be stored after all: it may be sent again."""
        self._taken.pop((thread, name), None)

    async def stands(self, thread: str, name: str) -> bool:
        """Return whether a message of that name is in the thread."""
        return bool(name) and await asyncio.to_thread(self._threads.row, thread, name) is not None

    async def unanswered(self, thread: str, name: str) -> bool:
        """Return whether the message is the last of its thread: the program ended before its answer began."""
        newest = await asyncio.to_thread(self._threads.last, thread, 1)
        return bool(newest) and newest[-1].id == name and isinstance(newest[-1].entry, Message)


class HandedMessages:
    """Messages for a turn that runs in another process. Reads and writes the store; safe in any thread."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    def give(self, thread: str, message: Message, name: str) -> None:
        """Keep a message for the process that runs the turn of its thread."""
        said = {"message": encode_entry(message), "kind": kind_of(message)}
        fields = {"name": name, "at": time(), **said}
        self._threads.keep_fact(HANDED, f"{thread} {name or uuid4().hex}", json.dumps(fields))

    def take(self, thread: str) -> list[tuple[Message, str]]:
        """Take the messages for a thread, each once in all processes, oldest first, with their names."""
        taken: list[tuple[float, Message, str]] = []
        for key in self._threads.facts(HANDED):
            if not key.startswith(f"{thread} "):
                continue
            found: list[JsonText] = []

            def change(value: JsonText | None, found: list[JsonText] = found) -> None:
                found[:] = [] if value is None else [value]

            self._threads.change_fact(HANDED, key, change)
            for value in found:
                fields = json.loads(value)
                entry = decode_entry(fields["kind"], fields["message"])
                if not isinstance(entry, Message):
                    raise StoreError("the stored message cannot be read")
                taken.append((fields["at"], entry, fields["name"]))
        return [(message, name) for _, message, name in sorted(taken, key=lambda one: one[0])]
