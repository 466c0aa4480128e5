"""`everlong sessions archive`, `rename`, `branch`, `undo`, `pin` and their opposites, which lose nothing; and `remove`.

`remove` is the only command that deletes messages.
"""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import count

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.sessions.options import (
    SessionOptions,
    find_row,
    find_thread,
    session_command,
    session_store,
    thread_json,
)
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.text import one_line
from everlong.core import Message, Pin, Point, Thread, Withdrawal
from everlong.engine import Threads, text_title
from everlong.errors import InputError, NoThread
from everlong.store import branch_id

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


MOST_DAYS = 100_000  # largest age in days; the calendar has no more
MOST_SHOWN = 20  # sessions that are named before they are removed


@click.command("archive", cls=ExampleCommand, examples=("everlong sessions archive harbour",))
@click.argument("session", metavar="ID")
@session_command
def archive_command(options: SessionOptions, session: str) -> None:
    """Hide the session ID from the list. It stays in the store, and search still finds it."""
    with session_store(options.url) as store:
        thread = store.change(find_thread(store, session).id, archived=True)
    _print_change(options, "now_archived", thread)


@click.command("unarchive", cls=ExampleCommand, examples=("everlong sessions unarchive harbour",))
@click.argument("session", metavar="ID")
@session_command
def unarchive_command(options: SessionOptions, session: str) -> None:
    """Put the archived session ID back on the list."""
    with session_store(options.url) as store:
        thread = store.change(find_thread(store, session).id, archived=False)
    _print_change(options, "now_unarchived", thread)


@click.command("rename", cls=ExampleCommand, examples=('everlong sessions rename harbour "Harbour tickets"',))
@click.argument("session", metavar="ID")
@click.argument("title")
@session_command
def rename_command(options: SessionOptions, session: str, title: str) -> None:
    """Change the title of the session ID. The id stays the same."""
    with session_store(options.url) as store:
        thread = store.change(find_thread(store, session).id, title=title)
    _print_change(options, "renamed", thread)


@click.command(
    "branch",
    cls=ExampleCommand,
    examples=(
        "everlong sessions branch harbour 12",
        'everlong sessions branch harbour 12 --as harbour-2 --title "Second attempt"',
    ),
)
@click.argument("session", metavar="ID")
@click.argument("message")
@click.option("--as", "name", metavar="NEW", help="The id of the new session (default: 2~ID, 3~ID, …).")
@click.option("--title", default=None, metavar="TEXT", help="The title of the new session (default: the same title).")
@session_command
def branch_command(options: SessionOptions, session: str, message: str, name: str | None, title: str | None) -> None:
    """Start a new session that continues after MESSAGE (its number or id). The session ID does not change."""
    with session_store(options.url) as store:
        old = find_thread(store, session)
        order = find_row(store, old, message).order + 1
        new = name or next(free for number in count(2) if not _exists(store, free := branch_id(old.id, number)))
        made = store.branch(old.id, order, new, title=old.title if title is None else title)
    if options.json:
        print_json(thread_json(made))
    else:
        click.echo(options.say("branched", id=one_line(made.id), n=str(order), title=_title(old)))


def _exists(store: Threads, name: str) -> bool:
    try:
        store.thread(name)
    except NoThread:
        return False
    return True


@click.command("undo", cls=ExampleCommand, examples=("everlong sessions undo harbour",))
@click.argument("session", metavar="ID")
@session_command
def undo_command(options: SessionOptions, session: str) -> None:
    """Undo the newest compaction of the session ID. Later requests contain the compacted messages in full again."""
    with session_store(options.url) as store:
        thread = find_thread(store, session)
        point = next((row for row, stands in reversed(store.points(thread.id)) if stands), None)
        if point is None:
            raise InputError(f"nothing to undo: session {thread.id!r} has no compaction in effect")
        before = len(store.open(thread.id).messages)
        store.append(thread.id, [Withdrawal(point.order)], expected=thread.length)
        opened = store.open(thread.id)
    boundary = point.entry.boundary if isinstance(point.entry, Point) else 0
    back = sum(isinstance(row.entry, Message) and row.order < boundary for row in (*opened.head, *opened.rows))
    if options.json:
        figures = {"messages_before": before, "messages_after": len(opened.messages)}
        print_json({"session": thread.id, "point": point.order, "id": point.id, **figures})
    else:
        messages = options.say.many("messages", back)
        click.echo(options.say("undone", at=str(point.order), messages=messages))


@click.command(
    "pin",
    cls=ExampleCommand,
    examples=(
        "everlong sessions pin harbour 3",
        'everlong sessions pin harbour --text "Prices are in euros."',
    ),
)
@click.argument("session", metavar="ID")
@click.argument("message", required=False)
@click.option("--text", default="", metavar="TEXT", help="Pin this text instead of a message.")
@session_command
def pin_command(options: SessionOptions, session: str, message: str | None, text: str) -> None:
    """Keep MESSAGE (its number or id), or a text, in every request of the session ID."""
    if (message is None) == (not text):
        raise click.UsageError("name a MESSAGE, or give a text with --text, but not both")
    with session_store(options.url) as store:
        thread = find_thread(store, session)
        order = None if message is None else find_row(store, thread, message).order
        pin = store.pin(thread.id, order, text)
        shown = _pin_title(store, thread, pin)
    if options.json:
        print_json({"session": thread.id, **asdict(pin)})
    else:
        click.echo(options.say("now_pinned", text=shown))


@click.command("unpin", cls=ExampleCommand, examples=("everlong sessions unpin harbour 3",))
@click.argument("session", metavar="ID")
@click.argument("pin")
@session_command
def unpin_command(options: SessionOptions, session: str, pin: str) -> None:
    """Remove a pin from the session ID. PIN is the number of a message, a pinned text, or the id of the pin."""
    with session_store(options.url) as store:
        thread = find_thread(store, session)
        pinned = next((row for row in store.pins(thread.id) if pin in (row.id, str(row.order), row.text)), None)
        if pinned is None:
            raise InputError(
                f"session {thread.id!r} has no pin {pin!r}: `everlong sessions show {thread.id}` shows its pins"
            )
        shown = _pin_title(store, thread, pinned)
        store.unpin(thread.id, pinned.id)
    if options.json:
        print_json({"session": thread.id, **asdict(pinned)})
    else:
        click.echo(options.say("now_unpinned", text=shown))


@click.command(
    "remove",
    cls=ExampleCommand,
    examples=(
        "everlong sessions remove harbour",
        "everlong sessions remove --older 90 --yes",
    ),
)
@click.argument("names", metavar="[ID]...", nargs=-1)
@click.option(
    "--older",
    type=click.IntRange(1, MOST_DAYS),
    metavar="DAYS",
    help="Delete all sessions that have not changed for this many days.",
)
@click.option("--owner", metavar="NAME", help="With --older: only the sessions of this owner.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; every ID must then be complete.")
@session_command
def remove_command(
    options: SessionOptions, names: tuple[str, ...], older: int | None, owner: str | None, yes: bool
) -> None:
    """Delete sessions and all their messages permanently. Branches of a deleted session stay."""
    if bool(names) == (older is not None) or (owner is not None and older is None):
        raise click.UsageError("name sessions by ID, or use --older DAYS (with --owner if you like)")
    with session_store(options.url) as store:
        chosen = _named(store, names, whole=yes) if older is None else _unchanged_for(store, older, owner)
        if chosen and not yes:
            _confirm(options, chosen)
        removed = [thread for thread in chosen if _remove(store, thread, unchanged=older is not None)]
    if options.json:
        print_json([thread_json(thread) for thread in removed])
    for thread in () if options.json else removed:
        click.echo(options.say("removed", title=_title(thread)))
    if not removed and not options.json:
        click.echo(options.say("none_removed"))


def _named(store: Threads, names: tuple[str, ...], *, whole: bool) -> list[Thread]:
    """Return the sessions to remove. Without a question, ids must be complete: a beginning may belong to a branch."""
    threads = [find_thread(store, name) for name in names]
    for name, thread in zip(names, threads, strict=True):
        if whole and thread.id != name:
            raise NoThread(f"no session {name!r}: with --yes an id must be complete, such as {thread.id!r}")
    return list({thread.id: thread for thread in threads}.values())


def _unchanged_for(store: Threads, days: int, owner: str | None) -> list[Thread]:
    """Return the sessions, including archived ones, that have not changed for this many days."""
    since = datetime.now(UTC) - timedelta(days=days)
    return [thread for thread in store.threads(owner=owner, archived=None) if thread.updated < since]


def _remove(store: Threads, thread: Thread, *, unchanged: bool) -> bool:
    """Remove a session and return whether it was removed; with `unchanged`, not if it changed during the question."""
    try:
        if unchanged and store.thread(thread.id).updated != thread.updated:
            return False
        store.remove(thread.id)
    except NoThread:  # somebody else removed it first
        return False
    return True


def _confirm(options: SessionOptions, chosen: list[Thread]) -> None:
    """Ask on standard error, apart from the output. Raises click.Abort unless the answer is yes."""
    for thread in chosen[:MOST_SHOWN]:
        messages = options.say.many("messages", thread.messages)
        click.echo(f"  {one_line(thread.id)}  {one_line(thread.title)}  {messages}", err=True)
    if len(chosen) > MOST_SHOWN:
        click.echo(f"  {options.say('more', n=str(len(chosen) - MOST_SHOWN))}", err=True)
    click.confirm(options.say.many("remove_ask", len(chosen)), abort=True, err=True)


def _pin_title(store: Threads, thread: Thread, pin: Pin) -> str:
    if pin.order is None:
        return text_title(pin.text)
    row = next(store.read(thread.id, pin.order, pin.order + 1))
    title = text_title(row.entry.text) if isinstance(row.entry, Message) else ""
    return f"{pin.order}  {one_line(title)}".rstrip()


def _print_change(options: SessionOptions, key: str, thread: Thread) -> None:
    if options.json:
        print_json(thread_json(thread))
    else:
        click.echo(options.say(key, title=_title(thread)))


def _title(thread: Thread) -> str:
    return one_line(thread.title) or one_line(thread.id)
