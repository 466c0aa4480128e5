"""HTML and SVG that are safe to open: the only place where figures and foreign text become markup.

A picture has a fixed number of cells, so its size does not grow with the conversation: neighbouring cells of one
category are one stroke, and every category is one path. Widths are shares of the element's width, so that the same
picture fits a phone and a large screen. Pictures have no words except numbers, and no script.
"""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from everlong.cli.maps.rows import Segment, cells_of
from everlong.cli.terminal.tables import thousands
from everlong.cli.terminal.text import clean, one_line

__all__ = [
    "axis_steps",
    "escaped",
    "gauge",
    "history_picture",
    "linked",
    "meter",
    "preview",
    "ribbon",
    "swatch",
]

ESCAPED = {"&": 5, "<": 4, ">": 4}  # bytes of a character once it is escaped


def escaped(text: str) -> str:
    """Return a text on one line as HTML."""
    return escape(one_line(text))


def preview(text: str, size: int) -> tuple[str, int]:
    """Return the beginning of a text in at most `size` bytes of HTML, and how many characters were left out.

    Only the beginning is read: a text of 10 MB costs no more than one of 10 kB.
    Example: preview("a<b", 5) -> "a&lt;", 1 left out
    """
    front = clean(text[:size])
    used = kept = 0
    for character in front:
        used += ESCAPED.get(character) or len(character.encode())
        if used > size:
            break
        kept += 1
    left = len(text) - (kept if kept < len(front) else min(len(text), size))
    return escape(front[:kept], quote=False), left


def linked(index: int) -> str:
    """Return a link to a message."""
    return f'<a href="#m{index}">#{index}</a>'


def swatch(category: str) -> str:
    """Return a sample of the colour of a category."""
    return f'<i class="swatch c-{category}"></i>'


def meter(part: int, whole: int, category: str) -> str:
    """Return a bar in hundredths: widths are classes, so that the page needs no style attributes."""
    width = min(100, max(0, round(100 * part / whole))) if whole else 0
    return f'<i class="w w{width} c-{category}"></i>'


CELLS = 2_400  # of a picture across the page; finer than its pixels
NARROWEST_LABEL = 0.022  # of the width: enough for a number of three digits
NARROWEST_TICK = 0.004
LAST_LABEL = 0.98  # further right a label would cross the edge
AXIS_STEPS = 6


def axis_steps(total: int) -> list[int]:
    """Return round figures from 0 to the total, at most `AXIS_STEPS`. Example: 52_000 -> 0, 10_000, … 50_000"""
    for power in range(13):
        for step in (10**power, 2 * 10**power, 5 * 10**power):
            if total // step < AXIS_STEPS:
                return list(range(0, total + 1, step))
    return [0]


def _paths(segments: Sequence[Segment], cells: int) -> str:
    """Return one path for each category, in a box of `cells` by 1."""
    strokes: dict[str, list[str]] = {}
    at = 0
    for name, group in groupby(cells_of(segments, cells)):
        length = len(list(group))
        strokes.setdefault(name, []).append(f"M{at} 0h{length}v1h-{length}z")
        at += length
    return "".join(f'<path class="c-{name}" d="{"".join(strokes[name])}"/>' for name in sorted(strokes))


def _box(drawn: str, cells: int, place: str) -> str:
    """Return paths stretched over a place."""
    return f'<svg {place} viewBox="0 0 {cells} 1" preserveAspectRatio="none">{drawn}</svg>'


def gauge(segments: Sequence[Segment], mark: float | None) -> str:
    """Return the window as one bar; `mark` is its end, as a share of the width, if the segments go beyond it."""
    total = sum(tokens for _, tokens in segments) or 1
    drawn, at = [], 0
    for name, tokens in segments:
        if tokens > 0:
            drawn.append(
                f'<rect class="c-{name}" x="{_share(at, total)}" width="{_share(tokens, total)}" height="100%"/>'
            )
        at += tokens
    line = "" if mark is None else f'<line class="limit" x1="{mark:.2%}" x2="{mark:.2%}" y1="0" y2="100%"/>'
    return f'<svg class="gauge" aria-hidden="true">{"".join(drawn)}{line}</svg>'


def ribbon(segments: Sequence[Segment], share: float, cells: int = 160) -> str:
    """Return a round as a bar that is `share` of the column long."""
    drawn = _box(_paths(segments, cells), cells, f'width="{max(0.4, 100 * share):.1f}%"')
    return f'<svg class="ribbon" aria-hidden="true">{drawn}</svg>'


def history_picture(
    layers: Sequence[Sequence[Segment]], rounds: Iterable[tuple[int, int]], cuts: Sequence[int], sent_from: int
) -> str:
    """Return the history as a picture from left to right.

    `layers` are drawn below each other (what it is; what a budget does to it). `rounds` are (number, start). `cuts` are
    the places where a client's own compactions took effect, in tokens from the left. Everything left of `sent_from` is
    drawn pale.
    """
    total = sum(tokens for _, tokens in layers[0]) or 1
    drawn = [_rounds(list(rounds), total)]
    for number, layer in enumerate(layers):
        drawn.append(_box(_paths(layer, CELLS), CELLS, f'y="{22 + 70 * number}" width="100%" height="64"'))
    bottom = 22 + 70 * len(layers) - 6
    if sent_from:
        drawn.append(f'<rect class="past" y="22" width="{_share(sent_from, total)}" height="{bottom - 22}"/>')
    for cut in cuts:
        x = _share(cut, total)
        drawn.append(f'<line class="cut" x1="{x}" x2="{x}" y1="14" y2="{bottom + 6}"/>')
    for step in axis_steps(total):
        x, last = _share(step, total), step > 0.94 * total
        anchor = ' text-anchor="end"' if last else "" if step == 0 else ' text-anchor="middle"'
        drawn.append(f'<line class="tick" x1="{x}" x2="{x}" y1="{bottom}" y2="{bottom + 5}"/>')
        drawn.append(f'<text class="axis" x="{x}" y="{bottom + 18}"{anchor}>{thousands(step)}</text>')
    return f'<svg class="history" height="{bottom + 22}" role="img" data-total="{total}">{"".join(drawn)}</svg>'


def _rounds(rounds: Sequence[tuple[int, int]], total: int) -> str:
    """Return a tick at the start of each round, with its number if it fits; on a phone, fewer numbers fit."""
    drawn = []
    ticked = labelled = always = -1.0
    for number, start in rounds:
        at = start / total
        if at - ticked < NARROWEST_TICK:
            continue
        ticked, x = at, f"{at:.2%}"
        drawn.append(f'<line class="start" x1="{x}" x2="{x}" y1="4" y2="20"/>')
        if at - labelled < NARROWEST_LABEL or at > LAST_LABEL:
            continue
        labelled, seen = at, "number"
        if at - always < NARROWEST_LABEL * 3:
            seen = "number dense"
        else:
            always = at
        drawn.append(f'<text class="{seen}" x="{x}" dx="3" y="12">{number}</text>')
    return "".join(drawn)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3f}%".replace(".000%", "%")
