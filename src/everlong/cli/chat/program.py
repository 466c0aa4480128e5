"""A run of `everlong chat`: sets up the store, model, agent and terminal, uses them, and closes them.

Either someone types at a prompt, or one message comes from an option or a pipe and one answer is printed: as text, or
as lines of JSON for a program.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, assert_never

import click
from stamina.instrumentation import set_on_retry_hooks

from everlong.agent import (
    AgentConfig,
    AgentEvent,
    CallEnded,
    CallRefused,
    CallStarted,
    Entered,
    TurnEnded,
    sandbox_of,
)
from everlong.cli.chat.commands import COMMANDS, run_command, talk_threads
from everlong.cli.chat.keyboard import Keyboard, Person, is_person
from everlong.cli.chat.sample import begin_sample
from everlong.cli.chat.screen import Screen
from everlong.cli.chat.session import Session, Setup, open_session
from everlong.cli.chat.setup import (
    ChatOptions,
    Source,
    choose,
    config_for,
    default_model,
    for_local_model,
    local_source,
    witness_source,
)
from everlong.cli.chat.turns import Chat, Inbox, Worker
from everlong.cli.sessions.options import find_thread, session_store
from everlong.cli.terminal.tables import amount, console
from everlong.cli.terminal.text import one_line
from everlong.cli.words.wording import Words
from everlong.core import Event
from everlong.engine import CallGrew, Failed, Finished, Meter, Restarted, Said, Thought
from everlong.errors import ContextOverflow, EverlongError, InputError
from everlong.folders import place
from everlong.llm import WITNESS, HttpModel, cache_folder, registry_now
from everlong.store import default_store

__all__ = ["event_json", "run"]

MOST_PIPED = 4_000_000  # characters of standard input
USAGE = ("prompt", "cached", "cache_written", "output", "reasoning")
LATEST = 1
FENCE = "<stdin>\n{text}\n</stdin>"
#: Words that leave other programs; alone on a line they do so here too.
LEAVE = ("exit", "quit", ":q", ":q!", ":wq")
TYPED = "!"  # the prefix of a shell command
#: How a line begins that looks like a command but is a pasted path or text.
NOT_COMMANDS = ("//", "/ ")


def run(options: ChatOptions) -> None:
    """Chat until the person leaves, or answer one message. Raises the error of a failed turn if nobody saw it."""
    say = Words(options.language, "chat")
    set_on_retry_hooks(())  # they would write to the terminal; a final failure is shown anyway
    person = is_person()
    message = _single_message(options, say, person=person)
    if message is None and options.json_wanted:
        raise click.UsageError("--json needs one message: give it with -m TEXT or on standard input")
    keyboard = Keyboard(
        [command.name for command in COMMANDS],
        with_paths=("/image",),
        history=_history_file() if message is None else None,
    )
    with ExitStack() as stack:
        chat = stack.enter_context(_open_chat(options, say, keyboard if person else None))
        _enter_thread(chat, options, talking=message is None)
        if message is not None:
            _answer_once(chat, message, options)
            return
        stack.callback(keyboard.close)
        keyboard.folder = chat.session.config.workspace
        _prompt_loop(chat, keyboard)
        if any(thread.id == chat.session.thread for thread in talk_threads(chat, LATEST)):
            chat.screen.note(say("bye", thread=chat.session.thread))


def _single_message(options: ChatOptions, say: Words, *, person: bool) -> str | None:
    """Return the message of a run without a prompt; None if a person types."""
    text = ""
    if not person and sys.stdin is not None:
        text = sys.stdin.buffer.read(4 * MOST_PIPED).decode("utf-8", "replace")[:MOST_PIPED]
        if "\0" in text:
            raise InputError(say("no_stdin_text"))
    if options.message is None and person:
        return None
    attached = FENCE.format(text=text.rstrip("\n")) if text.strip() and options.message else text.strip()
    message = "\n\n".join(filter(None, ((options.message or "").strip(), attached)))
    if not message:
        raise InputError(say("nothing_said"))
    return message


def _history_file() -> Path:
    return place("state", "chat-history", environment=os.environ)


# --- setting up --------------------------------------------------------------------------------


@contextmanager
def _open_chat(options: ChatOptions, say: Words, person: Person | None) -> Iterator[Chat]:
    """Set up everything that a chat needs, and close it at the end."""
    config, ignored = config_for(options, os.environ)
    inbox, asking = Inbox(), person is not None and not options.json_wanted
    screen = _screen(say)
    if ignored:
        screen.note(say("ignored_fields", fields=", ".join(ignored)), "yellow")
    if config.unused:
        preset = config.engine.rules.name
        screen.note(say("unused_fields", fields=", ".join(config.unused), preset=preset), "yellow")
    if "model" in config.named and options.local is None:
        say.report_model(config.model)
    if not options.no_tools:
        sandbox_of(config)  # raises before anything is started
    with ExitStack() as stack:
        source = stack.enter_context(_source(options, config, person, screen))
        store = options.store or default_store(os.environ, sys.platform)
        threads = stack.enter_context(session_store(store, new=True))
        worker = stack.enter_context(Worker())
        if source.local:
            config = for_local_model(config)
        else:
            engine = replace(config.engine, window=source.window or config.engine.window)
            config = replace(config, model=worker.do(default_model(config, source.endpoint)), engine=engine)
        model = HttpModel(source.endpoint)
        stack.callback(lambda: worker.do(model.close()))
        setup = Setup(
            threads=threads,
            model=model,
            config=config,
            permissions=inbox.guard(config.permissions(inbox.approve)) if asking else config.permissions(),
            tools=not options.no_tools and not source.local,
            small=source.local,
            registry=registry_now(cache_folder(os.environ)),
        )
        session = stack.enter_context(_open_session(worker, setup, screen, patient=person is None))
        watch = (lambda event: _write_line(event_json(event))) if options.json_wanted else None
        yield Chat(
            worker=worker,
            session=session,
            screen=screen,
            say=say,
            inbox=inbox,
            person=person if asking else None,
            watch=watch,
        )


@contextmanager
def _open_session(worker: Worker, setup: Setup, screen: Screen, *, patient: bool) -> Iterator[Session]:
    """Open a session in the worker's event loop; background work ends before it is closed."""
    entered = open_session(setup)
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
def _source(options: ChatOptions, config: AgentConfig, person: Person | None, screen: Screen) -> Iterator[Source]:
    """Find the model, and start its server if it is the local one."""
    say = screen.say
    if options.upstream == WITNESS:
        with witness_source() as source:
            yield source
        return
    endpoint = choose(options, config, os.environ, person, say)
    if endpoint is not None:
        yield Source(endpoint)
        return
    screen.note(say("starting_local"))
    with local_source(options, config.engine.window, screen.note) as source:
        yield source


def _enter_thread(chat: Chat, options: ChatOptions, *, talking: bool) -> None:
    """Continue the thread in the options, or create the sample; greet a person."""
    session, say = chat.session, chat.say
    if talking:
        known = chat.worker.do(session.window())
        figures = say("window_known" if known.known else "window_unknown", n=amount(known.context))
        chat.screen.note(say("hello", model=one_line(session.config.model), window=figures), "bold")
        chat.screen.note(say("hello_help"))
        if session.setup.small:
            chat.screen.note(say("no_tools_local"))
    if session.setup.tools:
        _report_sandbox(chat, talking=talking)
    thread = options.thread and find_thread(session.engine.threads, options.thread).id
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


def _report_sandbox(chat: Chat, *, talking: bool) -> None:
    """Say what commands may do; a program is warned only if they may do everything despite the setting."""
    sandbox = sandbox_of(chat.session.config)
    if sandbox.kind and talking:
        network = chat.say("sandbox_network" if sandbox.network else "sandbox_no_network")
        chat.screen.note(chat.say("sandbox_on", kind=sandbox.kind, network=network))
    elif not sandbox.kind and (talking or sandbox.asked != "off"):
        chat.screen.note(chat.say("sandbox_off" if sandbox.asked == "off" else "sandbox_none"), "yellow")


# --- talking -----------------------------------------------------------------------------------


def _prompt_loop(chat: Chat, keyboard: Keyboard) -> None:
    """Read and handle messages until /exit, the end of input, or Ctrl-C twice in a row."""
    interrupted = False
    while not chat.leaving:
        try:
            message = keyboard.message()
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
            _handle(chat, message)
        except KeyboardInterrupt:  # inside a command, which is cancelled
            chat.screen.note(chat.say("interrupted"), "yellow")
        except EverlongError as error:  # such as a missing store; the person decides
            chat.screen.fail(one_line(str(error)))


def _handle(chat: Chat, message: str) -> None:
    line = message.strip()
    if line.startswith("/") and not line.startswith(NOT_COMMANDS) and "/" not in line[1:].partition(" ")[0]:
        run_command(chat, line)
    elif line.lower() in LEAVE:
        chat.leaving = True
    elif line.startswith(TYPED) and line[len(TYPED) :].strip():
        chat.run_typed(line[len(TYPED) :].strip())
    elif line or chat.attached:
        chat.attach_named(message)
        chat.turn(message)
        chat.show_meter()
    else:
        chat.show_notices()


def _answer_once(chat: Chat, message: str, options: ChatOptions) -> None:
    chat.screen.shows_errors = False  # `main` prints the raised error
    chat.attach_named(options.message or "")  # not the piped text: others may have written it
    try:
        ended = chat.turn(message)
    except EverlongError as error:
        if options.json_wanted:
            _write_line({"event": "failed", "error": str(error), "kind": "program", "begun": False})
        raise
    meter = chat.worker.do(chat.session.meter())
    if options.json_wanted and meter is not None:
        _write_line(_meter_json(meter, chat.session.thread, chat.session.config.model))
    elif chat.screen.aside.is_terminal:
        chat.show_meter()
    _check(chat, ended)


def _check(chat: Chat, ended: TurnEnded | None) -> None:
    """Raise an error for a turn that failed or was interrupted."""
    if ended is not None and ended.reason == "interrupted":
        raise click.Abort
    if ended is None or ended.reason == "failed":
        raise InputError(chat.error or chat.say("failed"))


# --- lines of JSON: each is an ASCII object with an `event` ------------------------------------


def event_json(event: AgentEvent | Event) -> dict[str, Any]:
    """Return an event as JSON. Example: Said("Hi") -> {"event": "said", "text": "Hi"}"""
    match event:
        case Said(text):
            return {"event": "said", "text": text}
        case Thought(text):
            return {"event": "thought", "text": text}
        case CallGrew(number, call, name, arguments):
            return {"event": "call_grew", "number": number, "call": call, "name": name, "arguments": arguments}
        case Restarted(reason):
            return {"event": "restarted", "reason": reason}
        case Failed(error, begun):
            kind = "overflow" if isinstance(error, ContextOverflow) else "provider"
            return {"event": "failed", "error": str(error), "kind": kind, "begun": begun}
        case Entered(message):
            return {"event": "entered", "text": message.text}
        case TurnEnded(reason, steps, tokens):
            return {"event": "turn_ended", "reason": reason, "steps": steps, "tokens": tokens}
        case Event():
            return _notice(event)
        case Finished() | CallStarted() | CallRefused() | CallEnded():
            return _larger(event)
        case _:
            assert_never(event)


def _larger(event: Finished | CallStarted | CallRefused | CallEnded) -> dict[str, Any]:
    match event:
        case Finished(message, usage, stop):
            used = None if usage is None else {name: getattr(usage, name) for name in USAGE}
            return {"event": "finished", "text": message.text, "usage": used, "stop": stop}
        case CallStarted(call, name, arguments):
            return {"event": "call_started", "call": call, "name": name, "arguments": arguments}
        case CallRefused(call, name, reason, answered):
            return {"event": "refused", "call": call, "name": name, "reason": reason, "answered": answered}
        case CallEnded(call, name, outcome, seconds):
            return {
                "event": "call_ended",
                "call": call,
                "name": name,
                "failed": outcome.failed,
                "text": outcome.text,
                "images": len(outcome.images),
                "seconds": round(seconds, 3),
            }
        case _:
            assert_never(event)


def _notice(event: Event) -> dict[str, Any]:
    """Return an event of the thread; figures that do not apply are left out."""
    figures = {name: getattr(event, name) for name in ("reason", "model", "tokens_before", "tokens_after", "cost")}
    return {"event": event.kind.value} | {name: value for name, value in figures.items() if value not in (None, "")}


def _meter_json(meter: Meter, thread: str, model: str) -> dict[str, Any]:
    """Return how full the window is at the end."""
    return {
        "event": "meter",
        "thread": thread,
        "model": model,
        "tokens": meter.tokens,
        "limit": meter.limit if meter.known else None,
        "assumed": None if meter.known else meter.limit,
        "threshold": meter.threshold,
        "percent": meter.percent if meter.known else None,
        "certainty": meter.certainty,
    }


def _write_line(value: dict[str, Any]) -> None:
    """Write one line to standard output and flush it."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
