"""The token map on a terminal, in 80 columns or more. It draws an `Inspection`, the most important first.

Without colours (a pipe, NO_COLOR), letters show the categories.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from everlong.cli.maps.inspection import Inspection
from everlong.cli.maps.rows import (
    NEAREST,
    SCHEMAS,
    Row,
    Segment,
    State,
    causes_of,
    cells_of,
    segments_of,
    states_of,
    totals_of,
)
from everlong.cli.terminal.tables import amount, bar, percent, thousands
from everlong.cli.terminal.text import one_line
from everlong.cli.words.wording import Words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["draw_map"]

WIDE = 100  # columns; from here on, bars are longer
FREE, REPLY, BOUNDARY = "free", "reply", "boundary"
MOST_LINES = 4  # of the picture
CELL_TOKENS = 4  # tokens per cell before the picture gets another line
SHARE_COLUMNS = 48  # columns of a table of shares without its bars
ROUNDS_PER_TOP = 3  # rounds matter most: their list has three times as many rows as the others
PLACES_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Look:
    """A cell: its style and sign with colours, and its letter without."""

    style: str
    letter: str
    sign: str = "█"


LOOKS: dict[str, _Look] = {
    SCHEMAS: _Look("#8a94a3", "#"),
    "system": _Look("#64708a", "S"),
    "user": _Look("#e08a3c", "U"),
    "assistant": _Look("#5b7fd6", "A"),
    "reasoning": _Look("#a9b9ea", "r"),
    "calls": _Look("#1f8a80", "c"),
    "results": _Look("#6bbcae", "="),
    "images": _Look("#d0709c", "i"),
    "other": _Look("#a39c94", "?"),
    FREE: _Look("dim", "·", "─"),
    REPLY: _Look("dim", "%", "╌"),
    BOUNDARY: _Look("bold", "¦", "┃"),
    State.STAYS.value: _Look("#4f9d69", "|"),
    State.TRIMMED.value: _Look("#d9a53a", "~"),
    State.GOES.value: _Look("dim", ".", "·"),
}


@dataclass(frozen=True)
class _Pen:
    """Draws on a console in one language."""

    out: "Console"
    say: Words
    colour: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "colour", self.out.color_system is not None and not self.out.no_color)

    @property
    def width(self) -> int:
        """The columns of the terminal."""
        return self.out.width

    @property
    def _bar_width(self) -> int:
        return 24 if self.width >= WIDE else 12

    def print(self, what: "Text | Table | str" = "") -> None:
        """Print a line or a table."""
        self.out.print(what)

    def line(self, *pieces: tuple[str, str]) -> None:
        """Print a line of (text, style) pieces."""
        self.print(self.text(*pieces))

    def heading(self, title: str, beside: str = "") -> None:
        """Print a title after a blank line."""
        self.print()
        self.line((title, "bold"), (f"  {beside}" if beside else "", "dim"))

    def more(self, left: int, tokens: int | None = None) -> None:
        """Print how much a list leaves out, if anything."""
        if left <= 0:
            return
        if tokens is None:
            text = self.say("more_rows", n=amount(left))
        else:
            text = self.say("more_tokens", n=amount(left), tokens=amount(tokens))
        self.line((f"  {text} ({self.say('more_hint')})", "dim"))

    def text(self, *pieces: tuple[str, str]) -> "Text":
        """Return (text, style) pieces as one text; brackets in it are not markup."""
        from rich.text import Text  # noqa: PLC0415 - loaded when something is drawn

        return Text.assemble(*pieces)

    def named(self, text: str, category: str) -> "Text":
        """Return a text in the colour of a category."""
        return self.text((text, LOOKS[category].style if self.colour else ""))

    def bar(self, part: int, whole: int, category: str, width: int = 0) -> "Text":
        """Return a bar for a column."""
        width = width if width > 0 else self._bar_width
        return self.named(bar(part, whole, width).ljust(width), category)

    def ribbon(self, segments: Sequence[Segment], whole: int) -> "Text":
        """Return a bar that shows its categories; without colours, a plain bar."""
        tokens = sum(size for _, size in segments)
        if not self.colour:
            return self.bar(tokens, whole, SCHEMAS)
        width = self._bar_width
        drawn = self.cells(cells_of(segments, max(1, round(width * tokens / whole)) if whole else 0))
        drawn.pad_right(width - len(drawn))
        return drawn

    def cells(self, names: Iterable[str]) -> "Text":
        """Return one sign for each cell."""
        line = self.text()
        for look in (LOOKS[name] for name in names):
            if self.colour:
                line.append(look.sign, look.style)
            else:
                line.append(look.letter)
        return line

    def legend(self, names: Iterable[str]) -> "Text":
        """Return the meaning of the cells; an entry that does not fit begins a new line."""
        lines = self.text()
        used = 0
        for name in names:
            look = LOOKS[name]
            sign = look.letter if not self.colour else "■" if look.sign == "█" else look.sign
            entry = self.text((sign, look.style if self.colour else ""), (f" {self.say(name)}", "dim"))
            if used and used + 3 + entry.cell_len > self.width:
                lines.append("\n")
                used = 0
            lines.append("   " if used else "").append_text(entry)
            used += (3 if used else 0) + entry.cell_len
        return lines

    def grid(self, *head: str, title_at: int = 1, left: Sequence[int] = ()) -> "Table":
        """Return a table as wide as the terminal. Only column `title_at` is shortened if it does not fit."""
        from rich.table import Table  # noqa: PLC0415

        drawn = Table(box=None, expand=True, pad_edge=False, padding=(0, 1), header_style="dim", show_edge=False)
        for at, name in enumerate(head):
            if at == 0:
                drawn.add_column(name, justify="right", no_wrap=True, style="dim", min_width=2)
            elif at == title_at:
                drawn.add_column(name, ratio=1, no_wrap=True, overflow="ellipsis")
            else:
                drawn.add_column(name, justify="left" if at in left or at < title_at else "right", no_wrap=True)
        return drawn


def draw_map(inspection: Inspection, out: "Console", say: Words, *, top: int = 10) -> None:
    """Draw everything. `top` is the most rows of a list, 0 for all."""
    pen = _Pen(out, say)
    _window(inspection, pen)
    _picture(inspection, pen)
    _plan(inspection, pen)
    _problems(inspection, pen, top)
    _rounds(inspection, pen, top)
    _shares(inspection, pen)
    _tools(inspection, pen, top)
    _heaviest(inspection, pen, top)
    _protected(inspection, pen, top)
    _repeats(inspection, pen, top)
    _warnings(inspection, pen, top)


# --- the window, the history, the budget -------------------------------------------------------


def _window(inspection: Inspection, pen: _Pen) -> None:
    """Draw the total against the window, and how both figures were obtained."""
    say = pen.say
    facts = [
        inspection.fmt,
        inspection.map.model or say("unknown_model"),
        say.many("messages", len(inspection.rows)),
        say.many("rounds", len(inspection.map.rounds)),
    ]
    pen.line((one_line(inspection.name), "bold"), *((f" · {one_line(fact)}", "dim") for fact in facts))
    pen.print()
    total = ("≈ " if inspection.spread else "") + say.many("tokens", inspection.meter.tokens)
    context = inspection.meter.limit
    share = say(
        "of_window", share=say.share(inspection.meter.tokens, inspection.used_at_most, context), n=amount(context)
    )
    pen.line((total, "bold"), (f"  {share}", ""))
    pen.print(_gauge(inspection, pen))
    over = inspection.free < 0
    pen.line(
        (f"{say('over' if over else 'free')} {amount(abs(inspection.free))}", "bold red" if over else "bold green"),
        (f" · {say('reply')} {amount(inspection.budget.reply)}", ""),
        (f" · {say('margin')} {amount(inspection.budget.margin)}", ""),
    )
    pen.line((f"{_counting(inspection, pen)} · {say('window')}: {_source(inspection, pen)}", "dim"))
    if inspection.sent_from > inspection.head:
        pen.line((say("compacted", n=amount(inspection.map.total), at=f"#{inspection.sent_from}"), "yellow"))


def _picture(inspection: Inspection, pen: _Pen) -> None:
    """Draw the history in up to four lines; with a budget, what happens to it below each line."""
    say, total = pen.say, inspection.map.total
    if not total:
        return
    segments = [(SCHEMAS, inspection.map.schemas), *segments_of(inspection.rows)]
    margin = len(thousands(total)) + 2
    width = pen.width - margin
    lines = max(1, min(MOST_LINES, total // (width * CELL_TOKENS)))
    layers = [cells_of(segments, width * lines)]
    if inspection.plan is not None:
        layers.append(
            cells_of([(State.STAYS.value, inspection.map.schemas), *states_of(inspection.rows)], width * lines)
        )
    _mark_boundaries(inspection, layers[0])
    pen.heading(say("history"), say("cell", n=amount(max(1, round(total / (width * lines))))))
    for line in range(lines):
        start = f"{thousands(total * line // lines):>{margin - 2}}  "
        for number, cells in enumerate(layers):
            front = pen.text((start if number == 0 else " " * margin, "dim"))
            pen.print(front.append_text(pen.cells(cells[line * width : (line + 1) * width])))
    pen.print(pen.legend([*totals_of(segments), *([BOUNDARY] if inspection.boundaries else [])]))
    if inspection.plan is not None:
        pen.print(pen.legend([State.STAYS, State.TRIMMED, State.GOES]))


def _plan(inspection: Inspection, pen: _Pen) -> None:
    """Draw what a budget does, by cause."""
    plan, say = inspection.plan, pen.say
    if inspection.impossible is not None:
        pen.heading(say("impossible", n=amount(inspection.impossible.limit)))
        pen.line((f"  {say.reason(str(inspection.impossible))}", "red"))
    if plan is None:
        return
    sizes = say("before_after", before=amount(plan.before), after=amount(plan.tokens))
    pen.heading(say("fitted", n=amount(plan.budget)), sizes)
    if not plan.edits:
        pen.line((f"  {say('fits_already')}", "green"))
        return
    grid = pen.grid("", say("column_why"), say("column_edits"), say("column_before"), say("column_after"))
    for cause in causes_of(plan.edits):
        figures = map(amount, (cause.edits, cause.before, cause.after))
        grid.add_row(say(cause.action.value), say.step(cause.step, cause.action), *figures)
    pen.print(grid)


def _gauge(inspection: Inspection, pen: _Pen) -> "Text":
    """Return the window as one line: what is in it, what is free, what is reserved for the reply."""
    sent = [row for row in inspection.rows if inspection.is_sent(row.index)]
    inside = totals_of([(SCHEMAS, inspection.map.schemas), *segments_of(sent)])
    kept = inspection.budget.reply + inspection.budget.margin
    free = max(0, inspection.meter.limit - kept - inspection.meter.tokens)
    return pen.cells(cells_of([*inside.items(), (FREE, free), (REPLY, kept)], pen.width))


def _counting(inspection: Inspection, pen: _Pen) -> str:
    say = pen.say
    most = [say("at_most", n=amount(inspection.used_at_most))] if inspection.spread else []
    how = [say("estimated" if inspection.spread else "exact"), *most, say("vocabulary", name=inspection.map.vocabulary)]
    return say("comma").join(how)


def _source(inspection: Inspection, pen: _Pen) -> str:
    limits = inspection.window
    return pen.say(f"source_{limits.source}", **({"date": limits.date} if limits.source == "registry" else {}))


def _mark_boundaries(inspection: Inspection, cells: list[str]) -> None:
    starts = list(accumulate((message.tokens for message in inspection.map.messages), initial=inspection.map.schemas))
    for at in inspection.boundaries:
        cells[min(len(cells) - 1, starts[at] * len(cells) // inspection.map.total)] = BOUNDARY


# --- the lists ---------------------------------------------------------------------------------


def _rounds(inspection: Inspection, pen: _Pen, top: int) -> None:
    """Draw the rounds in order of time; if there are too many, the heaviest of them."""
    rounds, say = inspection.map.rounds, pen.say
    if not rounds:
        return
    numbered = list(enumerate(rounds, start=1))
    by_weight = sorted(numbered, key=lambda row: (-row[1].tokens, row[0]))
    kept = sorted(by_weight[: top * ROUNDS_PER_TOP or None])
    pen.heading(say("by_round"))
    grid = pen.grid("", say("column_what"), "", say("column_tokens"), say("share"), left=(2,))
    for number, weight in kept:
        grid.add_row(
            str(number),
            pen.text((one_line(weight.title) or say("nothing_asked"), "")),
            pen.ribbon(segments_of(inspection.rows[weight.start : weight.stop]), by_weight[0][1].tokens),
            amount(weight.tokens),
            percent(weight.tokens, inspection.map.total),
        )
    pen.print(grid)
    pen.more(len(rounds) - len(kept), sum(w.tokens for w in rounds) - sum(w.tokens for _, w in kept))


def _shares(inspection: Inspection, pen: _Pen) -> None:
    weights, say = inspection.map, pen.say
    extra = [(SCHEMAS, say(SCHEMAS), weights.schemas, "")] if weights.schemas else []
    roles = [(role.value, say.name(role.value), tokens, amount(n)) for role, tokens, n in weights.by_role]
    kinds = [(kind, say.name(kind), tokens, "") for kind, tokens in weights.by_kind]
    _share_table(inspection, pen, say("by_role"), [*roles, *extra], [say("column_messages")])
    _share_table(inspection, pen, say("by_kind"), [*kinds, *extra], [])


def _share_table(
    inspection: Inspection, pen: _Pen, title: str, rows: Iterable[tuple[str, str, int, str]], last: Sequence[str]
) -> None:
    listed = sorted(rows, key=lambda row: -row[2])
    if not listed:
        return
    pen.heading(title)
    grid = pen.grid("", "", "", pen.say("column_tokens"), pen.say("share"), *last, left=(2,))
    for key, name, tokens, beside in listed:
        drawn = pen.bar(tokens, listed[0][2], NEAREST.get(key, key), width=pen.width - SHARE_COLUMNS)
        grid.add_row(
            "", name, drawn, amount(tokens), percent(tokens, inspection.map.total), *([beside] if last else [])
        )
    pen.print(grid)


def _tools(inspection: Inspection, pen: _Pen, top: int) -> None:
    tools, say = inspection.map.by_tool, pen.say
    if not tools:
        return
    pen.heading(say("by_tool"))
    head = (say("column_tokens"), say("column_calls"), say("column_asked"), say("column_answered"))
    grid = pen.grid("", "", "", *head, left=(2,))
    kept = tools[: top or None]
    for tool in kept:
        name = pen.text((one_line(say.name(tool.name)), ""))
        figures = map(amount, (tool.tokens, tool.calls, tool.call_tokens, tool.result_tokens))
        grid.add_row("", name, pen.bar(tool.tokens, tools[0].tokens, "results"), *figures)
    pen.print(grid)
    pen.more(len(tools) - len(kept), sum(tool.tokens for tool in tools[len(kept) :]))


def _heaviest(inspection: Inspection, pen: _Pen, top: int) -> None:
    rows = [inspection.rows[weight.index] for weight in inspection.map.heaviest[: top or None]]
    title, column = pen.say("heaviest"), pen.say("share")
    _messages(pen, title, column, rows, lambda row: percent(row.tokens, inspection.map.total))


def _protected(inspection: Inspection, pen: _Pen, top: int) -> None:
    rows = [row for row in inspection.rows if row.protected]
    kept, rest = rows[: top or None], rows[top or len(rows) :]
    _messages(pen, pen.say("protected"), pen.say("column_why"), kept, lambda row: pen.say.name(row.protected))
    pen.more(len(rest), sum(row.tokens for row in rest))


def _messages(pen: _Pen, title: str, column: str, rows: Sequence[Row], beside: Callable[[Row], str]) -> None:
    if not rows:
        return
    say = pen.say
    pen.heading(title)
    words = (4,) if column == say("column_why") else ()
    grid = pen.grid("", "", say("column_what"), say("column_tokens"), column, title_at=2, left=words)
    for row in rows:
        kind = pen.named(say.name(row.label), row.category)
        what = pen.text((one_line(row.title) or say("pictures_only"), ""))
        grid.add_row(f"#{row.index}", kind, what, amount(row.tokens), beside(row))
    pen.print(grid)


def _repeats(inspection: Inspection, pen: _Pen, top: int) -> None:
    repeats, say = inspection.map.repeats, pen.say
    if not repeats:
        return
    pen.heading(say("repeats"), say.many("wasted", sum(repeat.wasted for repeat in repeats)))
    head = (say("column_what"), say("column_where"), say("column_copies"), say("column_wasted"))
    grid = pen.grid("", *head, left=(2,))
    kept = repeats[: top or None]
    for repeat in kept:
        places = [f"#{at}" for at in repeat.messages[:PLACES_NAMED]]
        where = " ".join([*places, *(["…"] if len(repeat.messages) > PLACES_NAMED else [])])
        what = pen.text((one_line(repeat.title) or say("pictures_only"), ""))
        grid.add_row("", what, where, amount(len(repeat.messages)), amount(repeat.wasted))
    pen.print(grid)
    pen.more(len(repeats) - len(kept), sum(repeat.wasted for repeat in repeats[len(kept) :]))


def _problems(inspection: Inspection, pen: _Pen, top: int) -> None:
    say = pen.say
    pen.print()
    if not inspection.problems:
        pen.line((f"✓ {say('accepted', fmt=inspection.checked_for)}", "green"))
        return
    count = say.many("problem_count", len(inspection.problems))
    checked = say("checked_for", fmt=inspection.checked_for)
    pen.line((f"✗ {say('problems')}", "bold red"), (f"  {count}{say('comma')}{checked}", "dim"))
    kept = inspection.problems[: top or None]
    for problem in kept:
        pen.line((f"  {one_line(problem.where)}: ", "bold"), (one_line(say.reason(problem.text)), ""))
    pen.more(len(inspection.problems) - len(kept))


def _warnings(inspection: Inspection, pen: _Pen, top: int) -> None:
    if not inspection.warnings:
        return
    pen.heading(pen.say("warnings"))
    kept = inspection.warnings[: top or None]
    for warning in kept:
        pen.line((f"  {one_line(warning)}", "yellow"))
    pen.more(len(inspection.warnings) - len(kept))
