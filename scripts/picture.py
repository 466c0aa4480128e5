"""An SVG picture in English or Chinese that is readable on a light and on a dark page.

A picture has its own background, because a page's colours and the system's colour scheme may differ. A colour is a name
in `COLOURS`. A text is one string, or a pair of English and Chinese.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path

__all__ = ["CHINESE", "COLOURS", "ENGLISH", "IMAGES", "LANGUAGES", "Picture", "Words", "file_name", "number", "update"]

Words = str | tuple[str, str]
Points = Sequence[tuple[float, float]]

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
ENGLISH, CHINESE = 0, 1  # positions in a pair of words
LANGUAGES = (ENGLISH, CHINESE)
FONTS = (
    "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif",
    "'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', 'Source Han Sans SC', sans-serif",
)
#: The name of each colour, and its values on a light and on a dark background.
COLOURS = {
    "page": ("#ffffff", "#0d1117"),
    "edge": ("#d0d7de", "#30363d"),
    "grid": ("#eaeef2", "#21262d"),
    "ink": ("#1f2328", "#e6edf3"),
    "muted": ("#59636e", "#9198a1"),
    "blue": ("#0969da", "#4493f8"),
    "orange": ("#bc4c00", "#f0883e"),
    "red": ("#cf222e", "#ff7b72"),
    "green": ("#1a7f37", "#3fb950"),
    "purple": ("#8250df", "#ab7df8"),
    "yellow": ("#bf8700", "#d29922"),
    "grey": ("#afb8c1", "#656c76"),
}


class Picture:
    """Shapes and texts, drawn in the order in which they are added."""

    def __init__(self, width: int, height: int, title: Words, *, language: int = ENGLISH) -> None:
        self.width, self.height, self.language = width, height, language
        self._title, self._parts, self._styles = self.words(title), list[str](), list[str]()

    def words(self, words: Words) -> str:
        """Return words in the language of the picture."""
        return words if isinstance(words, str) else words[self.language]

    def style(self, rule: str) -> None:
        """Add a CSS rule."""
        self._styles.append(rule)

    @contextmanager
    def group(self, name: str) -> Iterator[None]:
        """Add everything in the block as a group with this CSS class."""
        self.add(f'<g class="{name}">')
        yield
        self.add("</g>")

    def add(self, part: str) -> None:
        """Add a piece of SVG."""
        self._parts.append(part)

    def text(
        self,
        place: tuple[float, float],
        words: Words,
        *,
        size: float = 16,
        colour: str = "ink",
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """Add a line of text; `anchor` says which end of its baseline is at `place`."""
        weight = ' font-weight="600"' if bold else ""
        where = f'x="{place[0]:.1f}" y="{place[1]:.1f}" font-size="{size:g}" text-anchor="{anchor}"'
        self.add(f'<text class="f-{colour}" {where}{weight}>{escape(self.words(words))}</text>')

    def box(
        self,
        place: tuple[float, float],
        size: tuple[float, float],
        colour: str,
        *,
        opacity: float = 1,
        radius: float = 3,
        edge: str = "",
    ) -> None:
        """Add a filled rectangle, with an outline if `edge` names a colour."""
        where = f'x="{place[0]:.1f}" y="{place[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}" rx="{radius:g}"'
        classes = f"f-{colour} s-{edge}" if edge else f"f-{colour}"
        self.add(f'<rect class="{classes}" {where} fill-opacity="{opacity:g}"/>')

    def line(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        colour: str,
        *,
        width: float = 1,
        dashes: str = "",
    ) -> None:
        """Add a straight line."""
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        where = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
        self.add(f'<line class="s-{colour}" {where} stroke-width="{width:g}"{dashed}/>')

    def curve(self, points: Points, colour: str, *, width: float = 3) -> None:
        """Add a line through these points."""
        style = f'fill="none" stroke-width="{width:g}" stroke-linejoin="round" stroke-linecap="round"'
        self.add(f'<polyline class="s-{colour}" points="{_listed(points)}" {style}/>')

    def area(self, points: Points, colour: str, *, opacity: float = 1) -> None:
        """Add a filled shape."""
        shape = f'points="{_listed(points)}" fill-opacity="{opacity:g}"'
        self.add(f'<polygon class="f-{colour}" {shape}/>')

    def dot(self, place: tuple[float, float], radius: float, colour: str) -> None:
        """Add a disc with a thin edge in the colour of the background."""
        where = f'cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{radius:g}" stroke-width="2"'
        self.add(f'<circle class="f-{colour} s-page" {where}/>')

    def arrow(self, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
        """Add a horizontal or vertical arrow."""
        self.line(start, end, colour, width=1.5)
        along = 1 if end[0] + end[1] > start[0] + start[1] else -1
        level = start[1] == end[1]
        tips = [
            (end[0] - 8 * along, end[1] + side) if level else (end[0] + side, end[1] - 8 * along) for side in (-4, 4)
        ]
        self.area([end, *tips], colour)

    def svg(self) -> str:
        """Return the whole picture."""
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        ground = (
            f'<rect class="f-page s-edge" x=".5" y=".5" width="{self.width - 1}" height="{self.height - 1}" rx="8"/>'
        )
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONTS[self.language]}" role="img">',
                f"<title>{escape(self._title)}</title>",
                f"<style>\n{_rules()}" + "".join(f"{rule}\n" for rule in self._styles) + "</style>",
                ground,
                *self._parts,
                "</svg>\n",
            )
        )


def file_name(name: str, language: int) -> str:
    """Return the name of a picture's file."""
    return f"{name}.zh.svg" if language == CHINESE else f"{name}.svg"


def number(tokens: int) -> str:
    """Return a number with a comma between thousands."""
    return f"{tokens:,}"


def update(pictures: Iterable[tuple[str, str]], *, check: bool) -> int:
    """Write pictures (name and text), or check that they are up to date; return the exit code."""
    stale = [
        (name, text)
        for name, text in pictures
        if not (IMAGES / name).is_file() or (IMAGES / name).read_text(encoding="utf-8") != text
    ]
    for name, text in stale:
        print(f"{name} is out of date" if check else f"wrote {name}")
        if not check:
            (IMAGES / name).write_text(text, encoding="utf-8")
    return int(check and bool(stale))


def _rules() -> str:
    def scheme(place: int) -> str:
        return "".join(
            f".f-{name}{{fill:{pair[place]}}}.s-{name}{{stroke:{pair[place]}}}" for name, pair in COLOURS.items()
        )

    return f"{scheme(0)}\n@media (prefers-color-scheme:dark){{{scheme(1)}}}\n"


def _listed(points: Points) -> str:
    return " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
