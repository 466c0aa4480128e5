"""The token map on a terminal: bars and tables that fit 80 columns and use more if there are.

Draws an `Inspection` and nothing else; the most important stands first.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from everlong.cli.maps.inspection import Inspection
from everlong.cli.maps.pen import Pen
from everlong.cli.maps.rows import NEAREST, SCHEMAS, Row, segments_of
from everlong.cli.maps.shown_text import one_line
from everlong.cli.maps.terminal_window import draw_picture, draw_plan, draw_window
from everlong.cli.maps.wording import Wording
from everlong.cli.terminal import amount, percent

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["draw_map"]

SHARE_COLUMNS = 48  # columns that a table of shares needs beside its bars
ROUNDS_PER_TOP = 3  # rounds are what one looks for: three times as many as in other lists
PLACES_NAMED = 3


def draw_map(shown: Inspection, out: "Console", say: Wording, *, top: int = 10) -> None:
    """Everything. `top` is how many rows a list may have, 0 for all."""
    pen = Pen(out, say)
    draw_window(shown, pen)
    draw_picture(shown, pen)
    draw_plan(shown, pen)
    _problems(shown, pen, top)
    _rounds(shown, pen, top)
    _shares(shown, pen)
    _tools(shown, pen, top)
    _heaviest(shown, pen, top)
    _protected(shown, pen, top)
    _repeats(shown, pen, top)
    _warnings(shown, pen, top)


def _rounds(shown: Inspection, pen: Pen, top: int) -> None:
    """In order of time; where there are too many, the heaviest of them."""
    rounds, say = shown.map.rounds, pen.say
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
            pen.ribbon(segments_of(shown.rows[weight.start : weight.stop]), by_weight[0][1].tokens),
            amount(weight.tokens),
            percent(weight.tokens, shown.map.total),
        )
    pen.print(grid)
    pen.more(len(rounds) - len(kept), sum(w.tokens for w in rounds) - sum(w.tokens for _, w in kept))


def _shares(shown: Inspection, pen: Pen) -> None:
    weights, say = shown.map, pen.say
    extra = [(SCHEMAS, say(SCHEMAS), weights.schemas, "")] if weights.schemas else []
    roles = [(role.value, say.known(role.value), tokens, amount(n)) for role, tokens, n in weights.by_role]
    kinds = [(kind, say.kind(kind), tokens, "") for kind, tokens in weights.by_kind]
    _share_table(shown, pen, say("by_role"), [*roles, *extra], [say("column_messages")])
    _share_table(shown, pen, say("by_kind"), [*kinds, *extra], [])


def _share_table(
    shown: Inspection, pen: Pen, title: str, rows: Iterable[tuple[str, str, int, str]], last: Sequence[str]
) -> None:
    listed = sorted(rows, key=lambda row: -row[2])
    if not listed:
        return
    pen.heading(title)
    grid = pen.grid("", "", "", pen.say("column_tokens"), pen.say("share"), *last, left=(2,))
    for key, name, tokens, beside in listed:
        drawn = pen.bar(tokens, listed[0][2], NEAREST.get(key, key), room=pen.width - SHARE_COLUMNS)
        grid.add_row("", name, drawn, amount(tokens), percent(tokens, shown.map.total), *([beside] if last else []))
    pen.print(grid)


def _tools(shown: Inspection, pen: Pen, top: int) -> None:
    tools, say = shown.map.by_tool, pen.say
    if not tools:
        return
    pen.heading(say("by_tool"))
    head = (say("column_tokens"), say("column_calls"), say("column_asked"), say("column_answered"))
    grid = pen.grid("", "", "", *head, left=(2,))
    kept = tools[: top or None]
    for tool in kept:
        name = pen.text((one_line(say.known(tool.name)), ""))
        figures = map(amount, (tool.tokens, tool.calls, tool.call_tokens, tool.result_tokens))
        grid.add_row("", name, pen.bar(tool.tokens, tools[0].tokens, "results"), *figures)
    pen.print(grid)
    pen.more(len(tools) - len(kept), sum(tool.tokens for tool in tools[len(kept) :]))


def _heaviest(shown: Inspection, pen: Pen, top: int) -> None:
    rows = [shown.rows[weight.index] for weight in shown.map.heaviest[: top or None]]
    title, column = pen.say("heaviest"), pen.say("share")
    _messages(pen, title, column, rows, lambda row: percent(row.tokens, shown.map.total))


def _protected(shown: Inspection, pen: Pen, top: int) -> None:
    rows = [row for row in shown.rows if row.protected]
    kept, rest = rows[: top or None], rows[top or len(rows) :]
    _messages(pen, pen.say("protected"), pen.say("column_why"), kept, lambda row: pen.say.known(row.protected))
    pen.more(len(rest), sum(row.tokens for row in rest))


def _messages(pen: Pen, title: str, column: str, rows: Sequence[Row], beside: Callable[[Row], str]) -> None:
    if not rows:
        return
    say = pen.say
    pen.heading(title)
    words = (4,) if column == say("column_why") else ()
    grid = pen.grid("", "", say("column_what"), say("column_tokens"), column, title_at=2, left=words)
    for row in rows:
        kind = pen.named(say.kind(row.label), row.category)
        what = pen.text((one_line(row.title) or say("pictures_only"), ""))
        grid.add_row(f"#{row.index}", kind, what, amount(row.tokens), beside(row))
    pen.print(grid)


def _repeats(shown: Inspection, pen: Pen, top: int) -> None:
    repeats, say = shown.map.repeats, pen.say
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


def _problems(shown: Inspection, pen: Pen, top: int) -> None:
    say = pen.say
    pen.print()
    if not shown.problems:
        pen.line((f"✓ {say('accepted', fmt=shown.checked_for)}", "green"))
        return
    count = say.many("problem_count", len(shown.problems))
    checked = say("checked_for", fmt=shown.checked_for)
    pen.line((f"✗ {say('problems')}", "bold red"), (f"  {count}{say('comma')}{checked}", "dim"))
    kept = shown.problems[: top or None]
    for problem in kept:
        pen.line((f"  {one_line(problem.where)}: ", "bold"), (one_line(say.reason(problem.text)), ""))
    pen.more(len(shown.problems) - len(kept))


def _warnings(shown: Inspection, pen: Pen, top: int) -> None:
    if not shown.warnings:
        return
    pen.heading(pen.say("warnings"))
    kept = shown.warnings[: top or None]
    for warning in kept:
        pen.line((f"  {one_line(warning)}", "yellow"))
    pen.more(len(shown.warnings) - len(kept))
