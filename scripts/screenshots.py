"""Takes the docs' pictures of the app and the token map: scripted models, sample threads, a real browser.

    python scripts/screenshots.py [folder]

Everything happens on this machine; only the time of day differs from run to run.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from chromium import FLAGS, find_chromium
from everlong.web import build_page

FOLDER = Path(__file__).parents[1] / "docs" / "images"
DESKTOP, PHONE, MAP = (1280, 800), (390, 844), (1280, 1040)
LARGEST = 200_000  # bytes of a picture
SECONDS = 60.0


def nothing(page: Page) -> None:
    """Do nothing: the page as it opens."""


def at_the_summary(page: Page) -> None:
    expect(page.get_by_role("article", name="Summary")).to_be_in_viewport()


def summary_opened(page: Page) -> None:
    """Open the summary and scroll to its beginning, for a phone."""
    summary = page.get_by_role("article", name="摘要")
    summary.get_by_role("button").first.click()
    summary.evaluate("it => it.scrollIntoView({ block: 'start' })")
    page.get_by_role("button", name="到最新消息").or_(page.get_by_role("log").first).first.wait_for()


def answers(page: Page) -> None:
    """Ask for an answer and wait until it has begun, after a thought and a recall."""
    page.get_by_role("textbox", name="Message").fill("Please think: what did we decide about discounts?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("log").first.get_by_text("Consignment books")).to_be_in_viewport()


def compacts(page: Page) -> None:
    page.get_by_label("Focus").fill("wrong check digits")
    page.get_by_role("button", name="Compact now").click()
    expect(page.get_by_role("log", name="Summary so far")).not_to_be_empty()


def asks(page: Page) -> None:
    question = "How many lines does the README have? Ask me first."
    page.get_by_role("textbox", name="Message").fill(question)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("alertdialog")).to_be_visible()
    expect(page.get_by_role("log").first.get_by_text(question)).to_be_visible()


def drawn(page: Page) -> None:
    expect(page.locator("canvas").first).to_be_visible()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One picture: its page, its size, its look, and what is done before it is taken."""

    name: str
    place: str
    size: tuple[int, int] = DESKTOP
    dark: bool = False
    language: str = "en-US"
    act: Callable[[Page], None] = nothing


SHOTS = (
    Shot(name="chat", place="#/t/app-shop", act=at_the_summary),
    Shot(name="answer", place="#/t/app-shop", dark=True, act=answers),
    Shot(name="compacting", place="#/t/app-feed", act=compacts),
    Shot(name="unknown", place="#/t/app-unknown"),
    Shot(name="asks", place="#/t/app-unknown", size=PHONE, act=asks),
    Shot(name="settings", place="#/settings"),
    Shot(name="usage", place="#/usage", act=drawn),
    Shot(name="phone", place="#/t/app-shop-zh", size=PHONE, dark=True, language="zh-CN", act=summary_opened),
)


@contextmanager
def the_app() -> Iterator[str]:
    """Yield the address of the app with its sample threads."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "everlong.cli.demo_app", "--port", str(port), "--messages", "600"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            if not any("The app is at" in line for line in running.stderr):
                raise SystemExit("the app did not start")
            yield f"http://127.0.0.1:{port}"
        finally:
            running.terminate()


def take(browser: Browser, address: str, shot: Shot, folder: Path) -> int:
    """Take one picture; return its size in bytes."""
    context = browser.new_context(
        viewport={"width": shot.size[0], "height": shot.size[1]},
        color_scheme="dark" if shot.dark else "light",
        locale=shot.language,
        reduced_motion="reduce",
        has_touch=shot.size == PHONE,
    )
    page = context.new_page()
    page.goto(f"{address}/{shot.place}")
    page.get_by_role("main").wait_for()
    if shot.place.startswith("#/t/"):
        page.get_by_role("log").first.locator("article").first.wait_for()
        page.get_by_test_id("context-tokens").wait_for(state="attached")
    shot.act(page)
    path = folder / f"app-{shot.name}.png"
    page.screenshot(path=path, animations="disabled", caret="hide")
    context.close()
    return path.stat().st_size


def take_map(browser: Browser, folder: Path) -> int:
    """Take the picture of the token map; return its size in bytes."""
    options = ["--sample", "--budget", "16000", "--lang", "en", "--html", "-"]
    command = [sys.executable, "-m", "everlong", "inspect", *options]
    html = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    page = browser.new_page(viewport={"width": MAP[0], "height": MAP[1]})
    page.set_content(html)
    path = folder / "inspect.png"
    page.screenshot(path=path, animations="disabled")
    page.close()
    return path.stat().st_size


def main(folder: Path = FOLDER) -> None:
    build_page()
    folder.mkdir(parents=True, exist_ok=True)
    chromium = find_chromium(os.environ)
    with the_app() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.path, args=list(FLAGS), env={**os.environ, **chromium.environment}
        )
        sizes = {f"app-{shot.name}.png": take(browser, address, shot, folder) for shot in SHOTS}
        sizes["inspect.png"] = take_map(browser, folder)
        browser.close()
    for name, size in sizes.items():
        print(f"{name}  {size / 1000:.0f} kB")
    if max(sizes.values()) > LARGEST:
        raise SystemExit("that is too large for the docs")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
