"""The vectors of threads: computed in the background when messages arrive, read at a compaction.

A separate worker embeds messages in the order of their arrival, and stores the vectors with the messages. No request
waits for that: a message without a vector is ranked by its words alone. Only a question that was not embedded on
arrival is embedded at a compaction: by a fast model at once, by others in the worker, with a short time limit.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from datetime import datetime
from threading import Condition, Thread

from everlong.core import Message, Ref, Role, Row, ref_of
from everlong.engine.contracts import Threads
from everlong.errors import InputError, NoThread, StoreError
from everlong.relevance import Embedder, Index, Likeness, embedder_named, likeness_of, pieces_said

__all__ = ["ThreadVectors", "thread_vectors"]

AT_ONCE, AT_ONCE_SLOW = 64, 4  # pieces per batch; questions are answered between two batches
MOST_PIECES = 64  # of one message; later pieces are ranked by their words
PATIENCE = 0.25  # seconds that a compaction waits for the question's vector
ENDING = 5.0  # seconds that closing waits for the batch in progress
REMEMBERED = 1_024  # threads; also messages whose vectors stay in memory, because one may be the next question
WORK = 1 << 60  # the start for a thread with tool calls, beyond its end: vectors are used for talk only


def thread_vectors(threads: Threads, semantic: str) -> "ThreadVectors | None":
    """Return the vectors of the threads in a store, by the model that the setting names; None for "off"."""
    embedder = embedder_named(semantic)
    return None if embedder is None else ThreadVectors(threads, embedder)


class ThreadVectors:
    """Implements `Vectors` for the threads of one store with one model. May be used from any thread of the process."""

    def __init__(self, threads: Threads, embedder: Embedder) -> None:
        self._threads = threads
        self._embedder = embedder
        self._batch = AT_ONCE if embedder.quick else AT_ONCE_SLOW
        self._changed = Condition()
        self._arrived: OrderedDict[str, None] = OrderedDict()
        self._asked: deque[tuple[str, Future[bytes]]] = deque()
        self._known: OrderedDict[str, tuple[datetime, int]] = OrderedDict()
        self._newest: OrderedDict[Ref, bytes] = OrderedDict()
        self._worker: Thread | None = None
        self._busy = self._closed = False
        self._failure = ""

    def arrive(self, thread: str) -> None:
        """Embed the new messages of a thread in the background. Returns at once."""
        with self._changed:
            if not self._closed:
                self._arrived[thread] = None
                self._wake()

    def likeness(self, thread: str, orders: Sequence[int]) -> Likeness:
        """Return a function that compares a question with the messages of a history; `orders` are their orders.

        Only the vector of a question is computed, once for each question.
        """
        asked: dict[str, bytes | None] = {}
        kept: dict[int, bytes] = {}

        def likeness(index: Index, question: str) -> Sequence[float]:
            if question not in asked:
                asked[question] = self._question(question)
            vector = asked[question]
            if vector is None:
                return ()
            if not kept:
                kept.update(self._threads.vectors(thread, self._embedder.name))
            return likeness_of(vector, _by_chunk(index, orders, kept, len(vector)))

        return likeness

    def take_failure(self) -> str:
        """Return why vectors could not be made, once; "" if there is nothing new to report."""
        failure, self._failure = self._failure, ""
        return failure

    def drain(self) -> None:
        """Wait until everything that arrived is embedded."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not (self._busy or self._arrived or self._asked))

    def close(self) -> None:
        """End the worker after the current batch. The rest is embedded when its threads are used again."""
        with self._changed:
            self._closed = True
            for _, future in self._asked:
                future.cancel()
            self._changed.notify_all()
            worker = self._worker
        if worker is not None:
            worker.join(ENDING)

    # --- the question ---------------------------------------------------------------------------------------------

    def _question(self, text: str) -> bytes | None:
        if (vector := self._newest.get(ref_of(text))) is not None:
            return vector
        if self._embedder.quick:
            return self._embedder.vectors([text])[0]
        future: Future[bytes] = Future()
        with self._changed:
            if self._closed:
                return None
            self._asked.append((text, future))
            self._wake()
        with suppress(TimeoutError, CancelledError, InputError):
            return future.result(PATIENCE)
        return None

    # --- the worker -----------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        """Wake the worker, or start it. The caller holds the lock."""
        if self._worker is None:
            self._worker = Thread(target=self._work, name="vectors", daemon=True)
            self._worker.start()
        self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed or self._arrived or self._asked)
                if self._closed:
                    return
                self._busy = True
                thread = next(iter(self._arrived), None)
                if thread is not None:
                    del self._arrived[thread]
            self._answer()
            if thread is not None:
                with suppress(NoThread, StoreError):  # the thread was removed, or the store was closed
                    self._learn(thread)

    def _answer(self) -> None:
        """Embed the questions that compactions wait for."""
        while True:
            with self._changed:
                if not self._asked:
                    return
                text, future = self._asked.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._embedder.vectors([text])[0])
                except InputError as error:
                    self._failure = str(error)
                    future.set_exception(error)

    def _learn(self, thread: str) -> None:
        """Embed the messages since the last one with a vector."""
        found = self._threads.thread(thread)
        created, start = self._known.get(thread, (found.created, -1))
        if created != found.created or start < 0:
            start = max(self._threads.vectors(thread, self._embedder.name), default=-1) + 1
        batch: dict[int, list[str]] = {}
        for row in self._threads.read(thread, start) if start < found.length else ():
            if isinstance(row.entry, Message) and (row.entry.calls or row.entry.results):
                batch, start = {}, WORK
                break
            start = row.order + 1
            pieces = _pieces(row)
            if pieces:
                batch[row.order] = pieces
            if sum(map(len, batch.values())) >= self._batch:
                self._keep(thread, batch)
                batch = {}
                self._answer()
                if self._closed:
                    return
        self._keep(thread, batch)
        self._known[thread] = (found.created, start)
        self._known.move_to_end(thread)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def _keep(self, thread: str, batch: Mapping[int, list[str]]) -> None:
        if batch:
            try:
                every = iter(self._embedder.vectors([piece for pieces in batch.values() for piece in pieces]))
            except InputError as error:  # these messages are ranked by their words
                self._failure = str(error)
                return
            made = {order: [next(every) for _ in pieces] for order, pieces in batch.items()}
            for order, pieces in batch.items():
                self._newest[ref_of(pieces[0])] = made[order][0]
            while len(self._newest) > REMEMBERED:
                self._newest.popitem(last=False)
            joined = {order: b"".join(vectors) for order, vectors in made.items()}
            self._threads.keep_vectors(thread, self._embedder.name, joined)


def _pieces(row: Row) -> list[str]:
    """The pieces of a message by a user or an assistant."""
    spoken = isinstance(row.entry, Message) and row.entry.role in (Role.USER, Role.ASSISTANT)
    return pieces_said(row.entry)[:MOST_PIECES] if spoken and isinstance(row.entry, Message) else []


def _by_chunk(index: Index, orders: Sequence[int], kept: Mapping[int, bytes], size: int) -> list[bytes | None]:
    """Return the vector of each chunk; the chunks of a message are consecutive."""
    vectors: list[bytes | None] = []
    at, place = -1, 0
    for chunk in index.chunks:
        at, place = (at, place + size) if chunk.at == at else (chunk.at, 0)
        of_message = kept.get(orders[at], b"") if at < len(orders) else b""
        vectors.append(of_message[place : place + size] or None)
    return vectors
