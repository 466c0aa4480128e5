"""`everlong sessions show`: every message of a session, with compactions marked where they take effect."""

import json
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, assert_never

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
from everlong.cli.terminal.tables import amount, console
from everlong.cli.terminal.text import clean, one_line
from everlong.cli.words.wording import Words
from everlong.core import (
    Gone,
    Image,
    Message,
    Opaque,
    Part,
    Pin,
    Point,
    Reasoning,
    Recalled,
    Removal,
    Restoration,
    Role,
    Row,
    Text,
    Thread,
    ToolCall,
    ToolResult,
    Withdrawal,
    encode,
)
from everlong.engine import Threads, call_title
from everlong.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Transcript", "draw_session", "show_command"]

SHOWN = 40  # messages
MOST_CHARACTERS = 1_200  # of one part
MOST_LINES = 16
INDENT = 7
JOINT = " · "
RULE_ENDS = 4  # cells of a rule on each side of its text
#: Colour names, not values: every terminal, dark or light, has a readable form of them.
COLOURS = {
    Role.SYSTEM: "bold magenta",
    Role.USER: "bold yellow",
    Role.ASSISTANT: "bold bright_blue",
    Role.TOOL: "bold cyan",
}
CALL_COLOUR = "cyan"
BOUNDARY_COLOUR = "green"


@dataclass(frozen=True, slots=True)
class Transcript:
    """The part of a session that is shown: its last rows, its points and whether each is in force, its pins."""

    thread: Thread
    rows: tuple[Row, ...]
    earlier: int
    points: tuple[tuple[Row, bool], ...]
    pins: tuple[Pin, ...]
    before: int | None = None


@click.command(
    "show",
    cls=ExampleCommand,
    examples=(
        "everlong sessions show harbour",
        "everlong sessions show harbour --last 0 --full",
    ),
)
@click.argument("session", metavar="ID")
@click.option(
    "--last",
    default=SHOWN,
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show the last N messages; 0 shows all (default: {SHOWN}).",
)
@click.option(
    "--before", metavar="POINT", help="Show the session as it was before this compaction point (its number or id)."
)
@click.option("--full", is_flag=True, help="Show long messages in full.")
@session_command
def show_command(options: SessionOptions, session: str, last: int, before: str | None, full: bool) -> None:
    """Show every message of the session ID, compacted ones too. The beginning of an id is enough."""
    with session_store(options.url) as store:
        thread = find_thread(store, session)
        stop = None if before is None else _point(store, thread, before)
        transcript = _transcript(store, thread, last, stop)
    if options.json:
        print_json(_as_json(transcript))
    else:
        draw_session(transcript, console(), options.say, full=full)


def _point(store: Threads, thread: Thread, name: str) -> int:
    """Return the order of the point with this number or id."""
    row = find_row(store, thread, name)
    if not isinstance(row.entry, Point):
        points = ", ".join(str(point.order) for point, _ in store.points(thread.id))
        raise InputError(
            f"row {name} is not a compaction point; "
            + (f"this session has points {points}" if points else "this session has none")
        )
    return row.order


def _transcript(store: Threads, thread: Thread, last: int, stop: int | None) -> Transcript:
    pins = store.pins(thread.id)
    if stop is None:
        tail = store.last(thread.id, last) if last else []
        start = tail[0].order if tail and len(tail) < thread.messages else 0
        rows, points = tuple(store.read(thread.id, start)), tuple(store.points(thread.id))
        return Transcript(thread, rows, thread.messages - _messages(rows), points, pins)
    rows = tuple(store.read(thread.id, 0, stop))
    withdrawn = {row.entry.point for row in rows if isinstance(row.entry, Withdrawal)}
    points = tuple((row, row.order not in withdrawn) for row in rows if isinstance(row.entry, Point))
    spoken = [at for at, row in enumerate(rows) if isinstance(row.entry, Message)]
    start = spoken[-last] if 0 < last < len(spoken) else 0
    pins = tuple(pin for pin in pins if pin.order is None or pin.order < stop)
    return Transcript(thread, rows[start:], len(spoken) - _messages(rows[start:]), points, pins, stop)


def _messages(rows: Sequence[Row]) -> int:
    return sum(isinstance(row.entry, Message) for row in rows)


def _as_json(transcript: Transcript) -> dict[str, object]:
    standing = {row.order for row, stands in transcript.points if stands}
    return thread_json(transcript.thread) | {
        "before": transcript.before,
        "earlier": transcript.earlier,
        "pins": [asdict(pin) for pin in transcript.pins],
        "rows": [_row_json(row, standing) for row in transcript.rows],
    }


def _row_json(row: Row, standing: Container[int]) -> dict[str, object]:
    fields: dict[str, object] = {"order": row.order, "id": row.id, "appended": row.time}
    match row.entry:
        case Message() as message:
            return fields | {"kind": "message", "text": message.text, "message": json.loads(encode(message))}
        case Point() as point:
            summary = {"summary": [json.loads(encode(one)) for one in point.summary], "stands": row.order in standing}
            messages = None if point.figures is None else point.figures.messages
            figures = {"messages": messages, "tokens_before": point.sizes[0], "tokens_after": point.sizes[1]}
            return fields | {"kind": "point", "boundary": point.boundary, "reason": point.reason} | summary | figures
        case Withdrawal(withdrawn):
            return fields | {"kind": "withdrawal", "point": withdrawn}
        case Recalled(before, message):
            return fields | {"kind": "recalled", "before": before, "message": json.loads(encode(message))}
        case Removal(orders):
            return fields | {"kind": "removal", "removed": list(orders)}
        case Restoration(removal):
            return fields | {"kind": "restoration", "removal": removal}
        case Gone():
            return fields | {"kind": "gone"}
        case _:
            assert_never(row.entry)


# --- on a terminal ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pen:
    out: "Console"
    say: Words
    full: bool

    def line(self, text: str, style: str = "", indent: int = 0) -> None:
        """Print foreign text as plain text, without markup."""
        from rich.padding import Padding  # noqa: PLC0415 - only where it is seen
        from rich.text import Text as RichText  # noqa: PLC0415

        self.out.print(Padding(RichText(text, style=style), (0, 0, 0, indent), expand=False))

    def long(self, text: str, style: str = "") -> None:
        """Print a text, shortened unless it is wanted in full."""
        whole = clean(text).strip("\n")
        kept = whole if self.full else "\n".join(whole[:MOST_CHARACTERS].split("\n")[:MOST_LINES])
        kept = kept.rstrip()
        if kept:
            self.line(kept, style, INDENT)
        if len(kept) < len(whole.rstrip()):
            self.line(self.say.many("cut", len(whole) - len(kept)), "dim italic", INDENT)

    def rule(self, text: str, style: str) -> None:
        """Print a line across the terminal with a text in it."""
        from rich.rule import Rule  # noqa: PLC0415
        from rich.text import Text as RichText  # noqa: PLC0415

        self.out.print(Rule(RichText(text, style=style), style=style, align="left"))

    def boundary(self, facts: Sequence[str], style: str) -> None:
        """Print a line across the terminal with facts in it; facts that do not fit are printed below."""
        from rich.cells import cell_len  # noqa: PLC0415

        inside = len(facts)
        while inside > 1 and cell_len(JOINT.join(facts[:inside])) > self.out.width - RULE_ENDS:
            inside -= 1
        self.rule(JOINT.join(facts[:inside]), style)
        if facts[inside:]:
            self.line(JOINT.join(facts[inside:]), style, INDENT)


def draw_session(transcript: Transcript, out: "Console", say: Words, *, full: bool = False) -> None:
    """Print a session. A compaction is shown where it takes effect, not where it was appended."""
    pen = _Pen(out, say, full)
    _draw_head(pen, transcript)
    newest = max((row.order for row, stands in transcript.points if stands), default=None)
    first = transcript.rows[0].order if transcript.rows else 0
    places: dict[int, list[tuple[Row, bool]]] = {}
    for row, stands in transcript.points:
        if isinstance(row.entry, Point) and (row.entry.boundary >= first or row.order == newest):
            places.setdefault(max(first, row.entry.boundary), []).append((row, stands))
    pinned = {pin.order for pin in transcript.pins}
    for row in transcript.rows:
        for point, stands in places.pop(row.order, ()):
            _draw_point(pen, point, stands=stands, newest=newest)
        if row.order > first and isinstance(row.entry, Message) and row.entry.role is Role.USER:
            out.print()
        _draw_row(pen, row, pinned=row.order in pinned)
    for left in places.values():
        for point, stands in left:
            _draw_point(pen, point, stands=stands, newest=newest)


def _draw_head(pen: _Pen, transcript: Transcript) -> None:
    thread, say = transcript.thread, pen.say
    pen.line(one_line(thread.title) or say("untitled"), "bold")
    facts = [one_line(thread.id), one_line(thread.owner), say.many("messages", thread.messages)]
    if thread.standing:
        facts.append(say.many("points", thread.standing))
    if thread.archived:
        facts.append(say("archived"))
    if thread.parent[0]:
        facts.append(say("branch_of", id=one_line(thread.parent[0]), at=str(thread.parent[1] - 1)))
    if transcript.before is not None:
        facts.append(say("before", at=str(transcript.before)))
    pen.line(JOINT.join(filter(None, facts)), "dim")
    for pin in transcript.pins:
        if pin.order is None:
            pen.line(f"{say('pinned_text')}: {one_line(pin.text)}", "yellow")
    pen.out.print()
    if transcript.earlier:
        pen.line(f"… {say.many('earlier', transcript.earlier)}", "dim italic", INDENT)


def _draw_point(pen: _Pen, row: Row, *, stands: bool, newest: int | None) -> None:
    point, say = row.entry, pen.say
    if not isinstance(point, Point):
        return
    state = "boundary_withdrawn" if not stands else "boundary_stands" if row.order == newest else "boundary_older"
    facts = [say("boundary", at=str(row.order)), say(state)]
    before, after = point.sizes
    if point.figures is not None:
        facts.append(say.many("messages", point.figures.messages))
    if before and after:
        facts.append(say("tokens", before=amount(before), after=amount(after)))
    elif before:
        facts.append(say("tokens_covered", n=amount(before)))
    facts.append(one_line(point.reason))
    pen.boundary(list(filter(None, facts)), BOUNDARY_COLOUR if stands else "dim")
    if row.order == newest or pen.full:
        for message in point.summary:
            for part in message.parts:
                _draw_part(pen, part, BOUNDARY_COLOUR)
        if not point.summary:
            pen.line(say("no_summary"), "dim italic", INDENT)
        pen.rule("", BOUNDARY_COLOUR)


def _draw_row(pen: _Pen, row: Row, *, pinned: bool) -> None:
    match row.entry:
        case Message() as message:
            _draw_message(pen, row, message, pinned=pinned)
        case Recalled(before, message):
            pen.line(f"{row.order:>5}  {pen.say('recalled', at=str(before))}", "dim")
            for part in message.parts:
                _draw_part(pen, part, "dim")
        case _:
            return  # points are shown where they take effect, and a withdrawal is shown on its point


def _draw_message(pen: _Pen, row: Row, message: Message, *, pinned: bool) -> None:
    from rich.text import Text as RichText  # noqa: PLC0415 - only where it is seen

    head = RichText(f"{row.order:>5}  ", style="dim")
    head.append(pen.say.name(message.role.value), style=f"not dim {COLOURS[message.role]}")
    if message.name:
        head.append(f" {one_line(message.name)}", style="not dim")
    head.append(f"  {(message.time or row.time).astimezone().strftime('%Y-%m-%d %H:%M')}")
    if pinned:
        head.append(f"  {pen.say('pinned')}", style="not dim yellow")
    pen.out.print(head, no_wrap=True, overflow="ellipsis")
    for part in message.parts:
        _draw_part(pen, part)


def _draw_part(pen: _Pen, part: Part, style: str = "") -> None:
    match part:
        case Text(text):
            pen.long(text, style)
        case Reasoning(text) if text:
            pen.long(f"{pen.say('thought')}: {text}", "dim italic")
        case ToolCall():
            pen.line(f"→ {one_line(call_title(part))}", CALL_COLOUR, INDENT)
        case ToolResult():
            _draw_result(pen, part)
        case Image():
            pen.line(pen.say("picture"), "dim", INDENT)
        case Opaque(kind):
            pen.line(f"[{one_line(kind)}]", "dim", INDENT)
        case _:
            return


def _draw_result(pen: _Pen, result: ToolResult) -> None:
    if result.failed:
        pen.line(pen.say("failed"), "red", INDENT)
    pen.long(result.text, "dim")
    others: Sequence[Part] = [part for part in result.content if not isinstance(part, Text)]
    for part in others:
        _draw_part(pen, part)
