"""Draws the icons of the installed app from its mark, src/everlong/web/page/src/mark.svg, with a real browser.

python scripts/draw_icons.py writes the pictures into src/everlong/web/page/public

A maskable icon fills its square, with the mark in the middle, because systems cut it to a circle or another shape.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import sync_playwright

from chromium import FLAGS, find_chromium

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "src" / "everlong" / "web" / "page"
MARK = PAGE / "src" / "mark.svg"
GROUND = "#0f6e62"  # the colour of the mark's square
SAFE = 0.72  # share of a maskable icon's width that the mark takes


@dataclass(frozen=True, slots=True)
class Icon:
    """One picture: its name, its size in pixels, and whether it fills its square."""

    name: str
    side: int
    fills: bool = False


ICONS = (
    Icon("icon-192.png", 192),
    Icon("icon-512.png", 512),
    Icon("icon-maskable-512.png", 512, fills=True),
    Icon("apple-touch-icon.png", 180, fills=True),  # browsers request this name, even without a link in the page
)


def document(icon: Icon) -> str:
    """Return a page that shows only this icon."""
    mark = round(icon.side * SAFE) if icon.fills else icon.side
    ground = f"background:{GROUND};" if icon.fills else ""
    svg = MARK.read_text(encoding="utf-8").replace("<svg ", f'<svg width="{mark}" height="{mark}" ', 1)
    style = f"margin:0;display:grid;place-items:center;width:{icon.side}px;height:{icon.side}px;{ground}"
    return f'<!doctype html><body style="{style}">{svg}</body>'


def main() -> None:
    """Draw all icons."""
    chromium = find_chromium(os.environ)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.path, args=list(FLAGS), env={**os.environ, **chromium.environment}
        )
        for icon in ICONS:
            page = browser.new_page(viewport={"width": icon.side, "height": icon.side})
            page.set_content(document(icon))
            path = PAGE / "public" / icon.name
            page.screenshot(path=path, omit_background=True)
            sys.stdout.write(f"{icon.name}: {path.stat().st_size:,} bytes\n")
        browser.close()


if __name__ == "__main__":
    main()
