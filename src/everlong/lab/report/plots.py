"""Plots over two linear axes: lines of values, and dots with the front that no other dot exceeds.

The page's style gives them their colours, as for all pictures. Names never overlap. An axis knows how to write its
values; nothing else here knows what they mean.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TypeAlias

from everlong.lab.report.svg import HUES, LONGEST_NAME, WIDTH, Line, drawing, shortened, spread, text_width

__all__ = ["Axis", "Dot", "Mark", "dot_plot", "ticks", "value_plot"]

HEIGHT = 320
ABOVE, BOTTOM = 34, 46  # px above and below a plot, for the names of the axes
LINE_GAP = 17  # px between two names
SMALLEST_SPAN = 1e-9  # of a value, or of 1: closer values are drawn as one
FAR = 1e6  # px above the picture; nothing is placed higher
DOT, BESIDE = 6, 12  # px from the centre of a dot to its edge, and to its name


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis: what it measures, how a value is written, and the value beyond which nothing is drawn."""

    name: str
    write: Callable[[float], str]
    most: float = math.inf


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at a place of the horizontal axis; a `round` mark is drawn above the others."""

    x: float
    name: str
    round: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """A name and its place. `front` dots are joined by a line; a `faint` dot is only an outline."""

    name: str
    x: float
    y: float
    ours: bool = False
    faint: bool = False
    plain: bool = False
    front: bool = False


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round values from at or below `low` to at or above `high`. Example: 0, 0.9 -> 0, 0.2, … 1"""
    least = max(1, abs(low), abs(high)) * SMALLEST_SPAN
    if high - low < least:
        high = low + max(1, least)
    rough = (high - low) / most
    power = 10 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1, 2, 2.5, 5, 10) if times * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [at * step for at in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class _Frame:
    """Two linear axes: where a value is in the picture."""

    across: list[float]
    up: list[float]
    ends: tuple[float, float]
    left: float
    right: float
    bottom: float

    def x(self, value: float) -> float:
        low, high = self.ends
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        low, high = self.up[0], self.up[-1]
        return self.bottom - (value - low) / (high - low) * (self.bottom - ABOVE)

    def axes(self, x: Axis, y: Axis) -> str:
        out = [f'<text class="axis" x="0" y="14">{escape(y.name)}</text>']
        for value in self.up:
            at = self.y(value)
            out.append(f'<path class="grid" d="M{self.left:.1f} {at:.1f}H{self.right:.1f}"/>')
            word = escape(y.write(value))
            out.append(f'<text class="axis end" x="{self.left - 8:.1f}" y="{at + 4:.1f}">{word}</text>')
        for value in self.across:
            at = self.x(value)
            if at > self.right + 0.1:
                continue
            out.append(f'<path class="grid" d="M{at:.1f} {self.bottom:.1f}v5"/>')
            word = escape(x.write(value))
            out.append(f'<text class="axis mid" x="{at:.1f}" y="{self.bottom + 20:.1f}">{word}</text>')
        middle = (self.left + self.right) / 2
        out.append(f'<text class="axis mid" x="{middle:.1f}" y="{self.bottom + 39:.1f}">{escape(x.name)}</text>')
        return "".join(out)

    def upright(self, name: str, value: float) -> str:
        path = f"M{self.x(value):.1f} {ABOVE}V{self.bottom:.1f}"
        return f'<path class="level" d="{path}"><title>{escape(name)}</title></path>'


def value_plot(
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    label: str,
    marks: Sequence[Mark] = (),
    at: tuple[str, float] | None = None,
) -> str:
    """Draw lines over linear axes with names at their ends, marks along the bottom, and `at` as a dashed vertical line.

    What is above the axis' `most` is left out, and an arrow at the name shows that.
    """
    shown = [(number, line) for number, line in enumerate(lines) if line.points]
    if not shown:
        return ""
    places = [point for _, line in shown for point in line.points]
    across = [place[0] for place in places] + ([at[1]] if at else [])
    names = max(min(text_width(f"{line.name} ↑"), LONGEST_NAME) for _, line in shown)
    up = ticks(0, min(y.most, max(place[1] for place in places)))
    height = max(HEIGHT, ABOVE + BOTTOM + LINE_GAP * len(shown))
    left = max(text_width(y.write(value)) for value in up) + 10
    bounds = ticks(min(across), max(across), 8)
    ends = (bounds[0], max(across) if max(across) - bounds[0] > SMALLEST_SPAN * max(1, abs(bounds[0])) else bounds[-1])
    frame = _Frame(bounds, up, ends, left, WIDTH - names - 34, height - BOTTOM)
    names_at = spread([frame.y(line.points[-1][1]) for _, line in shown], LINE_GAP, ABOVE, frame.bottom)
    drawn = [
        (line.plain, line.ours, _value_line(frame, line, number, end, (x, y)))
        for (number, line), end in zip(shown, names_at, strict=True)
    ]
    drawn.sort(key=lambda one: one[:2])
    body = frame.axes(x, y) + (frame.upright(*at) if at else "") + "".join(one[2] for one in drawn)
    return drawing("plot", height, label, body + "".join(_mark(frame, mark) for mark in marks))


def _value_line(frame: _Frame, line: Line, number: int, end: float, axes: tuple[Axis, Axis]) -> str:
    x_axis, y_axis = axes
    places = [(frame.x(x), max(frame.y(y), -FAR)) for x, y in line.points]
    path = _path(places)
    dots = "".join(
        f'<circle class="felt" cx="{x:.1f}" cy="{y:.1f}" r="5">'
        f"<title>{escape(f'{line.name}, {x_axis.write(at)}: {y_axis.write(value)}')}</title></circle>"
        for (x, y), (at, value) in zip(places, line.points, strict=True)
        if y >= ABOVE
    )
    (last_x, last_y), edge = places[-1], frame.right + 14
    beyond = " ↑" * (last_y < ABOVE)
    leader = "" if beyond else f'<path class="leader" d="M{last_x + 3:.1f} {last_y:.1f}L{edge:.1f} {end:.1f}h4"/>'
    lone = f'<circle cx="{last_x:.1f}" cy="{last_y:.1f}" r="3"/>' if len(places) == 1 and not beyond else ""
    name = f'<text x="{edge + 8:.1f}" y="{end + 4:.1f}">{shortened(line.name)}{beyond}</text>'
    return f'<g class="{_kind(line, number)}"><path class="line" d="{path}"/>{leader}{lone}{dots}{name}</g>'


def _path(places: Sequence[tuple[float, float]]) -> str:
    """Return the path through the places, without what is above the picture."""
    steps: list[str] = []
    before: tuple[float, float] | None = None
    for x, y in places:
        if before is not None and (before[1] < ABOVE) != (y < ABOVE):
            at = before[0] + (ABOVE - before[1]) / (y - before[1]) * (x - before[0])
            steps.append(f"{'M' if y >= ABOVE else 'L'}{at:.1f} {ABOVE}")
        if y >= ABOVE:
            steps.append(f"{'L' if steps else 'M'}{x:.1f} {y:.1f}")
        before = (x, y)
    return "".join(steps) or f"M{places[0][0]:.1f} {ABOVE}"


def _mark(frame: _Frame, mark: Mark) -> str:
    x, title = frame.x(mark.x), f"<title>{escape(mark.name)}</title>"
    if mark.round:
        return f'<circle class="mark" cx="{x:.1f}" cy="{frame.bottom - 15:.1f}" r="3">{title}</circle>'
    return f'<path class="mark" d="M{x:.1f} {frame.bottom:.1f}v-9">{title}</path>'


def _kind(shape: Line | Dot, number: int) -> str:
    if shape.ours or shape.plain:
        return ("ours" if shape.ours else "plain") + " faint" * shape.faint
    return f"s{number % HUES}" + " dashed" * (number >= HUES) + " faint" * shape.faint


def dot_plot(dots: Sequence[Dot], x: Axis, y: Axis, *, label: str, at: tuple[str, float] | None = None) -> str:
    """Draw named dots over linear axes; the front is joined by steps: no dot is to the left of and above it.

    A name without a free place is only the title of its dot. A dot beyond the axis' `most` is drawn at its end, with
    its value in its name.
    """
    dots = [dot if dot.x <= x.most else replace(dot, x=x.most, name=f"{dot.name} {x.write(dot.x)} →") for dot in dots]
    if not dots:
        return ""
    across = [dot.x for dot in dots] + ([at[1]] if at else [])
    up = ticks(min(dot.y for dot in dots), max(dot.y for dot in dots))
    height = HEIGHT + 60
    left = max(text_width(y.write(value)) for value in up) + 10
    bounds = ticks(min(across), max(across), 8)
    frame = _Frame(bounds, up, (bounds[0], bounds[-1]), left, WIDTH - 30, height - BOTTOM)
    drawn = [
        (dot.ours, _dot(frame, dot, number, name, (x, y)))
        for number, (dot, name) in enumerate(zip(dots, _name_places(frame, dots), strict=True))
    ]
    drawn.sort(key=lambda one: one[0])
    body = frame.axes(x, y) + (frame.upright(*at) if at else "") + _steps(frame, dots)
    return drawing("plot", height, label, body + "".join(one[1] for one in drawn))


def _steps(frame: _Frame, dots: Sequence[Dot]) -> str:
    ahead = sorted((dot.x, dot.y) for dot in dots if dot.front)
    if not ahead:
        return ""
    path = f"M{frame.x(ahead[0][0]):.1f} {frame.bottom:.1f}"
    path += "".join(f"H{frame.x(x):.1f}V{frame.y(y):.1f}" for x, y in ahead)
    return f'<path class="front" d="{path}H{frame.right:.1f}"/>'


def _dot(frame: _Frame, dot: Dot, number: int, name: tuple[float, float] | None, axes: tuple[Axis, Axis]) -> str:
    at_x, at_y = frame.x(dot.x), frame.y(dot.y)
    title = f"<title>{escape(f'{dot.name}: {axes[0].write(dot.x)}, {axes[1].write(dot.y)}')}</title>"
    circle = f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="{DOT}">{title}</circle>'
    words = ""
    if name is not None:
        side = "end" if name[0] < at_x else "start"
        near = name[0] + (3 if side == "end" else -3)
        far = abs(name[1] - at_y) > DOT
        leader = f'<path class="leader" d="M{at_x:.1f} {at_y:.1f}L{near:.1f} {name[1]:.1f}"/>' if far else ""
        words = f'{leader}<text class="{side}" x="{name[0]:.1f}" y="{name[1] + 4:.1f}">{shortened(dot.name)}</text>'
    return f'<g class="dot {_kind(dot, number)}">{words}{circle}</g>'


def _name_places(frame: _Frame, dots: Sequence[Dot]) -> list[tuple[float, float] | None]:
    """Return a place for each name, clear of dots and other names: ours chooses first, then those of the front."""
    taken = [_around(frame.x(dot.x), frame.y(dot.y), DOT + 1, DOT + 1) for dot in dots]
    places: list[tuple[float, float] | None] = [None] * len(dots)
    for at in sorted(range(len(dots)), key=lambda at: (not dots[at].ours, not dots[at].front, -dots[at].y)):
        x, y = frame.x(dots[at].x), frame.y(dots[at].y)
        wide = min(text_width(dots[at].name), LONGEST_NAME)
        for step in range(2 * round(frame.bottom / 9)):
            down = y + (step + 1) // 2 * 9 * (1 if step % 2 else -1)
            for side in (1, -1):
                box = _around(x + side * (BESIDE + wide / 2), down, wide / 2, LINE_GAP / 2)
                inside = frame.left <= box[0] and box[1] <= WIDTH and box[2] >= ABOVE - 8 and box[3] <= frame.bottom
                if places[at] is None and inside and not any(_meet(box, other) for other in taken):
                    places[at] = (x + side * BESIDE, down)
                    taken.append(box)
    return places


_Box: TypeAlias = tuple[float, float, float, float]


def _around(x: float, y: float, wide: float, high: float) -> _Box:
    return (x - wide, x + wide, y - high, y + high)


def _meet(one: _Box, other: _Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
