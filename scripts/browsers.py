"""Try the main path of the chat app in Firefox and WebKit, as wide as a desktop and as narrow as a phone.

    PYTHONPATH=. .venv/bin/python scripts/browsers.py [--browser firefox] [--pictures FOLDER]

Uses this machine's browsers, headless and with new profiles, the app with its sample thread, and a scripted model.
Nothing leaves the machine. Prints one row per step; exits with 1 if a step failed or a browser is missing.
"""

import argparse
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.gateway.processes import ServingProcess
from tests.web.built import the_page, words
from tests.web.running import an_app

from everlong.llm import Answer, ReceivedRequest, Step
from webdrivers import BROWSERS, Page, wait

SIZES = ((1440, 900), (390, 844))
NARROW = 820  # px: below this width the thread list is a drawer
SLOW = " ".join(f"word{number}" for number in range(600))
RICH = r"""| part | before | after |
| --- | ---: | ---: |
| search | 840 ms | 120 ms |

$$ \sum_{n=1}^{\infty} \frac{1}{n^2} = \frac{\pi^2}{6} $$

```python
def slow(limit: float = 0.5) -> bool:
    return limit > 0.25
```

```dockerfile
FROM python
```

```mermaid
graph LR
  A[Question] --> B{Fits?}
  B -->|yes| C[Answer]
  B -->|no| D[Compaction]
```
"""


@dataclass
class View(Page):
    """The app in one browser at one size: once with its sample thread, once with a scripted model."""

    sample: str
    scripted: str
    language: str = "en"
    figure: str = ""  # the context figure when the sample was opened

    def word(self, key: str) -> str:
        return words(self.language)[key]

    @property
    def narrow(self) -> bool:
        return bool(self.run("return innerWidth <= arguments[0]", NARROW))

    def say(self, text: str) -> None:
        """Type and send a message: with Enter on a desktop, with the button on a phone."""
        self.type("form textarea", text if self.narrow else f"{text}\ue007")
        if self.narrow:
            self.click("button", self.word("composer.send"))

    def answered(self) -> None:
        stop = self.word("composer.stop")
        self.until("!document.querySelector(`form [aria-label='${arguments[0]}']`)", stop)


LOG = 'document.querySelector("main [role=log]")'
TEXT = f"{LOG}?.textContent.includes(arguments[0])"
FIGURE = 'document.querySelector("[data-testid=context-figure]")?.textContent.trim()'
FORMULA_FONT = '[...document.fonts].some(it => it.family.includes("KaTeX_Main") && it.status === "loaded")'
DARK = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).every(it => it < 64)"


def opens_the_sample(view: View) -> None:
    view.go(f"{view.sample}/#/sample")
    view.find("main [role=log] article")
    view.until("document.body.textContent.includes(arguments[0])", view.word("sample.line"))
    view.until('location.hash.startsWith("#/t/")')
    view.figure = view.until(FIGURE)


def answers_a_question(view: View) -> None:
    question = view.word("sample.ask.recent")
    view.say(question)
    view.until(TEXT, question)
    view.until(TEXT, "In what I was sent:")
    view.answered()
    view.until('document.querySelector("form textarea").value === ""')


def shows_the_context(view: View) -> None:
    """Check that the figure in the composer has changed, and that both its card and the panel open."""
    view.until(f"{FIGURE} !== arguments[0]", view.figure)
    view.click("[data-testid=context-figure]")
    view.find("form [role=dialog] [role=meter]")
    view.click("form [role=dialog] button", view.word("panel.details"))
    view.find("aside [role=meter]")
    if view.narrow:
        view.click("button", view.word("panel.close"))


def keeps_a_draft(view: View) -> None:
    view.type("form textarea", "Half a thought")
    view.until("Object.values(localStorage).some(it => it.includes('Half a thought'))")
    view.browser.command("Refresh")
    view.until('document.querySelector("form textarea")?.value === "Half a thought"')


def stops_and_continues(view: View) -> None:
    view.go(f"{view.scripted}/")
    view.say("slowly")
    view.until(TEXT, "word3 ")
    view.click("button", view.word("composer.stop"))
    view.answered()
    view.find("[role=log] *", view.word("ending.stopped"))
    view.click("button", view.word("ending.continue"))
    view.until(TEXT, "and the rest")
    view.answered()


def starts_a_thread(view: View) -> None:
    if view.narrow:
        view.click("button", view.word("app.sidebar"))
    view.click("nav a, nav button", view.word("threads.new"))
    view.find("h1, h2", view.word("welcome.title"))
    view.until('document.querySelector("form textarea").value === ""')


def draws_rich_answers(view: View) -> None:
    view.go(f"{view.scripted}/#/")
    view.say("everything")
    view.until(f'{LOG}?.querySelector("figure img")?.naturalWidth > 100')
    view.answered()
    view.until(f'{LOG}.querySelectorAll("table td").length === 3')
    view.until(f'{LOG}.querySelector(".katex-display") && {FORMULA_FONT}')
    colour = "getComputedStyle({}).color"
    word, text = colour.format(f'{LOG}.querySelector(".hljs-keyword")'), colour.format(LOG)
    view.until(f'{LOG}.querySelectorAll(".hljs-keyword").length >= 3 && {word} !== {text}')  # in both languages
    view.run(f'{LOG}.querySelector("table").scrollIntoView()')


def opens_every_page(view: View) -> None:
    """Check that each page appears, and that its columns scroll instead of the window."""
    places = {
        view.run("return location.href"): ("main article", ""),
        f"{view.scripted}/#/settings": ("[type=range]", ""),
        f"{view.scripted}/#/usage": ("canvas", ""),
        f"{view.sample}/#/live": (".page *", view.word("live.connected")),
        f"{view.sample}/#/keys": ("button", view.word("clients.new")),
    }
    for place, content in places.items():
        view.go(place)
        view.find(*content)
        sizes = "const it = document.body; return [[it.scrollWidth, it.scrollHeight], [innerWidth, innerHeight]]"
        page, window = view.run(sizes)
        assert page == window, f"{place} has {page} in a window of {window}"


def speaks_chinese(view: View) -> None:
    view.go(f"{view.scripted}/#/settings")
    view.click("label", words("zh")["language.name"])
    view.language = "zh"
    view.find("h1", view.word("app.settings"))
    view.until('document.documentElement.lang.startsWith("zh")')


def turns_dark(view: View) -> None:
    view.click("label", view.word("settings.theme.dark"))
    view.until(DARK)
    view.browser.command("Refresh")
    view.find("[type=range]")
    view.until(DARK)


def has_a_silent_console(view: View) -> None:
    """Check that the console has only the errors provoked here, which prove that errors are seen."""
    view.run('console.error("provoked"); setTimeout(() => { throw new Error("provoked, too") })')
    wait(lambda: any("provoked, too" in line for line in view.browser.console()), "an error in the console")
    lines = view.browser.console()
    assert any("provoked" in line and "too" not in line for line in lines), "console.error is not seen"
    unexpected = [line for line in lines if "provoked" not in line]
    assert not unexpected, "; ".join(unexpected)


STEPS = (
    opens_the_sample,
    answers_a_question,
    shows_the_context,
    keeps_a_draft,
    stops_and_continues,
    starts_a_thread,
    draws_rich_answers,
    opens_every_page,
    speaks_chinese,
    turns_dark,
    has_a_silent_console,
)


def script(request: ReceivedRequest) -> Step:
    """Answer slowly, with rich content, or with the rest of a stopped answer."""
    question = request.messages[-1].text
    if question == "everything":
        return Answer(text=RICH, between=0.005)
    return Answer(text=SLOW, between=0.02) if question == "slowly" else Answer(text="and the rest")


@contextmanager
def the_apps() -> Iterator[tuple[str, str]]:
    """Yield the addresses of the app with its sample, and of one with a scripted model."""
    options = ("--sample", "--no-access-log", "--store", "memory:")
    with (
        tempfile.TemporaryDirectory() as folder,
        ServingProcess(*options, folder=Path(folder)) as serving,
        an_app(script, built=the_page()) as (app, _),
    ):
        yield serving.address, f"http://127.0.0.1:{app.port}"


def try_all(name: str, size: tuple[int, int], pictures: Path | None) -> tuple[str, dict[str, str]]:
    """Run all steps in a new session; return its title and, for each step, "ok" or what went wrong."""
    find, drive, _ = BROWSERS[name]
    outcomes = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        sample, scripted = stack.enter_context(the_apps())
        browser = drive(find() or name, Path(folder), stack)
        browser.resize(*size)
        view = View(browser, sample, scripted)
        title = "{} {} {}×{}".format(browser.name, browser.version, *view.run("return [innerWidth, innerHeight]"))
        for number, step in enumerate(STEPS):
            try:
                step(view)
                outcomes[step.__name__] = "ok"
            except (AssertionError, RuntimeError) as error:
                outcomes[step.__name__] = f"FAILED: {error}"
            print(f"{title}: {step.__name__.replace('_', ' ')}: {outcomes[step.__name__]}", file=sys.stderr, flush=True)
            if pictures:
                picture = b64decode(browser.command("TakeScreenshot", full=False))
                (pictures / f"{name}-{size[0]}-{number:02}-{step.__name__}.png").write_bytes(picture)
    return title, outcomes


def main() -> None:
    """Try every installed browser at both sizes, and print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--browser", choices=sorted(BROWSERS), action="append", help="only this one; may be repeated")
    options.add_argument("--pictures", type=Path, help="save a picture after each step in this folder")
    chosen = options.parse_args()
    if chosen.pictures:
        chosen.pictures.mkdir(parents=True, exist_ok=True)
    names = chosen.browser or sorted(BROWSERS)
    missing = [name for name in names if not BROWSERS[name][0]()]
    for name in missing:
        print(f"{name} is not installed (Debian: {BROWSERS[name][2]})", file=sys.stderr)
    columns = [try_all(name, size, chosen.pictures) for name in names if name not in missing for size in SIZES]
    if not columns:
        sys.exit(1)
    print("| step |", " | ".join(title for title, _ in columns), "|")
    print("| --- |", " | ".join("---" for _ in columns), "|")
    for step in STEPS:
        cells = (outcomes[step.__name__].partition(":")[0] for _, outcomes in columns)
        print(f"| {step.__name__.replace('_', ' ')} |", " | ".join(cells), "|")
    failed = any(outcome != "ok" for _, outcomes in columns for outcome in outcomes.values())
    sys.exit(1 if failed or missing else 0)


if __name__ == "__main__":
    main()
