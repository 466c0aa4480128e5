"""Measures the page: opening 5,000 messages, typing while an answer streams, memory, ten tabs.

PYTHONPATH=. .venv/bin/python scripts/page_speed.py [--messages 5000] [--changes 100] [--tabs 10]

Uses a real Chromium and a scripted model on this machine. Prints a table; asserts nothing.
"""

import argparse
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect, sync_playwright
from tests.web.built import the_page
from tests.web.running import RunningApp, an_app

from chromium import FLAGS, find_chromium
from everlong.core import Message, Role, Text
from everlong.llm import Answer, ReceivedRequest, Step

KEYS = "The quick brown fox jumps over the lazy dog, and so on. "
RATE = 200  # tokens a second
PATIENCE = 60_000
#: Milliseconds from each key press to the frame after it.
WATCH_KEYS = """() => {
  window.keyTimes = [];
  addEventListener('keydown', (event) => {
    const pressed = event.timeStamp;
    requestAnimationFrame(() => setTimeout(() => window.keyTimes.push(performance.now() - pressed)));
  }, true);
}"""

#: Records when the message was sent, and when the first words of an answer appear in the log.
WATCH_WORDS = """() => {
  const field = document.querySelector("main form textarea");
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") window.sentAt = performance.now(); });
  const look = () => {
    const answers = document.querySelectorAll('main [role=log] article[aria-label="Assistant"]');
    if ([...answers].some((one) => one.textContent.trim())) window.seenAt = performance.now();
    else requestAnimationFrame(look);
  };
  look();
}"""


def said(number: int) -> Message:
    """Return one of many messages, some with markdown."""
    role = Role.ASSISTANT if number % 2 else Role.USER
    code = "\n\n```python\nprint('calm')\n```\n" if number % 10 == 1 else ""
    return Message(role, (Text(f"Line **{number}** of the log. " + "The sea was calm. " * (number % 40) + code),))


def script(asked: ReceivedRequest) -> Step:
    """Stream words for half a minute, about as fast as the fastest models."""
    if "endless" in asked.messages[-1].text:
        return Answer(text="word " * RATE * 30, between=1 / RATE)
    return Answer(text="Here are the first words of the answer.")


@contextmanager
def a_browser() -> Iterator[Page]:
    """Yield a page of a browser that reports its memory exactly."""
    chromium = find_chromium(os.environ)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.path,
            args=[*FLAGS, "--enable-precise-memory-info"],
            env={**os.environ, **chromium.environment},
        )
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        yield context.new_page()
        browser.close()


def megabytes(page: Page) -> float:
    """Return the memory of the page after a garbage collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    used = float(session.send("Runtime.getHeapUsage")["usedSize"])
    session.detach()
    return used / 1e6


def opening(app: RunningApp, page: Page, thread: str, messages: int) -> str:
    """Return the seconds from the choice of a thread until the last of its many messages is visible."""
    times = []
    for _ in range(5):
        page.goto(f"http://127.0.0.1:{app.port}/#/settings")
        page.get_by_role("link", name="The log").first.wait_for()
        begun = time.perf_counter()
        page.evaluate("id => { location.hash = `#/t/${id}`; }", thread)
        page.get_by_text(f"Line {messages - 1} of").wait_for()
        times.append(time.perf_counter() - begun)
    return f"{statistics.median(times):.2f} s (slowest of 5: {max(times):.2f})"


def typing(page: Page) -> str:
    """Return the milliseconds per key while an answer streams."""
    field = page.get_by_role("textbox", name="Message")
    field.fill("endless, please")
    field.press("Enter")
    page.get_by_text("word word").first.wait_for()
    page.evaluate(WATCH_KEYS)
    field.press_sequentially(KEYS * 2, delay=40)
    times = sorted(page.evaluate("window.keyTimes"))
    page.get_by_role("button", name="Stop", exact=True).click()
    return f"median {times[len(times) // 2]:.0f} ms, 95 % {times[int(len(times) * 0.95)]:.0f}, most {times[-1]:.0f}"


def memory(page: Page, threads: list[str], changes: int) -> str:
    """Return the page's megabytes while switching between threads."""
    told = []
    for at in range(changes + 1):
        page.evaluate("id => { location.hash = `#/t/${id}`; }", threads[at % len(threads)])
        page.get_by_role("log").get_by_role("article").last.wait_for()
        if at % max(1, changes // 5) == 0:
            told.append(f"{megabytes(page):.1f}")
    return " → ".join(told) + " MB"


def tabs(app: RunningApp, page: Page, count: int) -> str:
    """Return the seconds until the first words appear in each of many tabs that send at the same time."""
    pages = [page.context.new_page() for _ in range(count)]
    for tab in pages:
        tab.goto(f"http://127.0.0.1:{app.port}/#/")
        tab.get_by_role("textbox", name="Message").wait_for()
        tab.evaluate(WATCH_WORDS)
    for tab in pages:
        tab.get_by_role("textbox", name="Message").fill("Hello")
        tab.get_by_role("textbox", name="Message").press("Enter")
    times = []
    for tab in pages:
        tab.wait_for_function("() => window.seenAt > 0")
        times.append(float(tab.evaluate("(window.seenAt - window.sentAt) / 1000")))
    return f"median {statistics.median(times):.2f} s, slowest {max(times):.2f} s"


def main() -> None:
    """Measure everything, and print each result when it is known."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("messages", 5_000), ("changes", 100), ("tabs", 10)):
        options.add_argument(f"--{name}", type=int, default=default)
    chosen = options.parse_args()
    with an_app(script, window=200_000, built=the_page()) as (app, _), a_browser() as page:
        thread = app.page().thread("The log")
        app.state.threads.append(thread, [said(number) for number in range(chosen.messages)])
        others = [app.page().thread(f"Short {number}") for number in range(5)]
        for other in others:
            app.state.threads.append(other, [said(number) for number in range(60)])
        print(f"opening {chosen.messages:,} messages   {opening(app, page, thread, chosen.messages)}", flush=True)
        print(f"a key at {RATE} tokens/s      {typing(page)}", flush=True)
        print(f"{chosen.changes} changes of thread     {memory(page, [thread, *others], chosen.changes)}", flush=True)
        print(f"first words in {chosen.tabs} tabs   {tabs(app, page, chosen.tabs)}", flush=True)


if __name__ == "__main__":
    main()
