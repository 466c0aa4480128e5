"""Draws the three steps of docs/operate/scale.md: one machine, many machines, partitions.

python scripts/draw_scale.py            writes docs/images/scale.svg
python scripts/draw_scale.py --check    exits 1 if the picture is out of date
"""

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "scale.svg"
WIDTH, HEIGHT, MARGIN, GAP = 1_040, 330, 20, 20  # pixels
COLUMN = (WIDTH - 2 * MARGIN - 2 * GAP) / 3
BOX = 34
CLIENT, GATEWAY, WORKER, DATABASE = "#d6ecf8", "#e6f3d8", "#fdf3d0", "#ece0f8"
INK = "#1d2330"

#: Title, rows from the top (text and shade of each box), and the line below.
STEPS = (
    (
        "One machine",
        (
            (("clients", CLIENT),),
            (("everlong serve --workers 4", GATEWAY),),
            (("SQLite", DATABASE),),
        ),
        "Nothing to set up. Jobs run in the gateway.",
    ),
    (
        "Many machines",
        (
            (("clients", CLIENT),),
            (("balancer", CLIENT),),
            (("replica", GATEWAY), ("replica", GATEWAY), ("replica", GATEWAY)),
            (("everlong worker", WORKER), ("Postgres", DATABASE)),
        ),
        "All state in one database; any replica answers.",
    ),
    (
        "Partitions",
        (
            (("clients", CLIENT),),
            (("balancer, by hash of the key", CLIENT),),
            (("replicas, workers", GATEWAY), ("replicas, workers", GATEWAY)),
            (("Postgres A", DATABASE), ("Postgres B", DATABASE)),
        ),
        "Owners share nothing, so they can be split.",
    ),
)


def drawing() -> str:
    """Return the whole picture as SVG."""
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    parts = [part for column in range(len(STEPS)) for part in step(column)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="Helvetica, Arial, sans-serif">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def step(column: int) -> Iterator[str]:
    """Yield one of the three steps: its rows of boxes, with a line from each row to the next."""
    title, rows, below = STEPS[column]
    left = MARGIN + column * (COLUMN + GAP)
    yield words(left, 36, title, size=17, weight="600")
    pitch = (HEIGHT - 110) / max(len(rows) for _, rows, _ in STEPS)
    for number, row in enumerate(rows):
        top = 56 + number * pitch
        if number:
            middle = left + COLUMN / 2
            yield f'<path d="M{middle:.1f} {top - pitch + BOX:.1f}V{top:.1f}" stroke="{INK}" stroke-opacity="0.5"/>'
        width = (COLUMN - 10 * (len(row) - 1)) / len(row)
        for place, (text, shade) in enumerate(row):
            across = left + place * (width + 10)
            yield (
                f'<rect x="{across:.1f}" y="{top:.1f}" width="{width:.1f}" height="{BOX}" rx="8" fill="{shade}" '
                f'stroke="{INK}" stroke-opacity="0.25"/>'
            )
            yield words(across + 10, top + 22, text)
    yield words(left, HEIGHT - 26, below, style="italic")


def words(left: float, top: float, text: str, *, size: int = 12, weight: str = "400", style: str = "normal") -> str:
    """Draw a line of text."""
    font = f'font-size="{size}" font-weight="{weight}" font-style="{style}"'
    return f'<text x="{left:.1f}" y="{top:.1f}" {font} fill="{INK}">{escape(text)}</text>'


def main() -> int:
    """Write the picture, or check whether it is up to date."""
    if "--check" in sys.argv[1:]:
        return 0 if PICTURE.read_text(encoding="utf-8") == drawing() else 1
    PICTURE.write_text(drawing(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
