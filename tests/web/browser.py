"""The page in a real browser. Whatever a test does there, nothing may leave the app's own address or go wrong unseen.

    @in_a_browser
    def test_something() -> None:
        with an_app() as (app, _), a_view(app) as view:
            view.open("#/settings")

One browser for each process, in a thread of its own: its event loop must not be that of other tests. At most two
tests look at once, however many processes there are.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import ParamSpec, Protocol
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect, sync_playwright
from scripts.chromium import FLAGS, find_chromium

from everlong.web.build import PAGE
from tests.web.built import one_at_a_time, the_page, words

__all__ = ["PHONE", "WIDE", "View", "a_view", "in_a_browser", "the_page"]

WIDE, PHONE = (1280, 800), (380, 780)
TOUCHED = 500  # px: a narrower window is a phone's
PATIENCE = 20_000.0  # milliseconds that something may take on a busy machine
AXE = PAGE / "node_modules" / "axe-core" / "axe.min.js"
AT_ONCE = 2  # tests that look at the same time

Arguments = ParamSpec("Arguments")


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="browser")


@cache
def _browser() -> Browser:
    """Started in its thread; ends with this process."""
    chromium = find_chromium(os.environ)
    return (
        sync_playwright()
        .start()
        .chromium.launch(
            executable_path=chromium.path, args=list(FLAGS), env={**os.environ, **chromium.environment}, timeout=60_000
        )
    )


def in_a_browser(test: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The test, in the thread of the browser."""

    @wraps(test)
    def inside(*given: Arguments.args, **named: Arguments.kwargs) -> None:
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        with one_at_a_time(f"browser-{worker % AT_ONCE}"):
            _thread().submit(test, *given, **named).result()

    return inside


@dataclass(slots=True)
class View:
    """One window of the browser. `asked` is every address it asked for, `told` what its console said."""

    page: Page
    origin: str
    language: str
    asked: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def word(self, key: str) -> str:
        """What the page says there, in its language."""
        return words(self.language)[key]

    def like(self, key: str) -> re.Pattern[str]:
        """The same with anything in its gaps."""
        return re.compile(".+".join(map(re.escape, re.split(r"\{\w+\}", self.word(key)))))

    def button(self, key: str) -> Locator:
        """The button that says so."""
        return self.page.get_by_role("button", name=self.word(key), exact=True)

    def open(self, place: str = "") -> Page:
        """Go to a place of the page, such as "#/settings"."""
        self.page.goto(f"{self.origin}/{place}")
        return self.page

    def thread(self, thread: str, place: str = "") -> Page:
        """Open a thread and wait until its rows stand."""
        self.open(f"#/t/{thread}{place}")
        expect(self.log.locator("article").first).to_be_visible()
        return self.page

    @property
    def log(self) -> Locator:
        """The rows of the open thread that are drawn."""
        return self.page.get_by_role("log").first

    @property
    def panel(self) -> Locator:
        """The context panel."""
        return self.page.get_by_role("complementary")

    @property
    def field(self) -> Locator:
        """Where one writes."""
        return self.page.get_by_role("textbox", name=self.word("composer.label"))

    def say(self, text: str) -> None:
        """Write and send: on a phone the button does, for Enter makes a new line there."""
        self.field.fill(text)
        if (self.page.viewport_size or {"width": 0})["width"] < TOUCHED:
            self.button("composer.send").click()
        else:
            self.field.press("Enter")

    def listening(self) -> None:
        """Wait until the page hears what happens in the thread, and nobody answers."""
        expect(self.log).to_have_attribute("aria-busy", "false")

    def answered(self) -> None:
        """Wait until nobody answers any more."""
        expect(self.button("composer.stop")).to_have_count(0)

    def choose(self, button: Locator, key: str) -> None:
        """Open a menu and choose in it."""
        button.click()
        self.page.get_by_role("menu").get_by_text(self.word(key), exact=True).click()

    def summary(self) -> Locator:
        """The summaries in view."""
        return self.log.get_by_role("article", name=self.word("chat.summary"))

    def to_first(self, text: str) -> Locator:
        """Scroll up, loading what is older, until the first row of all says that."""
        self.page.wait_for_function(
            """(text) => { const box = document.querySelector('main [role=log]'); box.scrollTop = 0;
            return box.querySelector('[data-key]')?.textContent.includes(text); }""",
            arg=text,
        )
        return self.log.locator("[data-key]").first

    def faults(self) -> list[str]:
        """What axe-core finds wrong with the page as it stands."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        return [f"{fault['id']}: {node['html'][:200]}" for fault in found for node in fault["nodes"]]

    def foreign(self) -> list[str]:
        """Addresses that are not the app's own."""
        inside = ("data:", "blob:", "about:")
        return [url for url in self.asked if not url.startswith((self.origin + "/", *inside))]


class Served(Protocol):
    """An app that listens somewhere on this machine: in this process, or in one of its own."""

    port: int


@contextmanager
def a_view(
    app: Served,
    *,
    size: tuple[int, int] = WIDE,
    dark: bool = False,
    language: str = "en-US",
    complains: Sequence[str] = (),
) -> Iterator[View]:
    """A window of its own at the app. `complains` are parts of what its console may say."""
    context = _browser().new_context(
        viewport={"width": size[0], "height": size[1]},
        locale=language,
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        has_touch=size[0] < TOUCHED,
    )
    context.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    view = View(context.new_page(), f"http://127.0.0.1:{app.port}", language.partition("-")[0])
    context.on("request", lambda request: view.asked.append(request.url))
    view.page.on("console", lambda message: _note(view, message))
    view.page.on("pageerror", lambda error: view.told.append(f"error: {error}"))
    try:
        yield view
        assert view.foreign() == []
        unexpected = [told for told in view.told if not any(part in told for part in complains)]
        assert not unexpected, unexpected
    finally:
        context.close()


def _note(view: View, message: ConsoleMessage) -> None:
    if message.type in ("error", "warning"):
        view.told.append(f"{message.type}: {message.text} {urlsplit(str(message.location.get('url', ''))).path}")
