"""Tables that commands of the chat draw: where the window goes, what was left out, threads, pins, what was found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from everlong.cli.chat.drawing import words
from everlong.cli.chat.meter import Meter
from everlong.cli.sessions.lists import excerpt, when
from everlong.cli.terminal.tables import amount, bar, percent
from everlong.cli.terminal.text import one_line
from everlong.cli.words.wording import Words
from everlong.core import Edit, Hit, Message, Pin, Reasoning, Recalled, Role, Thread, ToolCall, ToolResult
from everlong.engine import Engine, Prepared, Threads, counter_for
from everlong.summarize import is_framed
from everlong.tokens import Counter

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "GROUPS",
    "Share",
    "Told",
    "edits_table",
    "hits_drawn",
    "map_table",
    "pins_table",
    "shares_of",
    "threads_table",
]

#: What a request is made of, in the order it is told.
GROUPS = ("system", "summary", "recalled", "user", "assistant", "thinking", "tools", "schemas")


@dataclass(frozen=True, slots=True)
class Share:
    """One group of a request: its messages and their tokens. A message that calls tools counts in two groups."""

    group: str
    tokens: int
    messages: int


def shares_of(engine: Engine, prepared: Prepared) -> tuple[Share, ...]:
    """Where the tokens of a request go, by group, as the counter of its model counts them."""
    counter = counter_for(prepared.call.model)
    opened = engine.threads.open(prepared.thread)
    recalled = frozenset(row.entry.message for row in opened.rows if isinstance(row.entry, Recalled))
    tokens: dict[str, int] = {}
    count: dict[str, int] = {}
    for message in prepared.request.messages:
        for group, size in _split(message, counter, recalled):
            tokens[group] = tokens.get(group, 0) + size
            count[group] = count.get(group, 0) + 1
    schemas = counter.tools(prepared.request.tools)
    if schemas:
        tokens["schemas"], count["schemas"] = schemas, len(prepared.request.tools)
    return tuple(Share(group, tokens[group], count[group]) for group in GROUPS if group in tokens)


def _split(message: Message, counter: Counter, recalled: frozenset[Message]) -> Iterable[tuple[str, int]]:
    """A message by what it is; of an answer calls and thoughts are told apart, the rest is its words."""
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
    return "summary" if is_framed(message.text) else "user"  # what stands in place of what left


BAR = 24  # columns
MOST_EDITS = 12
PIN_LENGTH = 200
#: The colour of each part of the window.
COLOURS = {
    "system": "magenta",
    "summary": "green",
    "recalled": "green",
    "user": "yellow",
    "assistant": "bright_blue",
    "thinking": "blue",
    "tools": "cyan",
    "schemas": "cyan",
    "free": "dim",
    "reply": "dim",
}


@dataclass(frozen=True, slots=True)
class Told:
    """Where and in which language."""

    out: "Console"
    say: Words

    def table(self, *columns: tuple[str, bool]) -> "Table":
        """A plain table; True for columns of figures."""
        from rich import box  # noqa: PLC0415 - only where it is seen
        from rich.table import Table  # noqa: PLC0415

        drawn = Table(box=box.SIMPLE, pad_edge=False, header_style="dim")
        for key, figures in columns:
            drawn.add_column(self.say(key), justify="right" if figures else "left", overflow="fold")
        return drawn


def map_table(told: Told, engine: Engine, prepared: Prepared, meter: Meter | None) -> None:
    """Where the window goes, group by group, what is free and what the answer keeps for itself."""
    say, window = told.say, prepared.window.context
    shares = shares_of(engine, prepared)
    used = sum(share.tokens for share in shares)
    rows = [(share.group, share.tokens) for share in shares]
    rows += [("reply", prepared.budget.reply), ("free", max(0, window - used - prepared.budget.reply))]
    drawn = told.table(
        ("column_group", False), ("column_tokens", True), ("column_share", True), ("column_number", False)
    )
    for group, tokens in rows:
        bars = words(bar(tokens, window, BAR), COLOURS[group])
        drawn.add_row(words(say(f"group_{group}")), amount(tokens), percent(tokens, window), bars)
    told.out.print(drawn)
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
    facts.append(say("counted", how=how, meter=meter.text(say) if meter else "?"))
    told.out.print(words(" · ".join(facts), "dim"))


def edits_table(told: Told, edits: Sequence[Edit]) -> None:
    """What was changed on the way to a request, the largest first."""
    say = told.say
    ordered = sorted(edits, key=lambda edit: -abs(edit.saved))
    columns = (("column_message", True), ("column_what", False), ("column_why", False))
    drawn = told.table(*columns, ("column_before", True), ("column_after", True), ("column_ref", False))
    for edit in ordered[:MOST_EDITS]:
        drawn.add_row(
            str(edit.at),
            say(edit.action.value),
            words(say.reason(one_line(edit.reason))),
            amount(edit.before),
            amount(edit.after),
            words(edit.ref or "", "cyan"),
        )
    told.out.print(drawn)
    if len(edits) > MOST_EDITS:
        told.out.print(words(say("why_more", n=amount(len(edits) - MOST_EDITS)), "dim"))
    before, after = sum(edit.before for edit in edits), sum(edit.after for edit in edits)
    total = say("why_saved", edits=say.many("edits", len(edits)), before=amount(before), after=amount(after))
    told.out.print(words(f"{total}. {say('why_back')}", "dim"))


def threads_table(told: Told, threads: Sequence[Thread], here: str) -> None:
    """Threads with a number to choose them by."""
    say, now = told.say, datetime.now(UTC)
    columns = (("column_number", True), ("column_title", False), ("column_messages", True))
    drawn = told.table(*columns, ("column_changed", True), ("column_id", False))
    for number, thread in enumerate(threads, 1):
        title = words(one_line(thread.title) or say("untitled"), "" if thread.title else "dim")
        if thread.id == here:
            title.append(f"  {say('threads_here')}", style="green")
        changed = when(thread.updated, now, Words(say.language, "sessions"))
        drawn.add_row(str(number), title, amount(thread.messages), changed, words(one_line(thread.id), "dim"))
    told.out.print(drawn)


def pins_table(told: Told, threads: Threads, thread: str, pins: Sequence[Pin]) -> None:
    """What is kept in every request, with the number that `/unpin` takes."""
    for number, pin in enumerate(pins, 1):
        line = words(f"{number:>3}  ", "dim")
        line.append(one_line(_pinned(threads, thread, pin))[:PIN_LENGTH], style="yellow")
        told.out.print(line)


def _pinned(threads: Threads, thread: str, pin: Pin) -> str:
    if pin.order is None:
        return pin.text[: 4 * PIN_LENGTH]
    row = next(iter(threads.read(thread, pin.order, pin.order + 1)), None)
    said = row.entry.text if row is not None and isinstance(row.entry, Message) else ""
    return f"#{pin.order} {said[: 4 * PIN_LENGTH]}"


def hits_drawn(told: Told, threads: Threads, hits: Sequence[Hit], query: str, *, titles: bool) -> None:
    """Messages that were found, the words asked for marked; grouped by thread where there may be several."""
    from rich.padding import Padding  # noqa: PLC0415 - only where it is seen

    for name in dict.fromkeys(hit.thread for hit in hits):
        if titles:
            thread = threads.thread(name)
            head = words(one_line(thread.title) or told.say("untitled"), "bold")
            told.out.print(head.append(f"  {one_line(name)}", style="not bold dim"))
        for hit in hits:
            if hit.thread != name or not isinstance(hit.row.entry, Message):
                continue
            text, marks = excerpt(hit.row.entry, query)
            shown = words(text)
            for start, stop in marks:
                shown.stylize("bold yellow", start, stop)
            role = told.say.name(hit.row.entry.role.value)
            told.out.print(words(f"{hit.row.order:>5}  {role}", "dim"))
            told.out.print(Padding(shown, (0, 0, 0, 7), expand=False))
