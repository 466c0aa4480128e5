"""Store the text of running answers before any page shows it.

While an answer is written, the text so far is in the lease of its turn. It is removed at the end of the answer, when
the thread has the whole message. If a process dies, the text that it left becomes a message.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from everlong.core import Message, Role
from everlong.engine import Engine, PartialAnswer, Said, Thought
from everlong.errors import EverlongError, NoThread
from everlong.web.live.hub import Hub
from everlong.web.live.leases import Lease, Leases

__all__ = ["GrowingAnswer", "PartialAnswers"]

PACE = 0.03  # seconds between two writes: words that come meanwhile are written together
Piece: TypeAlias = tuple[Literal["said", "thought"], str]
log = logging.getLogger("everlong.web")


@dataclass(slots=True)
class GrowingAnswer:
    """An answer that is being written: what pages have received, and the pieces that are not stored yet."""

    model: str
    #: Which answer of its turn it is.
    number: int = 0
    text: str = ""
    thinking: str = ""
    unwritten: list[Piece] = field(default_factory=list)
    writer: "asyncio.Task[None] | None" = None

    @property
    def begun(self) -> bool:
        """Whether there is any piece of it."""
        return bool(self.text or self.thinking or self.unwritten)

    def clear(self) -> None:
        """Begin the next answer."""
        self.number += 1
        self.text = self.thinking = ""
        self.unwritten.clear()


class PartialAnswers:
    """The running answers of an app. Belongs to one event loop. `lost` gets a thread whose turn was taken over."""

    def __init__(self, engine: Engine, hub: Hub, leases: Leases, lost: Callable[[str], None]) -> None:
        self._engine = engine
        self._threads = engine.threads
        self._hub = hub
        self._leases = leases
        self._lost = lost

    def add(self, thread: str, answer: GrowingAnswer, piece: Said | Thought) -> None:
        """Store a piece and then send it to the pages, soon and in order."""
        answer.unwritten.append(("said" if isinstance(piece, Said) else "thought", piece.text))
        if answer.writer is None or answer.writer.done():
            answer.writer = asyncio.create_task(self._write(thread, answer), name=f"words of {thread}")

    async def drain(self, answer: GrowingAnswer) -> None:
        """Wait until every piece was sent to the pages."""
        if answer.writer is not None:
            await asyncio.wait([answer.writer])

    async def _write(self, thread: str, answer: GrowingAnswer) -> None:
        while answer.unwritten:
            pieces, answer.unwritten = answer.unwritten, []
            text = answer.text + "".join(text for kind, text in pieces if kind == "said")
            thinking = answer.thinking + "".join(text for kind, text in pieces if kind == "thought")
            try:
                write = partial(self._leases.write, thread, answer.number, answer.model, text, thinking)
                if not await asyncio.to_thread(write):
                    self._lost(thread)
            except EverlongError as error:  # the turn itself will say that the store is away
                log.debug("the partial answer in %s was not stored: %s", thread, error)
            for kind, words in pieces:
                before = len(answer.text if kind == "said" else answer.thinking)
                self._hub.publish(thread, {"type": kind, "text": words}, (answer.number, before))
                if kind == "said":
                    answer.text += words
                else:
                    answer.thinking += words
            await asyncio.sleep(PACE)

    async def settle(self, thread: str, answer: GrowingAnswer) -> None:
        """Delete the partial text of an answer that has ended: the thread has what stays of it."""
        await self.drain(answer)
        if answer.text or answer.thinking:
            answer.clear()
            await asyncio.to_thread(self._leases.write, thread, answer.number, answer.model, "", "")

    def keep(self, thread: str, lease: Lease) -> bool:
        """Turn the text that a dead process left into a message, once; return whether there was any."""
        message = PartialAnswer(lease.text, lease.thinking).message(lease.model, "broken off")
        if message is None:
            return False
        try:
            last = self._threads.last(thread, 1)
            if last and _has(last[-1].entry, message):
                return False
            name = [f"{lease.turn}-{lease.number}"] if lease.turn else None
            self._engine.blocking.append(thread, [message], ids=name)
        except NoThread:
            return False
        return True


def _has(entry: object, words: Message) -> bool:
    """Return whether the answer is already in the thread: the process died just after it was stored."""
    return isinstance(entry, Message) and entry.role is Role.ASSISTANT and entry.text.startswith(words.text)
