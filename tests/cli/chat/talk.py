"""A chat in process with a scripted model, and the program in a terminal of its own."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path

import pexpect
from rich.console import Console

from everlong.agent import AgentConfig
from everlong.cli.chat.commands import run_command
from everlong.cli.chat.screen import Screen
from everlong.cli.chat.session import Setup, open_session
from everlong.cli.chat.turns import Chat, Inbox, Worker
from everlong.cli.words.english import ENGLISH
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.engine import Settings
from everlong.llm import ScriptedModel, Window, echo
from everlong.llm.scripted.script import Script
from everlong.store import open_store

WIDTH = 100
SECONDS = 30  # that a test waits for what must come


@dataclass
class Person:
    """Answers what is asked, in turn; then nothing."""

    answers: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def line(self, prompt: str) -> str:
        self.asked.append(prompt)
        return self.answers.pop(0) if self.answers else ""

    secret = line


@dataclass
class Talk:
    """A chat and what is seen of it."""

    chat: Chat
    model: ScriptedModel
    person: Person
    _seen: StringIO

    def say(self, text: str) -> str:
        """Say something; what is shown."""
        return self._shown(lambda: (self.chat.turn(text), self.chat.show_meter()))

    def do(self, command: str) -> str:
        """Give a command; what is shown."""
        return self._shown(lambda: run_command(self.chat, command))

    def _shown(self, work: Callable[[], object]) -> str:
        start = self._seen.tell()
        work()
        self._seen.seek(start)
        return self._seen.read()


@contextmanager
def talking(
    folder: Path,
    script: Script = echo,
    *,
    window: int = 16_000,
    told: bool = True,
    tools: bool = True,
    language: Language = ENGLISH,
    store: str = "memory:",
    terminal: bool = False,
    small: bool = False,
    settings: Settings | None = None,
    asked: bool = True,
    remembered: Path | None = None,
) -> Iterator[Talk]:
    seen, say, inbox, person = StringIO(), Words(language, "chat"), Inbox(), Person()
    model = ScriptedModel(script, Window(window if told else 1 << 40, told=told))
    out = Console(file=seen, width=WIDTH, highlight=False, force_terminal=terminal, color_system=None)
    config = AgentConfig(model="scripted", workspace=folder, engine=settings or Settings(window=None))
    config = replace(config, remembered=remembered)
    with open_store(store) as threads, Worker() as worker:
        setup = Setup(
            threads=threads,
            model=model,
            config=config,
            permissions=inbox.guard(config.permissions(inbox.approve)) if asked else config.permissions(),
            tools=tools,
            small=small,
            registry=None,
        )
        entered = open_session(setup)
        session, _ = worker.do(entered.__aenter__())
        chat = Chat(worker=worker, session=session, screen=Screen(out, say), say=say, inbox=inbox)
        chat.person = person if asked else None
        try:
            yield Talk(chat, model, person, seen)
            worker.do(session.leave(patient=True))
        finally:
            worker.do(entered.__aexit__(None, None, None))


PROGRAM = "from everlong.cli.main import main\nmain()\n"
COMMAND = [sys.executable, "-c", PROGRAM, "chat"]
PROMPT = "› "
KEYS = ("OPENAI", "ANTHROPIC", "EVERLONG", "GEMINI", "DEEPSEEK", "OPENROUTER", "GROQ", "XAI", "MISTRAL", "MOONSHOT")


def environment(folder: Path) -> dict[str, str]:
    """Nothing of the machine's own: no keys, no store, no history."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith((*KEYS, "DASHSCOPE", "ZHIPU"))}
    home = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    own = {"EVERLONG_STORE": str(folder / "threads.db"), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        kept.pop(name, None)
    return kept | home | own | {"XDG_CACHE_HOME": str(folder)}


def _hear_interrupts() -> None:
    """A shell that starts the tests in the background makes them ignore Ctrl-C; a terminal never does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def terminal(folder: Path, *options: str, size: tuple[int, int] = (40, 100)) -> Iterator["pexpect.spawn[str]"]:
    """The program in a terminal, as a person has it."""
    child = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], *options],
        cwd=str(folder),
        env=environment(folder),
        encoding="utf-8",
        timeout=SECONDS,
        dimensions=size,
        preexec_fn=_hear_interrupts,
    )
    try:
        yield child
    finally:
        child.close(force=True)
