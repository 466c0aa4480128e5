"""Pictures of figures as inline SVG: lines over a logarithmic axis, and bars. No script, no fixed colours.

Shapes have classes (`s0` … `s9` for a series, `ours` for the one in front, `plain` for the one that the others are
compared with); the page's style gives them colours. Widths of words are estimated, so that labels do not overlap in any
font. All text is escaped.
"""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from everlong.lab.report.numbers import tokens_short

__all__ = [
    "HUES",
    "LONGEST_NAME",
    "WIDTH",
    "Bar",
    "Line",
    "bar_chart",
    "drawing",
    "line_plot",
    "shortened",
    "spread",
    "text_width",
]

HUES = 10  # colours; the eleventh line has the first colour again, dashed
WIDTH = 880
TEXT = 13  # px of all words
NARROW, WIDE = 0.62, 1.0  # of the text size: a Latin letter, a Chinese one
LINE_GAP = 17  # px between two labels
LONGEST_NAME = 360  # px

TOP, BOTTOM, LEFT = 14, 46, 54  # px around a plot
PLOT_HEIGHT = 320
BAR_STEP, BAR_HEIGHT = 26, 16


@dataclass(frozen=True, slots=True)
class Line:
    """A name and its points; for `line_plot`, x above 0 and y from 0 to 100.

    A `faint` line is shown but should not be trusted. A `plain` line is the one that the others are compared with.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    ours: bool = False
    faint: bool = False
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A name and its value; `part` of it is drawn full, the rest pale. `label` is at its end.

    A `faint` bar is only an outline.
    """

    name: str
    value: float
    label: str
    part: float | None = None
    ours: bool = False
    faint: bool = False


def text_width(text: str) -> float:
    """Return the estimated width of a text in px. Example: "ab" -> 16.12"""
    return TEXT * sum(WIDE if unicodedata.east_asian_width(sign) in "WF" else NARROW for sign in text)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places near the wanted ones, at least `gap` apart, and inside the bounds if they all fit.

    Example: spread([50, 51], 10, 0, 100) -> [45.5, 55.5]
    """
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    blocks: list[list[float]] = []  # the middle of a block, and how many places it has
    for at in order:
        blocks.append([min(max(wanted[at], low), high), 1])
        while len(blocks) > 1 and _bottom(blocks[-2], gap) + gap > _top(blocks[-1], gap):
            (upper, above), (lower, below) = blocks[-2:]
            blocks[-2:] = [_inside((upper * above + lower * below) / (above + below), above + below, gap, low, high)]
    placed = [_top(block, gap) + gap * n for block in blocks for n in range(int(block[1]))]
    places = [0.0] * len(wanted)
    for at, place in zip(order, placed, strict=True):
        places[at] = place
    return places


def _inside(middle: float, count: float, gap: float, low: float, high: float) -> list[float]:
    half = (count - 1) * gap / 2
    return [max(low + half, min(middle, high - half)), count]


def _top(block: list[float], gap: float) -> float:
    return block[0] - (block[1] - 1) * gap / 2


def _bottom(block: list[float], gap: float) -> float:
    return block[0] + (block[1] - 1) * gap / 2


# --- lines ---------------------------------------------------------------------------------------


def line_plot(lines: Sequence[Line], *, label: str, x_name: str, ceiling: tuple[str, float] | None = None) -> str:
    """Draw percentages over a logarithmic axis, with names at the line ends.

    `ceiling` is a level that no line can exceed.
    """
    shown = [line for line in lines if line.points]
    if not shown:
        return ""
    names = max(min(text_width(line.name), LONGEST_NAME) for line in shown)
    height = max(PLOT_HEIGHT, TOP + BOTTOM + LINE_GAP * len(shown))
    plot = _Plot(sorted({x for line in shown for x, _ in line.points}), WIDTH - names - 34, height - BOTTOM)
    ends = spread([plot.y(line.points[-1][1]) for line in shown], LINE_GAP, TOP, plot.bottom)
    drawn = [_line(plot, line, number, end) for number, (line, end) in enumerate(zip(shown, ends, strict=True))]
    drawn.sort(key=lambda svg: "ours" in svg[:40])  # drawn last, so that it is in front
    body = plot.axes(x_name) + (plot.level(*ceiling) if ceiling else "") + "".join(drawn)
    return drawing("plot", height, label, body)


@dataclass(frozen=True, slots=True)
class _Plot:
    """The axes of a plot: where a value is in the picture."""

    budgets: list[float]
    right: float
    bottom: float

    def x(self, value: float) -> float:
        first, last = self.budgets[0], self.budgets[-1]
        if first == last:
            return (LEFT + self.right) / 2
        share = math.log(value / first) / math.log(last / first)
        return LEFT + 12 + share * (self.right - LEFT - 24)

    def y(self, percent: float) -> float:
        return self.bottom - percent / 100 * (self.bottom - TOP)

    def axes(self, x_name: str) -> str:
        out = []
        for percent in (0, 20, 40, 60, 80, 100):
            y = self.y(percent)
            out.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{self.right:.1f}"/>')
            out.append(
                f'<text class="axis end" x="{LEFT - 8}" y="{y + 4:.1f}">{percent}{" %" * (percent == 100)}</text>'
            )
        free = -math.inf
        for value in self.budgets:
            x, word = self.x(value), tokens_short(value)
            out.append(f'<path class="grid" d="M{x:.1f} {self.bottom:.1f}v5"/>')
            if x - text_width(word) / 2 > free:
                out.append(f'<text class="axis mid" x="{x:.1f}" y="{self.bottom + 20:.1f}">{word}</text>')
                free = x + text_width(word) / 2 + 6
        middle = (LEFT + self.right) / 2
        out.append(f'<text class="axis mid" x="{middle:.1f}" y="{self.bottom + 39:.1f}">{escape(x_name)}</text>')
        return "".join(out)

    def level(self, name: str, percent: float) -> str:
        y = self.y(percent)
        return (
            f'<path class="level" d="M{LEFT} {y:.1f}H{self.right:.1f}"><title>{escape(name)}: {percent:.1f} %</title>'
            "</path>"
        )


def _line(plot: _Plot, line: Line, number: int, end: float) -> str:
    places = [(plot.x(x), plot.y(y)) for x, y in line.points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{escape(line.name)}, {tokens_short(at)}: {value:.1f} %</title>'
        "</circle>"
        for (x, y), (at, value) in zip(places, line.points, strict=True)
    )
    last_x, last_y = places[-1]
    edge = plot.right + 14
    leader = f'<path class="leader" d="M{last_x + 5:.1f} {last_y:.1f}L{edge:.1f} {end:.1f}h4"/>'
    name = f'<text x="{edge + 8:.1f}" y="{end + 4:.1f}">{shortened(line.name)}</text>'
    dashed = " dashed" if number >= HUES else ""
    kind = ("ours" if line.ours else f"s{number % HUES}{dashed}") + " faint" * line.faint
    return f'<g class="{kind}"><path class="line" d="{path}"/>{leader}{dots}{name}</g>'


# --- bars ----------------------------------------------------------------------------------------


def bar_chart(bars: Sequence[Bar], *, label: str, most: float | None = None) -> str:
    """Draw one bar per line, names left, labels at the ends. `most` is the value of the longest possible bar."""
    if not bars:
        return ""
    start = max(min(text_width(bar.name), LONGEST_NAME) for bar in bars) + 12
    room = WIDTH - start - max(text_width(bar.label) for bar in bars) - 10
    longest = most or max(bar.value for bar in bars) or 1
    drawn = []
    for row, bar in enumerate(bars):
        y = row * BAR_STEP + 4
        length = max(1.0, bar.value / longest * room)
        full = length if bar.part is None else bar.part / longest * room
        drawn.append(
            f'<g class="{"ours" if bar.ours else "other"}{" faint" * bar.faint}">'
            f'<text class="end" x="{start - 8:.1f}" y="{y + 13}">{shortened(bar.name)}</text>'
            f'<rect class="pale" x="{start:.1f}" y="{y}" width="{length:.1f}" height="{BAR_HEIGHT}" rx="2"/>'
            f'<rect x="{start:.1f}" y="{y}" width="{full:.1f}" height="{BAR_HEIGHT}" rx="2"/>'
            f'<text class="value" x="{start + length + 6:.1f}" y="{y + 13}">{escape(bar.label)}</text></g>'
        )
    return drawing("bars", len(bars) * BAR_STEP + 4, label, "".join(drawn))


def shortened(name: str) -> str:
    """Return a name as HTML, shortened if it is too wide; its title is then the whole name."""
    if text_width(name) <= LONGEST_NAME:
        return escape(name)
    short = name
    while text_width(short + "…") > LONGEST_NAME:
        short = short[:-1]
    return f"<title>{escape(name)}</title>{escape(short)}…"


def drawing(kind: str, height: float, label: str, body: str) -> str:
    """Return a picture with this body; `label` is for people who cannot see it."""
    return (
        f'<svg class="{kind}" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}">{body}</svg>'
    )
