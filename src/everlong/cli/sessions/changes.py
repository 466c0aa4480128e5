"""`everlong sessions archive`, `rename`, `branch`, `undo`, `pin` and their opposites: nothing said is lost by any.

And `remove`, the only one by which it is.
"""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import count

import click

from everlong.cli.sessions.options import (
    Setting,
    row_at,
    session_command,
    stored_in,
    the_thread,
    thread_json,
)
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.text import one_line
from everlong.core import Message, Pin, Point, Thread, Withdrawal
from everlong.engine import Threads, text_title
from everlong.errors import InputError, NoThread

__all__ = [
    "archive_command",
    "branch_command",
    "pin_command",
    "remove_command",
    "rename_command",
    "unarchive_command",
    "undo_command",
    "unpin_command",
]


MOST_SHOWN = 20  # sessions that are named before they are removed


@click.command("archive")
@click.argument("session", metavar="ID")
@session_command
def archive_command(setting: Setting, session: str) -> None:
    """Take a session off the list; it stays, and is still found."""
    with stored_in(setting) as store:
        thread = store.change(the_thread(store, session).id, archived=True)
    _tell(setting, "now_archived", thread)


@click.command("unarchive")
@click.argument("session", metavar="ID")
@session_command
def unarchive_command(setting: Setting, session: str) -> None:
    """Put an archived session back on the list."""
    with stored_in(setting) as store:
        thread = store.change(the_thread(store, session).id, archived=False)
    _tell(setting, "now_unarchived", thread)


@click.command("rename")
@click.argument("session", metavar="ID")
@click.argument("title")
@session_command
def rename_command(setting: Setting, session: str, title: str) -> None:
    """Give a session another title; its id stays."""
    with stored_in(setting) as store:
        thread = store.change(the_thread(store, session).id, title=title)
    _tell(setting, "renamed", thread)


@click.command("branch")
@click.argument("session", metavar="ID")
@click.argument("message")
@click.option("--as", "name", metavar="NEW", help="The id of the new session (default: ID~2, ID~3 …).")
@click.option("--title", default=None, help="Its title (default: the same).")
@session_command
def branch_command(setting: Setting, session: str, message: str, name: str | None, title: str | None) -> None:
    """Begin a new session that goes on after MESSAGE (its number or id); the old one stays as it is."""
    with stored_in(setting) as store:
        old = the_thread(store, session)
        order = row_at(store, old, message).order + 1
        new = name or next(free for turn in count(2) if not _is_there(store, free := f"{old.id}~{turn}"))
        made = store.branch(old.id, order, new, title=old.title if title is None else title)
    if setting.json:
        print_json(thread_json(made))
    else:
        click.echo(setting.say("branched", id=one_line(made.id), n=str(order), title=_title(old)))


def _is_there(store: Threads, name: str) -> bool:
    try:
        store.thread(name)
    except NoThread:
        return False
    return True


@click.command("undo")
@click.argument("session", metavar="ID")
@session_command
def undo_command(setting: Setting, session: str) -> None:
    """Take back the newest compaction: what it covered is sent whole again. Nothing that was said since is lost."""
    with stored_in(setting) as store:
        thread = the_thread(store, session)
        point = next((row for row, stands in reversed(store.points(thread.id)) if stands), None)
        if point is None:
            raise InputError(f"nothing to undo: no compaction stands in session {thread.id!r}")
        before = len(store.open(thread.id).messages)
        store.append(thread.id, [Withdrawal(point.order)], expected=thread.length)
        opened = store.open(thread.id)
    boundary = point.entry.boundary if isinstance(point.entry, Point) else 0
    back = sum(isinstance(row.entry, Message) and row.order < boundary for row in (*opened.head, *opened.rows))
    if setting.json:
        figures = {"messages_before": before, "messages_after": len(opened.messages)}
        print_json({"session": thread.id, "point": point.order, "id": point.id, **figures})
    else:
        messages = setting.say.many("messages", back)
        click.echo(setting.say("undone", at=str(point.order), messages=messages))


@click.command("pin")
@click.argument("session", metavar="ID")
@click.argument("message", required=False)
@click.option("--text", default="", help="Pin this text instead of a message.")
@session_command
def pin_command(setting: Setting, session: str, message: str | None, text: str) -> None:
    """Keep MESSAGE (its number or id), or a text, in everything that is sent."""
    if (message is None) == (not text):
        raise click.UsageError("name a MESSAGE, or a text with --text")
    with stored_in(setting) as store:
        thread = the_thread(store, session)
        order = None if message is None else row_at(store, thread, message).order
        pin = store.pin(thread.id, order, text)
        shown = _pin_title(store, thread, pin)
    if setting.json:
        print_json({"session": thread.id, **asdict(pin)})
    else:
        click.echo(setting.say("now_pinned", text=shown))


@click.command("unpin")
@click.argument("session", metavar="ID")
@click.argument("pin")
@session_command
def unpin_command(setting: Setting, session: str, pin: str) -> None:
    """Let a pin go: PIN is the number of a message, a pinned text, or the id of the pin."""
    with stored_in(setting) as store:
        thread = the_thread(store, session)
        found = next((one for one in store.pins(thread.id) if pin in (one.id, str(one.order), one.text)), None)
        if found is None:
            raise InputError(f"session {thread.id!r} has no pin {pin!r}")
        shown = _pin_title(store, thread, found)
        store.unpin(thread.id, found.id)
    if setting.json:
        print_json({"session": thread.id, **asdict(found)})
    else:
        click.echo(setting.say("now_unpinned", text=shown))


@click.command("remove")
@click.argument("names", metavar="[ID]...", nargs=-1)
@click.option("--older", type=click.IntRange(min=1), metavar="DAYS", help="All that did not change for so many days.")
@click.option("--owner", help="With --older: only of this owner.")
@click.option("--yes", is_flag=True, help="Do not ask; an ID must be whole then.")
@session_command
def remove_command(setting: Setting, names: tuple[str, ...], older: int | None, owner: str | None, yes: bool) -> None:
    """Remove sessions with everything said in them. They cannot be brought back; branches of them stay."""
    if bool(names) == (older is not None) or (owner is not None and older is None):
        raise click.UsageError("name sessions by ID, or all that are old with --older DAYS (and --owner)")
    with stored_in(setting) as store:
        chosen = _named(store, names, whole=yes) if older is None else _not_changed_for(store, older, owner)
        if chosen and not yes:
            _ask(setting, chosen)
        gone = [thread for thread in chosen if _is_removed(store, thread, unchanged=older is not None)]
    if setting.json:
        print_json([thread_json(thread) for thread in gone])
    for thread in () if setting.json else gone:
        click.echo(setting.say("removed", title=_title(thread)))
    if not gone and not setting.json:
        click.echo(setting.say("none_removed"))


def _named(store: Threads, names: tuple[str, ...], *, whole: bool) -> list[Thread]:
    """The sessions to remove. Unasked only by their whole id: what an id begins may be another one, its branch."""
    threads = [the_thread(store, name) for name in names]
    for name, thread in zip(names, threads, strict=True):
        if whole and thread.id != name:
            raise NoThread(f"no session {name!r}; with --yes an id must be whole, as {thread.id!r}")
    return list({thread.id: thread for thread in threads}.values())


def _not_changed_for(store: Threads, days: int, owner: str | None) -> list[Thread]:
    """The sessions to remove, the archived ones too."""
    since = datetime.now(UTC) - timedelta(days=days)
    return [thread for thread in store.threads(owner=owner, archived=None) if thread.updated < since]


def _is_removed(store: Threads, thread: Thread, *, unchanged: bool) -> bool:
    """Remove it; `unchanged`: unless it went on while the question stood."""
    try:
        if unchanged and store.thread(thread.id).updated != thread.updated:
            return False
        store.remove(thread.id)
    except NoThread:  # somebody else was faster
        return False
    return True


def _ask(setting: Setting, chosen: list[Thread]) -> None:
    """Raises click.Abort unless the answer is yes. Beside the output, which may be read by a program."""
    for thread in chosen[:MOST_SHOWN]:
        messages = setting.say.many("messages", thread.messages)
        click.echo(f"  {one_line(thread.id)}  {one_line(thread.title)}  {messages}", err=True)
    if len(chosen) > MOST_SHOWN:
        click.echo(f"  {setting.say('more', n=str(len(chosen) - MOST_SHOWN))}", err=True)
    click.confirm(setting.say.many("remove_ask", len(chosen)), abort=True, err=True)


def _pin_title(store: Threads, thread: Thread, pin: Pin) -> str:
    if pin.order is None:
        return text_title(pin.text)
    row = next(store.read(thread.id, pin.order, pin.order + 1))
    said = text_title(row.entry.text) if isinstance(row.entry, Message) else ""
    return f"{pin.order}  {one_line(said)}".rstrip()


def _tell(setting: Setting, key: str, thread: Thread) -> None:
    if setting.json:
        print_json(thread_json(thread))
    else:
        click.echo(setting.say(key, title=_title(thread)))


def _title(thread: Thread) -> str:
    return one_line(thread.title) or one_line(thread.id)
