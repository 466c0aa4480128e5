"""Puts a chat together and takes it apart: store, model, agent, terminal; for a person, a pipe or a program."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import click
from stamina.instrumentation import set_on_retry_hooks

from everlong.agent import AgentConfig, TurnEnded
from everlong.cli.chat.commands import COMMANDS, run_command, talk_threads
from everlong.cli.chat.json_lines import event_json, meter_json, write_line
from everlong.cli.chat.keyboard import Keyboard, is_person
from everlong.cli.chat.options import ChatOptions, config_for, for_local_model
from everlong.cli.chat.sample import begin_sample
from everlong.cli.chat.screen import Screen
from everlong.cli.chat.session import Session, Setup, opened_session
from everlong.cli.chat.source import Asking, Source, choose, default_model, local_source
from everlong.cli.chat.turns import Chat, Desk, Worker
from everlong.cli.sessions.options import Setting, stored_in, the_thread
from everlong.cli.terminal.tables import amount, console
from everlong.cli.terminal.text import one_line
from everlong.cli.words.wording import Words
from everlong.engine import Threads
from everlong.errors import EverlongError, InputError
from everlong.llm import HttpModel, cache_folder, registry_now
from everlong.store import default_store

__all__ = ["prompt_loop", "run"]

#: Lines that begin like a command and are none: a path that was pasted first.
NOT_COMMANDS = ("//", "/ ")


def prompt_loop(chat: Chat, keyboard: Keyboard) -> None:
    """Until /exit, the end of input, or Ctrl-C twice in a row."""
    interrupted = False
    while not chat.leaving:
        try:
            said = keyboard.message()
            interrupted = False
        except EOFError:
            chat.screen.out.print()
            return
        except KeyboardInterrupt:
            chat.screen.out.print()
            if interrupted:
                return
            interrupted = True
            chat.screen.note(chat.say("again_to_leave"))
            continue
        try:
            _do(chat, said)
        except KeyboardInterrupt:  # in the middle of a command: it is given up
            chat.screen.note(chat.say("interrupted"), "yellow")
        except EverlongError as error:  # the store is away, or the like; the person decides
            chat.screen.fail(one_line(str(error)))


def _do(chat: Chat, said: str) -> None:
    line = said.strip()
    if line.startswith("/") and not line.startswith(NOT_COMMANDS) and "/" not in line[1:].partition(" ")[0]:
        run_command(chat, line)
    elif line or chat.pictures:
        chat.turn(said)
        chat.show_meter()
    else:
        chat.tell_notices()


MOST_PIPED = 4_000_000  # characters of standard input
LATEST = 1
FENCE = "<stdin>\n{text}\n</stdin>"


def run(options: ChatOptions) -> None:
    """Chat until it is over. Raises the error of a turn that failed where nobody is there to see it."""
    say = Words(options.language, "chat")
    set_on_retry_hooks(())  # they write to the terminal; what fails in the end is told
    person = is_person()
    said = _piped(options, say, person=person)
    if said is None and options.json_wanted:
        raise click.UsageError("--json is for one message: give -m TEXT, or text on standard input")
    keyboard = Keyboard(
        [command.name for command in COMMANDS],
        with_paths=("/image",),
        history=_history_file() if said is None else None,
    )
    with ExitStack() as stack:
        chat = stack.enter_context(_opened(options, say, keyboard if person else None))
        _enter_thread(chat, options, talking=said is None)
        if said is not None:
            _one_shot(chat, said, options)
            return
        stack.callback(keyboard.close)
        prompt_loop(chat, keyboard)
        if any(thread.id == chat.session.thread for thread in talk_threads(chat, LATEST)):
            chat.screen.note(say("bye", thread=chat.session.thread))


def _piped(options: ChatOptions, say: Words, *, person: bool) -> str | None:
    """What is to be said in one shot; None if someone is there to type."""
    text = ""
    if not person and sys.stdin is not None:
        text = sys.stdin.buffer.read(4 * MOST_PIPED).decode("utf-8", "replace")[:MOST_PIPED]
        if "\0" in text:
            raise InputError(say("no_stdin_text"))
    if options.message is None and person:
        return None
    attached = FENCE.format(text=text.rstrip("\n")) if text.strip() and options.message else text.strip()
    said = "\n\n".join(filter(None, ((options.message or "").strip(), attached)))
    if not said:
        raise InputError(say("nothing_said"))
    return said


@contextmanager
def _opened(options: ChatOptions, say: Words, asking: Asking | None) -> Iterator[Chat]:
    config, ignored = config_for(options, os.environ)
    desk = Desk()
    screen = _screen(say)
    if ignored:
        screen.note(say("ignored_fields", fields=", ".join(ignored)), "yellow")
    with ExitStack() as stack:
        source = stack.enter_context(_source(options, config, asking, screen))
        threads = stack.enter_context(_store(options))
        worker = stack.enter_context(Worker())
        if source.local:
            config = for_local_model(config)
        else:
            config = replace(config, model=worker.do(default_model(config, options, source.endpoint)))
        model = HttpModel(source.endpoint)
        stack.callback(lambda: worker.do(model.close()))
        setup = Setup(
            threads=threads,
            model=model,
            config=config,
            approve=desk.approve,
            tools=not options.no_tools and not source.local,
            small=source.local,
            registry=registry_now(cache_folder(os.environ)),
        )
        session = stack.enter_context(_session(worker, setup, screen, patient=asking is None))
        watch = (lambda event: write_line(event_json(event))) if options.json_wanted else None
        yield Chat(
            worker=worker,
            session=session,
            screen=screen,
            say=say,
            desk=desk,
            asking=None if options.json_wanted else asking,
            watch=watch,
        )


@contextmanager
def _session(worker: Worker, setup: Setup, screen: Screen, *, patient: bool) -> Iterator[Session]:
    entered = opened_session(setup)
    session, problems = worker.do(entered.__aenter__())
    for problem in problems:
        screen.note(one_line(problem), "yellow")
    try:
        yield session
        worker.do(session.leave(patient=patient))
    finally:
        worker.do(entered.__aexit__(None, None, None))


def _screen(say: Words) -> Screen:
    out = console()
    return Screen(out, say, aside=None if out.is_terminal else console(stderr=True))


@contextmanager
def _source(options: ChatOptions, config: AgentConfig, asking: Asking | None, screen: Screen) -> Iterator[Source]:
    say = screen.say
    endpoint = choose(options, config, os.environ, asking, say)
    if endpoint is not None:
        yield Source(endpoint)
        return
    screen.note(say("starting_local"))
    with local_source(screen.note, sample=options.sample) as source:
        yield source


@contextmanager
def _store(options: ChatOptions) -> Iterator[Threads]:
    url = options.store or default_store(os.environ, sys.platform)
    with stored_in(Setting(url, False, Words(options.language, "sessions")), new=True) as threads:
        yield threads


def _history_file() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "everlong" / "chat-history"


def _enter_thread(chat: Chat, options: ChatOptions, *, talking: bool) -> None:
    """The thread that is meant, and, for a person, where they are."""
    session, say = chat.session, chat.say
    if talking:
        known = chat.worker.do(session.window())
        figures = say("window_known" if known.known else "window_unknown", n=amount(known.context))
        chat.screen.note(say("hello", model=one_line(session.config.model), window=figures), "bold")
        chat.screen.note(say("hello_help"))
        if session.setup.small:
            chat.screen.note(say("no_tools_local"))
    thread = options.thread and the_thread(session.engine.threads, options.thread).id
    if options.latest:
        latest = talk_threads(chat, LATEST)
        if not latest:
            raise InputError(say("threads_none"))
        thread = latest[0].id
    if options.sample:
        messages, window = chat.worker.do(begin_sample(session))
        figures = say.many("messages", messages)
        chat.screen.note(say("sample_begun", messages=figures, window=amount(window)))
        chat.show_meter()
    if thread:
        chat.worker.do(session.switch(thread))
        if talking:
            chat.welcome_back()


def _one_shot(chat: Chat, said: str, options: ChatOptions) -> None:
    chat.screen.told_elsewhere = True
    try:
        ended = chat.turn(said)
    except EverlongError as error:
        if options.json_wanted:
            write_line({"event": "failed", "error": str(error), "kind": "program", "begun": False})
        raise
    meter = chat.worker.do(chat.session.meter())
    if options.json_wanted and meter is not None:
        write_line(meter_json(meter, chat.session.thread, chat.session.config.model))
    elif chat.screen.aside.is_terminal:
        chat.show_meter()
    _check(chat, ended)


def _check(chat: Chat, ended: TurnEnded | None) -> None:
    """A turn that came to nothing is an error for whoever called."""
    if ended is not None and ended.reason == "interrupted":
        raise click.Abort
    if ended is None or ended.reason == "failed":
        raise InputError(chat.error or chat.say("failed"))
