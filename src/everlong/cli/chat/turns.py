"""Turns at the terminal: the agent works in its thread, the main one shows what comes and asks what is asked.

Ctrl-C while a turn runs stops the turn; while something is asked it means no.
"""

import asyncio
import queue
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from everlong.agent import AgentEvent, TurnEnded
from everlong.cli.chat.drawing import words
from everlong.cli.chat.keyboard import echoed, unechoed
from everlong.cli.chat.screen import Screen
from everlong.cli.chat.session import Session
from everlong.cli.chat.source import Asking
from everlong.cli.terminal.text import clean, one_line
from everlong.cli.words.wording import LANGUAGES, Words
from everlong.core import Event, Image, Message, Role, Text
from everlong.engine import Failed, text_title

__all__ = ["Chat", "Desk", "Worker", "interrupts"]

T = TypeVar("T")


class Worker:
    """Runs coroutines while it is entered; those that are left at the end are cancelled and waited for."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="everlong-chat", daemon=True)

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin it; whoever wants to know waits for the future."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result. Ctrl-C cancels it, and is raised at once."""
        running = self.start(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            running.cancel()
            raise

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def _end(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
        await self.loop.shutdown_default_executor()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.start(self._end()).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


TICK = 0.1  # seconds between two looks at the clock, for signs that turn
LOOKED_BACK = 50  # messages, for what was asked last
ALLOWING = {"a", *(language.yes for language in LANGUAGES)}  # how an answer begins that allows a call
LONGEST_ASKED = 4_000  # characters of what is to be allowed


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    name: str
    what: str
    answer: "asyncio.Future[bool]"

    def settle(self, allowed: bool) -> None:
        """In the event loop; the turn may be over by now."""
        if not self.answer.done():
            self.answer.set_result(allowed)


class Desk:
    """What comes from the agent's thread to the main one: events, questions, and None at the end of a turn."""

    def __init__(self) -> None:
        self.inbox: queue.Queue[AgentEvent | _Question | None] = queue.Queue()

    async def approve(self, name: str, what: str) -> bool:
        """Ask the person; called by the agent."""
        question = _Question(name, what, asyncio.get_running_loop().create_future())
        self.inbox.put(question)
        return await question.answer


@contextmanager
def interrupts(stop: Callable[[], object]) -> Iterator[None]:
    """Ctrl-C calls `stop` here, and never breaks into the middle of a drawing."""
    before = signal.signal(signal.SIGINT, lambda *_: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(slots=True, kw_only=True)
class Chat:
    """A conversation at a terminal, or where a terminal could be. Without `asking` there is nobody to ask."""

    worker: Worker
    session: Session
    screen: Screen
    say: Words
    desk: Desk
    asking: Asking | None = None
    #: Told every event of a turn and every notice, in place of the screen.
    watch: Callable[[AgentEvent | Event], None] | None = None
    #: Pictures that go with the next message.
    pictures: list[Image] = field(default_factory=list)
    leaving: bool = False
    #: Why the last turn failed; "" if it did not.
    error: str = ""
    _always: set[str] = field(default_factory=set)

    def turn(self, text: str) -> TurnEnded | None:
        """Say something and show all that comes of it. Raises what the store raises."""
        said = Message(Role.USER, (*((Text(text),) if text else ()), *self.pictures))
        self.pictures.clear()
        self.error = ""
        running = self.worker.start(self._pump(said))
        ended: TurnEnded | None = None
        if self.watch is None:
            self.screen.begin()
        try:
            with interrupts(self._stop), unechoed():
                while (item := self._next(running.done)) is not None:
                    if isinstance(item, TurnEnded):
                        ended = item
                    self._take(item)
        finally:
            self.screen.end()
        running.result()
        self.tell_notices()
        return ended

    def show_meter(self) -> None:
        """How full the window is now."""
        meter = self.worker.do(self.session.meter())
        self.tell_notices()
        self.screen.meter(meter, self.session.config.model)

    def welcome_back(self) -> None:
        """Where a thread that is gone on with was left."""
        threads, thread = self.session.engine.threads, self.session.thread
        known = threads.thread(thread)
        title = one_line(known.title) or self.say("untitled")
        self.screen.note(self.say("goes_on", title=title, messages=self.say.many("messages", known.messages)))
        said = [row.entry for row in threads.last(thread, LOOKED_BACK) if isinstance(row.entry, Message)]
        asked = next((message.text for message in reversed(said) if message.role is Role.USER and message.text), "")
        if asked:
            self.screen.note(self.say("last_said", text=text_title(one_line(asked[:LONGEST_ASKED]))))
        self.show_meter()

    def tell_notices(self) -> None:
        """What happened beside the talk since it was last told."""
        events: list[Event] = []
        while self.session.notices:
            events.append(self.session.notices.popleft())
        if self.watch is None:
            self.screen.notices(events)
            return
        for event in events:
            self.watch(event)

    async def _pump(self, said: Message) -> None:
        try:
            async for event in self.session.turn(said):
                self.desk.inbox.put(event)
        finally:
            self.desk.inbox.put(None)

    def _next(self, over: Callable[[], bool]) -> AgentEvent | _Question | None:
        """What comes next; meanwhile what is open is redrawn."""
        while True:
            try:
                return self.desk.inbox.get(timeout=TICK)
            except queue.Empty:
                if over():
                    return None
                self.tell_notices()
                self.screen.draw()

    def _take(self, item: AgentEvent | _Question) -> None:
        self.tell_notices()
        if isinstance(item, Failed):
            self.error = one_line(str(item.error))
        if isinstance(item, _Question):
            if not item.answer.done():  # else the call is over: its time was, or it was stopped
                self.worker.loop.call_soon_threadsafe(item.settle, self._asked(item))
        elif self.watch is not None:
            self.watch(item)
        else:
            self.screen.show(item)

    def _stop(self) -> None:
        self.worker.loop.call_soon_threadsafe(self.session.interrupt)

    def _asked(self, question: _Question) -> bool:
        if question.name in self._always:
            return True
        if self.asking is None:
            self.screen.note(self.say("not_allowed", name=question.name), "yellow")
            return False
        self.screen.pause()
        out, what = self.screen.aside, clean(question.what)
        out.print(words(self.say("may", name=question.name), "bold yellow"))
        out.print(words(what[:LONGEST_ASKED]))
        if len(what) > LONGEST_ASKED:  # nobody allows unknowingly what is not seen
            out.print(words(self.say.many("more_characters", len(what) - LONGEST_ASKED), "bold red"))
        try:
            with interrupts(_raise_interrupt), echoed():
                answer = self.asking.line(self.say("may_answer")).strip().lower()
        except KeyboardInterrupt:
            out.print()
            answer = "n"
        if answer[:1] == "a":
            self._always.add(question.name)
        allowed = answer[:1] in ALLOWING
        if not allowed:
            self.screen.note(self.say("refused"))
        self.screen.resume()
        return allowed


def _raise_interrupt() -> None:
    raise KeyboardInterrupt
