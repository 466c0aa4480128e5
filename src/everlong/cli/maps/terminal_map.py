"""The token map on a terminal: bars and tables that fit 80 columns and use more if there are.

Draws an `Inspection` and nothing else; the most important stands first.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from everlong.cli.maps.inspection import Inspection
from everlong.cli.maps.markup import thousands
from everlong.cli.maps.pen import BOUNDARY, FREE, REPLY, Pen
from everlong.cli.maps.plan import causes_of
from everlong.cli.maps.rows import NEAREST, SCHEMAS, Row, State, cells_of, fates_of, segments_of, totals_of
from everlong.cli.terminal.tables import amount, percent
from everlong.cli.terminal.text import one_line
from everlong.cli.words.wording import Words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["draw_map", "draw_picture", "draw_plan", "draw_window"]

MOST_LINES = 4  # of the picture
CELL_TOKENS = 4  # a line more for every cell that would stand for more tokens than this


def draw_window(shown: Inspection, pen: Pen) -> None:
    """The total against the window, and how both figures came about."""
    say = pen.say
    facts = [
        shown.fmt,
        shown.map.model or say("unknown_model"),
        say.many("messages", len(shown.rows)),
        say.many("rounds", len(shown.map.rounds)),
    ]
    pen.line((one_line(shown.name), "bold"), *((f" · {one_line(fact)}", "dim") for fact in facts))
    pen.print()
    total = ("≈ " if shown.spread else "") + say.many("tokens", shown.used)
    context = shown.room.context
    share = say("of_window", share=say.share(shown.used, shown.used_at_most, context), n=amount(context))
    pen.line((total, "bold"), (f"  {share}", ""))
    pen.print(_gauge(shown, pen))
    over = shown.free < 0
    pen.line(
        (f"{say('over' if over else 'free')} {amount(abs(shown.free))}", "bold red" if over else "bold green"),
        (f" · {say('reply')} {amount(shown.budget.reply)}", ""),
        (f" · {say('margin')} {amount(shown.budget.margin)}", ""),
    )
    pen.line((f"{_counting(shown, pen)} · {say('window')}: {_source(shown, pen)}", "dim"))
    if shown.sent_from > shown.head:
        pen.line((say("compacted", n=amount(shown.map.total), at=f"#{shown.sent_from}"), "yellow"))


def draw_picture(shown: Inspection, pen: Pen) -> None:
    """The history in up to four lines; below each, with a budget, what happens there."""
    say, total = pen.say, shown.map.total
    if not total:
        return
    segments = [(SCHEMAS, shown.map.schemas), *segments_of(shown.rows)]
    margin = len(thousands(total)) + 2
    width = pen.width - margin
    lines = max(1, min(MOST_LINES, total // (width * CELL_TOKENS)))
    layers = [cells_of(segments, width * lines)]
    if shown.plan is not None:
        layers.append(cells_of([(State.STAYS.value, shown.map.schemas), *fates_of(shown.rows)], width * lines))
    _mark_boundaries(shown, layers[0])
    pen.heading(say("history"), say("cell", n=amount(max(1, round(total / (width * lines))))))
    for line in range(lines):
        start = f"{thousands(total * line // lines):>{margin - 2}}  "
        for number, cells in enumerate(layers):
            front = pen.text((start if number == 0 else " " * margin, "dim"))
            pen.print(front.append_text(pen.cells(cells[line * width : (line + 1) * width])))
    pen.print(pen.legend([*totals_of(segments), *([BOUNDARY] if shown.boundaries else [])]))
    if shown.plan is not None:
        pen.print(pen.legend([State.STAYS, State.TRIMMED, State.GOES]))


def draw_plan(shown: Inspection, pen: Pen) -> None:
    """What a budget does, by cause."""
    plan, say = shown.plan, pen.say
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


def _gauge(shown: Inspection, pen: Pen) -> "Text":
    """The window as one line: what is in it, what is free, what is kept for the reply."""
    sent = [row for row in shown.rows if shown.is_sent(row.index)]
    inside = totals_of([(SCHEMAS, shown.map.schemas), *segments_of(sent)])
    kept = shown.budget.reply + shown.budget.margin
    free = max(0, shown.room.context - kept - shown.used)
    return pen.cells(cells_of([*inside.items(), (FREE, free), (REPLY, kept)], pen.width))


def _counting(shown: Inspection, pen: Pen) -> str:
    say = pen.say
    most = [say("at_most", n=amount(shown.used_at_most))] if shown.spread else []
    how = [say("estimated" if shown.spread else "exact"), *most, say("vocabulary", name=shown.map.vocabulary)]
    return say("comma").join(how)


def _source(shown: Inspection, pen: Pen) -> str:
    room = shown.room
    return pen.say(f"source_{room.source}", **({"date": room.date} if room.source == "registry" else {}))


def _mark_boundaries(shown: Inspection, cells: list[str]) -> None:
    starts = list(accumulate((message.tokens for message in shown.map.messages), initial=shown.map.schemas))
    for at in shown.boundaries:
        cells[min(len(cells) - 1, starts[at] * len(cells) // shown.map.total)] = BOUNDARY


SHARE_COLUMNS = 48  # columns that a table of shares needs beside its bars
ROUNDS_PER_TOP = 3  # rounds are what one looks for: three times as many as in other lists
PLACES_NAMED = 3


def draw_map(shown: Inspection, out: "Console", say: Words, *, top: int = 10) -> None:
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
    roles = [(role.value, say.name(role.value), tokens, amount(n)) for role, tokens, n in weights.by_role]
    kinds = [(kind, say.name(kind), tokens, "") for kind, tokens in weights.by_kind]
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
        name = pen.text((one_line(say.name(tool.name)), ""))
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
    _messages(pen, pen.say("protected"), pen.say("column_why"), kept, lambda row: pen.say.name(row.protected))
    pen.more(len(rest), sum(row.tokens for row in rest))


def _messages(pen: Pen, title: str, column: str, rows: Sequence[Row], beside: Callable[[Row], str]) -> None:
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
