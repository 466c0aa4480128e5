"""Draws the map of the rooms in docs/architecture.md: the layers of pyproject.toml, each room with its first sentence.

python scripts/draw_house.py            writes docs/images/house.svg
python scripts/draw_house.py --check    exits 1 if the picture is out of date
"""

import ast
import re
import sys
import textwrap
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "house.svg"
WIDTH, MARGIN, GAP, LINE, TITLE = 1_040, 20, 10, 16, 30  # pixels
CHARACTER = 6.6  # pixels of a letter of the small text
SHADES = ("#fde7d3", "#fdf3d0", "#e6f3d8", "#d5f0e6", "#d6ecf8", "#dfe3fa", "#ece0f8", "#f8e0ee", "#eeeeee")
INK = "#1d2330"


def layers() -> list[list[str]]:
    """Return the packages of each layer, top layer first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    found = [[room for room in re.findall(r"\w+", row) if source(room).exists()] for row in rows]
    return [rooms for rooms in found if rooms]


def source(room: str) -> Path:
    """Return the file whose docstring describes a package."""
    folder = ROOT / "src" / "everlong" / room
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def sentence(room: str) -> str:
    """Return the first sentence of a package's docstring."""
    doc = ast.get_docstring(ast.parse(source(room).read_text(encoding="utf-8"))) or ""
    return re.split(r"(?<=[.])\s", doc.replace("\n", " "), maxsplit=1)[0]


def drawing() -> str:
    """Return the whole picture as SVG."""
    top, parts = MARGIN, []
    for index, rooms in enumerate(layers()):
        width = (WIDTH - 2 * MARGIN - GAP * (len(rooms) - 1)) / len(rooms)
        texts = [textwrap.wrap(sentence(room), int((width - 24) / CHARACTER)) for room in rooms]
        height = TITLE + LINE * max(map(len, texts)) + 10
        for place, (room, lines) in enumerate(zip(rooms, texts, strict=True)):
            left = MARGIN + place * (width + GAP)
            parts.append(box(left, top, width, height, SHADES[min(index, len(SHADES) - 1)]))
            parts.append(words(left + 12, top + 21, room, size=15, weight="600"))
            parts += [words(left + 12, top + TITLE + 11 + LINE * at, line) for at, line in enumerate(lines)]
        top += height + GAP
    parts.append(
        words(MARGIN, top + 12, "Imports point down. Rooms of one row do not know each other.", style="italic")
    )
    size = f'width="{WIDTH}" height="{top + 28}" viewBox="0 0 {WIDTH} {top + 28}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="Helvetica, Arial, sans-serif">\n'
        f'<rect width="{WIDTH}" height="{top + 28}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def box(left: float, top: float, width: float, height: float, fill: str) -> str:
    """Draw one package."""
    place = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} rx="8" fill="{fill}" stroke="{INK}" stroke-opacity="0.25"/>'


def words(left: float, top: float, text: str, *, size: int = 12, weight: str = "400", style: str = "normal") -> str:
    """Draw a line of text."""
    font = f'font-size="{size}" font-weight="{weight}" font-style="{style}"'
    return f'<text x="{left:.1f}" y="{top:.1f}" {font} fill="{INK}">{escape(text)}</text>'


def main() -> int:
    """Write the picture, or say whether it is up to date."""
    picture = drawing()
    if "--check" in sys.argv[1:]:
        return int(PICTURE.read_text(encoding="utf-8") != picture)
    PICTURE.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
