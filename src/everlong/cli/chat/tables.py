"""Tables that the commands of the chat print: the window, what was left out, threads, pins, search results."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from everlong.agent import Change
from everlong.cli.chat.drawing import plain
from everlong.cli.chat.screen import meter_text
from everlong.cli.sessions.lists import excerpt, when
from everlong.cli.terminal.tables import amount, bar, percent, print_listing
from everlong.cli.terminal.text import one_line
from everlong.cli.words.wording import Words
from everlong.core import Edit, Hit, Message, Pin, Reasoning, Recalled, Role, Thread, ToolCall, ToolResult, is_framed
from everlong.engine import Engine, Meter, Prepared, Threads, counter_for
from everlong.tokens import Counter

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["print_changes", "print_edits", "print_hits", "print_map", "print_pins", "print_threads"]

BAR = 24  # columns
MOST_EDITS = 12
PIN_LENGTH = 200
#: The parts of the window with their colours, in the order of the map.
COLOURS = {
    "system": "magenta",
    "summary": "green",
    "recalled": "green",
    "user": "yellow",
    "assistant": "bright_blue",
    "thinking": "blue",
    "tools": "cyan",
    "schemas": "cyan",
    "reply": "dim",
    "free": "dim",
}


def print_map(out: "Console", say: Words, engine: Engine, prepared: Prepared, meter: Meter | None) -> None:
    """Print what fills the window, what is free, and what is reserved for the answer."""
    window = prepared.window.context
    tokens_by_group = _tokens_by_group(engine, prepared)
    used = sum(tokens_by_group.values())
    tokens_by_group |= {"reply": prepared.budget.reply, "free": max(0, window - used - prepared.budget.reply)}
    drawn = _table(
        say, ("column_group", False), ("column_tokens", True), ("column_share", True), ("column_number", False)
    )
    for group, tokens in tokens_by_group.items():
        bars = plain(bar(tokens, window, BAR), COLOURS[group])
        drawn.add_row(plain(say(f"group_{group}")), amount(tokens), percent(tokens, window), bars)
    out.print(drawn)
    opened = engine.threads.open(prepared.thread)
    facts = []
    if opened.point is not None:
        sent = {row.order for row in (*opened.head, *opened.rows)}
        covered = sum(
            row.order not in sent and isinstance(row.entry, Message) for row in engine.threads.read(prepared.thread)
        )
        facts.append(say.many("map_covered", covered))
    if opened.pins:
        facts.append(say.many("map_pins", len(opened.pins)))
    how = say("how_exact" if counter_for(prepared.call.model).exact else "how_estimated")
    facts.append(say("counted", how=how, meter=meter_text(meter, say) if meter else "?"))
    out.print(plain(" · ".join(facts), "dim"))


def _tokens_by_group(engine: Engine, prepared: Prepared) -> dict[str, int]:
    """Return the tokens of a request by group, as its model's counter counts them."""
    counter = counter_for(prepared.call.model)
    opened = engine.threads.open(prepared.thread)
    recalled = frozenset(row.entry.message for row in opened.rows if isinstance(row.entry, Recalled))
    tokens: dict[str, int] = {}
    for message in prepared.request.messages:
        for group, size in _split(message, counter, recalled):
            tokens[group] = tokens.get(group, 0) + size
    schemas = counter.tools(prepared.request.tools)
    if schemas:
        tokens["schemas"] = schemas
    return {group: tokens[group] for group in COLOURS if group in tokens}


def _split(message: Message, counter: Counter, recalled: frozenset[Message]) -> Iterable[tuple[str, int]]:
    """Yield the groups of a message and their tokens; an answer is split into thoughts, calls and text."""
    whole = counter.message(message)
    if message.role is not Role.ASSISTANT:
        yield _group(message, recalled), whole
        return
    calls = sum(counter.part(part) for part in message.parts if isinstance(part, ToolCall))
    thoughts = sum(counter.part(part) for part in message.parts if isinstance(part, Reasoning))
    if thoughts:
        yield "thinking", thoughts
    if calls:
        yield "tools", calls
    yield "assistant", whole - calls - thoughts


def _group(message: Message, recalled: frozenset[Message]) -> str:
    if message in recalled:
        return "recalled"
    if message.role is Role.SYSTEM:
        return "system"
    if message.role is Role.TOOL or any(isinstance(part, ToolResult) for part in message.parts):
        return "tools"
    return "summary" if is_framed(message.text) else "user"  # framed text replaces messages that were compacted


def print_edits(out: "Console", say: Words, edits: Sequence[Edit]) -> None:
    """Print the edits of a request, the largest first."""
    ordered = sorted(edits, key=lambda edit: -abs(edit.saved))
    columns = (("column_message", True), ("column_what", False), ("column_why", False))
    drawn = _table(say, *columns, ("column_before", True), ("column_after", True), ("column_ref", False))
    drawn.columns[-1].no_wrap = True  # complete, so that it can be copied
    for edit in ordered[:MOST_EDITS]:
        drawn.add_row(
            str(edit.at),
            say(edit.action.value),
            plain(say.reason(one_line(edit.reason))),
            amount(edit.before),
            amount(edit.after),
            plain(edit.ref or "", "cyan"),
        )
    out.print(drawn)
    if len(edits) > MOST_EDITS:
        out.print(plain(say("why_more", n=amount(len(edits) - MOST_EDITS)), "dim"))
    before, after = sum(edit.before for edit in edits), sum(edit.after for edit in edits)
    total = say("why_saved", edits=say.many("edits", len(edits)), before=amount(before), after=amount(after))
    out.print(plain(f"{total}. {say('why_back')}", "dim"))


def print_threads(out: "Console", say: Words, threads: Sequence[Thread], here: str) -> None:
    """Print threads with the number to choose each."""
    now, own = datetime.now(UTC), Words(say.language, "sessions")
    head = ("column_number", "column_title", "column_messages", "column_changed", "column_id")
    rows = []
    for number, thread in enumerate(threads, 1):
        title = plain(one_line(thread.title) or say("untitled"), "" if thread.title else "dim")
        if thread.id == here:
            title = plain(f"{say('threads_here')}  ", "green").append_text(title)
        figures = (amount(thread.messages), when(thread.updated, now, own))
        rows.append((plain(str(number)), title, *map(plain, figures), plain(one_line(thread.id), "dim")))
    print_listing(out, [say(name) for name in head], rows, title=1)


def print_pins(out: "Console", threads: Threads, thread: str, pins: Sequence[Pin]) -> None:
    """Print the pins with the number for `/unpin`."""
    for number, pin in enumerate(pins, 1):
        line = plain(f"{number:>3}  ", "dim")
        line.append(one_line(_pin_text(threads, thread, pin))[:PIN_LENGTH], style="yellow")
        out.print(line)


def print_changes(out: "Console", say: Words, changes: Sequence[Change]) -> None:
    """Print the changes of files with the number for `/restore`, newest first."""
    for number, change in enumerate(changes, 1):
        kind = "change_new" if change.new else "change_changed" if change.kept else "change_not_kept"
        line = plain(f"{number:>3}  ", "dim")
        line.append(one_line(change.path), style="yellow")
        line.append_text(plain(f"  {say(kind)} · {one_line(change.tool)} · {one_line(change.time)}", "dim"))
        out.print(line)


def _pin_text(threads: Threads, thread: str, pin: Pin) -> str:
    if pin.order is None:
        return pin.text[: 4 * PIN_LENGTH]
    row = next(iter(threads.read(thread, pin.order, pin.order + 1)), None)
    text = row.entry.text if row is not None and isinstance(row.entry, Message) else ""
    return f"#{pin.order} {text[: 4 * PIN_LENGTH]}"


def print_hits(out: "Console", say: Words, threads: Threads, hits: Sequence[Hit], query: str, *, titles: bool) -> None:
    """Print the messages of a search with the query's words marked; with `titles`, they are grouped by thread."""
    from rich.padding import Padding  # noqa: PLC0415 - only where it is seen

    for name in dict.fromkeys(hit.thread for hit in hits):
        if titles:
            thread = threads.thread(name)
            head = plain(one_line(thread.title) or say("untitled"), "bold")
            out.print(head.append(f"  {one_line(name)}", style="not bold dim"))
        for hit in hits:
            if hit.thread != name or not isinstance(hit.row.entry, Message):
                continue
            text, marks = excerpt(hit.row.entry, query)
            shown = plain(text)
            for start, stop in marks:
                shown.stylize("bold yellow", start, stop)
            role = say.name(hit.row.entry.role.value)
            out.print(plain(f"{hit.row.order:>5}  {role}", "dim"))
            out.print(Padding(shown, (0, 0, 0, 7), expand=False))


def _table(say: Words, *columns: tuple[str, bool]) -> "Table":
    """Return a plain table; a column is the key of its title and whether it has figures."""
    from rich import box  # noqa: PLC0415 - only where it is seen
    from rich.table import Table  # noqa: PLC0415

    drawn = Table(box=box.SIMPLE, pad_edge=False, header_style="dim")
    for key, figures in columns:
        drawn.add_column(say(key), justify="right" if figures else "left", overflow="fold")
    return drawn
