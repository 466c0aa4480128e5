"""The upper half of the terminal's map: the window, the picture of the history, what a budget does."""

from itertools import accumulate
from typing import TYPE_CHECKING

from everlong.cli.maps.inspection import Inspection
from everlong.cli.maps.pen import BOUNDARY, FREE, REPLY, Pen
from everlong.cli.maps.plan import causes_of
from everlong.cli.maps.rows import SCHEMAS, State, cells_of, fates_of, segments_of, totals_of
from everlong.cli.maps.shown_text import one_line
from everlong.cli.maps.svg import thousands
from everlong.cli.terminal import amount

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["draw_picture", "draw_plan", "draw_window"]

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
