"""Turns at a terminal: the agent works in a separate thread; the main thread shows its events and asks the person.

So summaries continue while someone types, only one thread reads and draws the terminal, and a signal never interrupts
the agent in the middle of its work. Ctrl-C stops a running turn; at a question it means no.
"""

import asyncio
import queue
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self, TypeVar

from everlong.agent import Action, AgentEvent, Answer, Permissions, TurnEnded
from everlong.cli.chat.attachments import command_output, files_named
from everlong.cli.chat.drawing import markdown, plain
from everlong.cli.chat.keyboard import Person, echoed, unechoed
from everlong.cli.chat.screen import Screen
from everlong.cli.chat.session import Session
from everlong.cli.terminal.text import clean, one_line
from everlong.cli.words.wording import LANGUAGES, Words
from everlong.core import Event, Image, Message, Role, Text
from everlong.engine import Failed, text_title

__all__ = ["Chat", "Inbox", "Worker"]

TICK = 0.1  # seconds between two redrawings while nothing arrives
LOOKED_BACK = 50  # messages that are searched for the last user message
LONGEST_SAID = 4_000  # characters of the last user message that are used for a title
LONGEST_ANSWER = 8_000  # characters of the last answer, when a thread is continued
MOST_OUTPUT = 20_000  # characters of a typed command's output that are shown
#: The first letters of the answers; yes is accepted in every language.
ANSWERS = {"t": Answer.THREAD, "a": Answer.ALWAYS} | {language.yes: Answer.ONCE for language in LANGUAGES}

T = TypeVar("T")


class Worker:
    """An event loop in a separate thread while it is entered. Remaining tasks are cancelled at the end."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="everlong-chat", daemon=True)

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start a coroutine and return its future."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result. Ctrl-C cancels it and is raised at once."""
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
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
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


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """A call that waits for approval."""

    action: Action
    answer: "asyncio.Future[Answer]"

    def settle(self, given: Answer) -> None:
        """Set the answer, in the event loop; the turn may be over by now."""
        if not self.answer.done():
            self.answer.set_result(given)


class Inbox:
    """What the agent's thread sends to the main thread: events, questions, and None at the end of a turn."""

    def __init__(self) -> None:
        self.items: queue.Queue[AgentEvent | Action | _Question | None] = queue.Queue()

    def guard(self, permissions: Permissions) -> Permissions:
        """Return permissions that also show each file change that needs no question, before it is made."""
        return replace(permissions, watch=self.items.put)

    async def approve(self, action: Action) -> Answer:
        """Ask the person whether a call is allowed; permissions call this."""
        question = _Question(action, asyncio.get_running_loop().create_future())
        self.items.put(question)
        return await question.answer


@dataclass(slots=True, kw_only=True)
class Chat:
    """A conversation at a terminal, or at a place where a terminal could be. Without a `person` nobody can be asked."""

    worker: Worker
    session: Session
    screen: Screen
    say: Words
    inbox: Inbox
    person: Person | None = None
    #: Receives every event of a turn and every notice, instead of the screen.
    watch: Callable[[AgentEvent | Event], None] | None = None
    #: Pictures and output of typed commands for the next message.
    attached: list[Image | Text] = field(default_factory=list)
    leaving: bool = False
    #: Why the last turn failed; "" if it did not.
    error: str = ""

    def turn(self, text: str) -> TurnEnded | None:
        """Send a message with its attachments, and show everything that follows. Raises the store's errors."""
        message = Message(Role.USER, (*((Text(text),) if text else ()), *self.attached))
        self.attached.clear()
        self.error = ""
        running = self.worker.start(self._pump(message))
        ended: TurnEnded | None = None
        if self.watch is None:
            self.screen.begin()
        try:
            with _interrupts(self._stop), unechoed():
                while (item := self._next(running.done)) is not None:
                    if isinstance(item, TurnEnded):
                        ended = item
                    self._handle(item)
        finally:
            self.screen.end()
        running.result()
        self.show_notices()
        return ended

    async def _pump(self, message: Message) -> None:
        try:
            async for event in self.session.turn(message):
                self.inbox.items.put(event)
        finally:
            self.inbox.items.put(None)

    def _next(self, over: Callable[[], bool]) -> AgentEvent | Action | _Question | None:
        """Wait for the next item; redraw the open part meanwhile."""
        while True:
            try:
                return self.inbox.items.get(timeout=TICK)
            except queue.Empty:
                if over():
                    return None
                self.show_notices()
                self.screen.draw()

    def _handle(self, item: AgentEvent | Action | _Question) -> None:
        self.show_notices()
        if isinstance(item, Failed):
            self.error = one_line(str(item.error))
        if isinstance(item, _Question):
            if not item.answer.done():  # otherwise the call timed out or was stopped
                self.worker.loop.call_soon_threadsafe(item.settle, self._ask(item))
        elif isinstance(item, Action):
            self.screen.change(item)
        elif self.watch is not None:
            self.watch(item)
        else:
            self.screen.show(item)

    def _stop(self) -> None:
        self.worker.loop.call_soon_threadsafe(self.session.interrupt)

    def _ask(self, question: _Question) -> Answer:
        """Show the person the whole action and ask whether it is allowed."""
        action = question.action
        if self.person is None:
            return Answer.NO
        self.screen.pause()
        self.screen.action(action)
        try:
            with _interrupts(_raise_interrupt), echoed():
                given = self.person.line(self.say("may_answer", choices=self._choices(action))).strip().lower()
        except KeyboardInterrupt:
            self.screen.aside.print()
            given = ""
        answer = ANSWERS.get(given[:1], Answer.NO)
        self.screen.resume()
        return answer if answer in action.answers else Answer.NO

    def _choices(self, action: Action) -> str:
        """Return the possible answers, each with what it covers."""
        texts = {
            Answer.ONCE: self.say(f"may_once_{action.kind}"),
            Answer.THREAD: self.say(f"may_thread_{action.kind}", tool=action.tool),
            Answer.ALWAYS: self.say("may_always", pattern=action.pattern),
            Answer.NO: self.say("may_no"),
        }
        return " / ".join(text for answer, text in texts.items() if answer in action.answers)

    # --- between turns ----------------------------------------------------------------------------

    def attach_named(self, text: str) -> None:
        """Attach the files that a message names with @; a line reports each one, or why it is not attached."""
        for file in files_named(text, self.session.config, self.say):
            if file.part is None:
                self.screen.note(file.problem, "yellow")
                continue
            self.attached.append(file.part)
            figures = self.say.many("lines", file.lines) if file.lines else self.say("attach_picture")
            self.screen.note(self.say("attach_file", name=file.name, figures=figures))

    def run_typed(self, command: str) -> None:
        """Run a command that the person typed, show its output, and attach it to the next message."""
        if not self.session.has_shell:
            self.screen.note(self.say("no_commands"), "yellow")
            return
        outcome = self.worker.do(self.session.run_typed(command))
        text = clean(outcome.text)
        left = len(text) - MOST_OUTPUT
        self.screen.out.print(plain(text[:MOST_OUTPUT]))
        if left > 0:
            self.screen.note(self.say.many("more_characters", left))
        self.attached.append(command_output(command, outcome.text))
        self.screen.note(self.say("command_attached"))

    def show_meter(self) -> None:
        """Show how full the window is now."""
        meter = self.worker.do(self.session.meter())
        self.show_notices()
        self.screen.meter(meter, self.session.config.model)

    def welcome_back(self) -> None:
        """Show where a thread was left that is continued now."""
        threads, thread = self.session.engine.threads, self.session.thread
        known = threads.thread(thread)
        title = one_line(known.title) or self.say("untitled")
        self.screen.note(self.say("goes_on", title=title, messages=self.say.many("messages", known.messages)))
        messages = [row.entry for row in threads.last(thread, LOOKED_BACK) if isinstance(row.entry, Message)]
        last = next((one.text for one in reversed(messages) if one.role is Role.USER and one.text), "")
        if last:
            self.screen.note(self.say("last_said", text=text_title(one_line(last[:LONGEST_SAID]))))
        answer = next((one.text for one in reversed(messages) if _speaks(one)), "")
        if answer and _speaks(messages[-1]):
            self.screen.out.print()
            self.screen.out.print(markdown(answer[:LONGEST_ANSWER]))
            if len(answer) > LONGEST_ANSWER:
                self.screen.note(self.say("more_not_shown"))
            self.screen.out.print()
        self.show_meter()

    def show_notices(self) -> None:
        """Show what happened to the thread outside of turns since the last time."""
        events: list[Event] = []
        while self.session.notices:
            events.append(self.session.notices.popleft())
        if self.watch is None:
            self.screen.notices(events)
            return
        for event in events:
            self.watch(event)


def _speaks(message: Message) -> bool:
    return message.role is Role.ASSISTANT and bool(message.text.strip())


@contextmanager
def _interrupts(stop: Callable[[], object]) -> Iterator[None]:
    """Let Ctrl-C call `stop`, so that it never interrupts a drawing."""
    before = signal.signal(signal.SIGINT, lambda *_: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _raise_interrupt() -> None:
    raise KeyboardInterrupt
