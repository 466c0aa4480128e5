"""The commands of the chat: a table of names, what they take, and the functions that run them.

`tables` prints tables.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, islice

from everlong.agent import Changes, at_home
from everlong.cli.chat.attachments import picture_in
from everlong.cli.chat.drawing import plain
from everlong.cli.chat.screen import call_text
from everlong.cli.chat.tables import print_changes, print_edits, print_hits, print_map, print_pins, print_threads
from everlong.cli.chat.turns import Chat
from everlong.cli.sessions.events import COUNTED, print_cost
from everlong.cli.sessions.options import find_thread
from everlong.cli.terminal.tables import amount
from everlong.cli.terminal.text import clean, one_line
from everlong.cli.words.wording import Words
from everlong.core import EventKind, Message, Removal, Role, Thread, nearest
from everlong.engine import HIGHEST_THRESHOLD, LOWEST_THRESHOLD, Threads, outlook_of, saved_on, spent_on
from everlong.errors import EverlongError, InputError, NoThread
from everlong.windows import Window

__all__ = ["COMMANDS", "run_command", "talk_threads"]

LISTED = 20  # threads
FOUND = 8  # messages of a search
SHOWN = 20_000  # characters of a call, or of an original
SHORT = 80  # characters of a pin
LOOKED_BACK = 1_000  # messages that are searched for the last question
MOST_ROWS = 1 << 40  # of a thread; a larger number cannot be a message
KILOBYTE = 1024


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name, what may follow it, and the function that runs it."""

    name: str
    takes: str
    run: Callable[[Chat, str], None]

    @property
    def key(self) -> str:
        """The key of its line in the help."""
        return f"help_{self.name[1:]}"


def run_command(chat: Chat, line: str) -> None:
    """Run the command in a line that begins with "/"; an error is shown as one line."""
    name, _, rest = line.strip().partition(" ")
    command = next((row for row in COMMANDS if row.name == name.lower()), None)
    if command is None:
        near = nearest(name, [row.name for row in COMMANDS])
        shown = one_line(name)[:SHORT]
        guess = chat.say("did_you_mean", name=shown, nearest=near) if near else ""
        chat.screen.note(guess or chat.say("unknown_command", name=shown), "yellow")
        return
    try:
        command.run(chat, rest.strip())
    except NoThread:
        chat.screen.note(chat.say("nothing_yet"))
    except EverlongError as error:
        chat.screen.note(one_line(str(error)), "yellow")


def _number(text: str) -> int:
    """Return the number in a text, or -1; a number with too many digits is shortened and still very large."""
    return int(text[:SHORT]) if text.isdecimal() else -1


# --- the window -------------------------------------------------------------------------------------


def _context(chat: Chat, _: str) -> None:
    prepared = chat.worker.do(chat.session.preview())
    if prepared is None:
        chat.screen.note(chat.say("nothing_yet"))
        return
    meter = chat.worker.do(chat.session.meter())
    print_map(chat.screen.out, chat.say, chat.session.engine, prepared, meter)


def _cost(chat: Chat, _: str) -> None:
    """Print what this thread and its sub-agents have cost so far."""
    threads = chat.session.engine.threads
    counted = [threads.events(name, kinds=COUNTED) for name in (chat.session.thread, *_subagents(chat))]
    spent = spent_on(event for events in counted for event in events)
    if not spent:
        chat.screen.note(chat.say("nothing_yet"))
        return
    saved = [row for events in counted for row in saved_on(events, chat.session.setup.registry)]
    say = Words(chat.say.language, "sessions")
    print_cost(chat.screen.out, spent, saved, say)
    if len(counted) > 1:
        chat.screen.note(chat.say.many("cost_subagents", len(counted) - 1))


def _subagents(chat: Chat) -> Iterator[str]:
    """Yield the threads of the sub-agents of this thread, and of their sub-agents."""
    parents = {chat.session.thread}
    for thread in sorted(_every_thread(chat.session.engine.threads), key=lambda thread: thread.created):
        parent = json.loads(thread.metadata).get("parent")
        if isinstance(parent, dict) and parent.get("thread") in parents:
            parents.add(thread.id)
            yield thread.id


def _compact(chat: Chat, focus: str) -> None:
    chat.screen.note(chat.say("compacting"))
    try:
        outcome = chat.worker.do(chat.session.compact(focus))
    except KeyboardInterrupt:
        chat.screen.note(chat.say("compact_stopped"), "yellow")
        return
    chat.session.notices.clear()  # the line below replaces them
    reason, figures = chat.say.reason(one_line(outcome.reason)), outcome.figures
    if outcome.kind is not EventKind.SUMMARY_APPLIED:
        chat.screen.note(chat.say("not_compacted", reason=reason), "yellow")
    elif figures is None:
        chat.screen.note(chat.say("notice_summary_ready"), "cyan")
    else:
        key = "compacted_by_rules" if outcome.reason else "compacted"
        before, after = amount(figures.before), amount(figures.after)
        chat.screen.note(chat.say(key, n=amount(figures.messages), before=before, after=after, reason=reason), "cyan")
    chat.show_meter()


def _undo(chat: Chat, _: str) -> None:
    undone = chat.worker.do(chat.session.engine.undo(chat.session.thread))
    chat.session.forget_usage()
    chat.session.notices.clear()
    chat.screen.note(chat.say("undone" if undone else "nothing_to_undo"), "cyan" if undone else "dim")
    if undone:
        chat.show_meter()


def _delete(chat: Chat, given: str) -> None:
    """Delete a message, or the last question with everything after it; or restore what was deleted last."""
    engine, thread = chat.session.engine, chat.session.thread
    if given.lower() == "undo":
        messages, word = _brought_back(chat), "brought_back"
    else:
        before = engine.threads.thread(thread).messages
        chat.worker.do(engine.remove_messages(thread, _last_exchange(chat, given)))
        messages, word = before - engine.threads.thread(thread).messages, "deleted"
    chat.session.forget_usage()
    chat.session.notices.clear()
    chat.screen.note(chat.say.many(word, messages) if messages else chat.say("nothing_deleted"), "cyan")
    chat.show_meter()


def _last_exchange(chat: Chat, number: str) -> list[int]:
    """Return the orders of the messages from the last question on, or of the named message."""
    if number:
        if not number.isdecimal() or _number(number) >= MOST_ROWS:
            raise InputError(chat.say("no_such_message", n=one_line(number)[:SHORT]))
        return [_number(number)]
    rows = chat.session.engine.threads.last(chat.session.thread, LOOKED_BACK)
    said = [at for at, row in enumerate(rows) if isinstance(row.entry, Message) and row.entry.role is Role.USER]
    if not said:
        raise InputError(chat.say("nothing_yet"))
    return [row.order for row in rows[said[-1] :]]


def _brought_back(chat: Chat) -> int:
    """Restore what was deleted last and return the number of messages."""
    engine, thread = chat.session.engine, chat.session.thread
    removals = [row.entry for row in engine.threads.read(thread) if isinstance(row.entry, Removal)]
    for removal in reversed(removals):
        with suppress(InputError):  # it was restored before
            back = chat.worker.do(engine.restore_messages(thread, removal.orders[:1]))
            if back:
                return len(back)
    return 0


def _restore(chat: Chat, given: str) -> None:
    """List the files that tools changed in this thread, or restore one of them."""
    config = chat.session.config
    changes = Changes(config.workspace, config.allowed)
    listed = changes.listed(chat.session.thread)
    number, _, force = given.partition(" ")
    if not listed:
        chat.screen.note(chat.say("restore_none"))
    elif not given:
        print_changes(chat.screen.out, chat.say, listed)
    elif not 1 <= _number(number) <= len(listed) or force.strip() not in ("", "force"):
        raise InputError(chat.say("restore_wrong", n=one_line(given)[:SHORT], last=str(len(listed))))
    else:
        change = changes.restore(chat.session.thread, listed[int(number) - 1].id, force=bool(force.strip()))
        key = "restored_removed" if change.new else "restored"
        chat.screen.note(chat.say(key, path=one_line(change.path)), "cyan")


def _threshold(chat: Chat, percent: str) -> None:
    if percent:
        number = percent.rstrip(" %")
        if not round(100 * LOWEST_THRESHOLD) <= _number(number) <= round(100 * HIGHEST_THRESHOLD):
            raise InputError(chat.say("threshold_wrong"))
        chat.worker.do(chat.session.set_threshold(int(number) / 100))
    share, tokens = chat.worker.do(chat.session.threshold())
    chat.screen.note(chat.say("threshold_is", percent=str(round(100 * share)), tokens=amount(tokens)))
    window = chat.worker.do(chat.session.window())
    expected = outlook_of(replace(chat.session.config.engine, threshold=share), window)
    if expected is not None:
        cost, kept = map(str, expected.percents)
        chat.screen.note(chat.say("outlook", cost=cost, kept=kept))
        chat.screen.note(chat.say("outlook_measured"))


def _model(chat: Chat, name: str) -> None:
    if name:
        chat.worker.do(chat.session.use_model(name))
    window = chat.worker.do(chat.session.window())
    figures = {"model": one_line(chat.session.config.model), "window": amount(window.context)}
    key = "model_now" if name else "model_is"
    chat.screen.note(chat.say(key, source=_source(window, chat), **figures))


def _source(window: Window, chat: Chat) -> str:
    return chat.say(f"source_{window.source}", date=window.date)


def _why(chat: Chat, _: str) -> None:
    prepared = chat.session.last or chat.worker.do(chat.session.preview())
    if prepared is None or not prepared.edits:
        chat.screen.note(chat.say("why_nothing"))
        return
    print_edits(chat.screen.out, chat.say, prepared.edits)


# --- pins, recall, search -------------------------------------------------------------------------


def _pin(chat: Chat, target: str) -> None:
    engine, thread = chat.session.engine, chat.session.thread
    if not target:
        pins = engine.threads.pins(thread)
        if not pins:
            chat.screen.note(chat.say("no_pins"))
            return
        print_pins(chat.screen.out, engine.threads, thread, pins)
        return
    if target.isdecimal():
        at = _number(target)
        row = next(iter(engine.threads.read(thread, at, at + 1)), None) if at < MOST_ROWS else None
        if row is None or not isinstance(row.entry, Message):
            raise InputError(chat.say("no_such_message", n=target[:SHORT]))
        chat.worker.do(engine.pin(thread, row.order))
        shown = row.entry.text or (row.entry.results[0].text if row.entry.results else target)
    else:
        chat.session.ensure_thread()
        chat.worker.do(engine.pin(thread, None, target))
        shown = target
    chat.session.forget_usage()
    chat.screen.note(chat.say("pinned", text=one_line(shown[: 4 * SHORT])[:SHORT]), "cyan")
    chat.show_meter()


def _unpin(chat: Chat, number: str) -> None:
    engine, thread = chat.session.engine, chat.session.thread
    pins = engine.threads.pins(thread)
    if not pins:
        chat.screen.note(chat.say("no_pins"))
        return
    chosen = number or ("1" if len(pins) == 1 else "")
    if not 1 <= _number(chosen) <= len(pins):
        raise InputError(chat.say("no_such_pin", n=one_line(number)[:SHORT] or "?"))
    pin = pins[int(chosen) - 1]
    chat.worker.do(engine.unpin(thread, pin.id))
    chat.session.forget_usage()
    shown = pin.text or f"#{pin.order}"
    chat.screen.note(chat.say("unpinned", text=one_line(shown[: 4 * SHORT])[:SHORT]), "cyan")


def _recall(chat: Chat, query: str) -> None:
    if not query:
        raise InputError(chat.say("which_words"))
    recall = chat.worker.do(chat.session.engine.recall(chat.session.thread, query, limit=FOUND))
    if recall.original is not None:
        text = clean(recall.original.decode("utf-8", "replace"))
        left = len(text) - SHOWN
        chat.screen.out.print(plain(text[:SHOWN]))
        if left > 0:
            chat.screen.note(chat.say.many("more_characters", left))
    elif recall.hits:
        print_hits(chat.screen.out, chat.say, chat.session.engine.threads, recall.hits, query, titles=False)
    else:
        chat.screen.note(chat.say("nothing_found"))


def _search(chat: Chat, query: str) -> None:
    if not query:
        raise InputError(chat.say("which_words"))
    threads = chat.session.engine.threads
    hits = threads.search(query, limit=FOUND)
    if not hits:
        chat.screen.note(chat.say("nothing_found"))
        return
    print_hits(chat.screen.out, chat.say, threads, hits, query, titles=True)


# --- threads --------------------------------------------------------------------------------------


def talk_threads(chat: Chat, most: int) -> list[Thread]:
    """Return the latest threads in which a person talks, without those of sub-agents."""
    return list(islice(_own_threads(chat.session.engine.threads, chat.session.config.owner or None), most))


def _own_threads(threads: Threads, owner: str | None) -> Iterator[Thread]:
    every = _every_thread(threads, owner)
    return (thread for thread in every if "parent" not in json.loads(thread.metadata))


def _every_thread(threads: Threads, owner: str | None = None) -> Iterator[Thread]:
    for skip in count(0, LISTED):
        page = threads.threads(owner=owner, limit=LISTED, skip=skip)
        yield from page
        if len(page) < LISTED:
            return


def _threads(chat: Chat, number: str) -> None:
    listed = talk_threads(chat, LISTED)
    if not listed:
        chat.screen.note(chat.say("threads_none"))
        return
    if not number:
        print_threads(chat.screen.out, chat.say, listed, chat.session.thread)
        try:
            number = chat.person.line(chat.say("threads_choose")).strip() if chat.person is not None else ""
        except KeyboardInterrupt:
            chat.screen.out.print()
    if not number:
        return
    if 1 <= _number(number) <= len(listed):
        chosen = listed[int(number) - 1]
    else:
        try:
            chosen = find_thread(chat.session.engine.threads, number)
        except NoThread:
            raise InputError(chat.say("no_such_thread", n=one_line(number)[:SHORT])) from None
    chat.worker.do(chat.session.switch(chosen.id))
    chat.welcome_back()


def _new(chat: Chat, title: str) -> None:
    chat.worker.do(chat.session.begin_thread())
    if title:
        chat.worker.do(chat.session.title(title))
    chat.screen.note(chat.say("new_thread"))


def _clear(chat: Chat, _: str) -> None:
    chat.worker.do(chat.session.begin_thread())
    chat.screen.out.clear()
    chat.screen.note(chat.say("new_thread"))


def _title(chat: Chat, title: str) -> None:
    current = chat.worker.do(chat.session.title(title or None))
    chat.screen.note(chat.say("title_is", title=one_line(current) or chat.say("untitled")))


# --- the rest -------------------------------------------------------------------------------------


def _show(chat: Chat, number: str) -> None:
    calls = chat.screen.calls
    if not calls:
        chat.screen.note(chat.say("show_none"))
        return
    chosen = number or str(len(calls))
    if not 1 <= _number(chosen) <= len(calls):
        raise InputError(chat.say("show_wrong", n=one_line(number)[:SHORT], last=str(len(calls))))
    chat.screen.out.print(plain(call_text(calls[int(chosen) - 1], chat.say, SHOWN)))


def _image(chat: Chat, path: str) -> None:
    if not path:
        raise InputError(chat.say("image_which"))
    file = at_home(path.strip("\"'"))
    image, size = picture_in(file, chat.say)
    chat.attached.append(image)
    figures = {"kind": image.media_type, "n": amount(max(1, size // KILOBYTE))}
    chat.screen.note(chat.say("image_added", name=one_line(file.name), **figures))


def _help(chat: Chat, _: str) -> None:
    from rich.table import Table  # noqa: PLC0415 - only where it is seen

    drawn = Table.grid(padding=(0, 2, 0, 1))
    drawn.add_column(no_wrap=True)
    drawn.add_column(overflow="fold")  # text without spaces may break anywhere
    rows = [(f"{command.name} {command.takes}".strip(), chat.say(command.key)) for command in COMMANDS]
    for typed, meaning in (*rows, ("@FILE", chat.say("help_at")), ("!COMMAND", chat.say("help_typed"))):
        drawn.add_row(plain(typed, "cyan"), plain(meaning))
    chat.screen.out.print(drawn)
    chat.screen.note(f" {chat.say('help_line')}")


def _exit(chat: Chat, _: str) -> None:
    chat.leaving = True


COMMANDS: tuple[Command, ...] = (
    Command("/context", "", _context),
    Command("/cost", "", _cost),
    Command("/compact", "[FOCUS]", _compact),
    Command("/undo", "", _undo),
    Command("/delete", "[NUMBER | undo]", _delete),
    Command("/restore", "[NUMBER [force]]", _restore),
    Command("/why", "", _why),
    Command("/pin", "[TEXT | NUMBER]", _pin),
    Command("/unpin", "[NUMBER]", _unpin),
    Command("/recall", "WORDS", _recall),
    Command("/search", "WORDS", _search),
    Command("/threads", "[NUMBER | ID]", _threads),
    Command("/new", "[TITLE]", _new),
    Command("/clear", "", _clear),
    Command("/title", "[TITLE]", _title),
    Command("/model", "[NAME]", _model),
    Command("/threshold", "[40-95]", _threshold),
    Command("/show", "[NUMBER]", _show),
    Command("/image", "FILE", _image),
    Command("/help", "", _help),
    Command("/exit", "", _exit),
)
