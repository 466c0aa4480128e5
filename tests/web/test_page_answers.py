"""What answers look like: tables, formulas, diagrams, code, footnotes, a person's own words."""

import json

import pytest
from playwright.sync_api import Locator, expect

from everlong.core import Message, Role, Text
from everlong.llm import Answer
from everlong.web.build import PAGE
from tests.web.browser import WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import RunningApp, an_app

PHONE = (390, 844)
LOOKS = {"wide, light": (WIDE, False), "phone, dark": (PHONE, True)}
#: Words of a text that stand on more than one line.
BROKEN = """all => all.flatMap(cell => {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    for (const word of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      const range = document.createRange();
      range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
      if (range.getClientRects().length > 1) broken.push(word[0]);
    }
  return broken })"""
TABLE = """
| Model | Context window | Price | What it is good at | Released | Documentation |
| --- | ---: | --- | --- | --- | --- |
| Alpha | 128,000 | $5 and $6 | Summarization of conversations | 2024 | Comprehensive |
| Beta | 1,000,000 | $15 | Internationalization | 2025 | Straightforward |
"""
LONG = f"{'Donaudampfschifffahrt' * 12} https://example.com/{'path/' * 60} `{'code' * 60}`\n\n```\n{'x' * 900}\n```\n"


def shows(app: RunningApp, view: View, *said: str) -> None:
    """A thread of these, from a person and the model in turn, in view."""
    thread = app.page().thread("Looks")
    roles = (Role.USER, Role.ASSISTANT)
    app.state.threads.append(thread, [Message(roles[at % 2], (Text(text),)) for at, text in enumerate(said)])
    view.thread(thread)


def widths(view: View) -> None:
    """Nothing is wider than the window, and the rows scroll up and down only."""
    assert view.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert view.log.evaluate("box => box.scrollWidth <= box.clientWidth")


@in_a_browser
@pytest.mark.parametrize("look", LOOKS)
def test_tables_scroll_and_no_word_is_broken_and_nothing_widens_the_page(look: str) -> None:
    size, dark = LOOKS[look]
    with an_app(built=the_page()) as (app, _), a_view(app, size=size, dark=dark) as view:
        shows(app, view, f"{LONG}{TABLE}", f"{LONG}{TABLE}- in a list:\n{TABLE.replace(chr(10), chr(10) + '  ')}")
        tables = view.log.get_by_role("group", name=view.word("chat.table"))
        expect(tables).to_have_count(3)
        assert tables.locator("th, td").evaluate_all(BROKEN) == []
        widths(view)
        scrolls = tables.nth(1).evaluate("box => box.scrollWidth > box.clientWidth")
        assert scrolls == (size == PHONE)
        tables.nth(1).focus()
        view.page.keyboard.press("ArrowRight")
        if scrolls:
            expect(tables.nth(1)).not_to_have_js_property("scrollLeft", 0)


FORMULAS = r"""Inline $e^{i\pi} + 1 = 0$ and \(a^2\). It costs $5 and $6, or US$7. Not in `$x$`. Broken: $\frac{1$.

$$
\sum_{n=1}^{\infty} \frac{1}{n^2} = \frac{\pi^2}{6}
$$

\[ \begin{pmatrix} a & b \\ c & d \end{pmatrix} \]

- in a list: $x_1$ and $$y_2$$

```
$z$
```
"""


@in_a_browser
@pytest.mark.parametrize("look", LOOKS)
def test_formulas_are_drawn_and_prices_are_not(look: str) -> None:
    size, dark = LOOKS[look]
    with an_app(built=the_page()) as (app, _), a_view(app, size=size, dark=dark) as view:
        shows(app, view, "And mine: $x^2$, for $5 or $6", FORMULAS)
        expect(view.log.locator(".katex")).to_have_count(7)
        expect(view.log.locator(".katex-display")).to_have_count(3)
        for kept in ("It costs $5 and $6, or US$7.", r"Broken: $\frac{1$.", "for $5 or $6"):
            expect(view.log.get_by_text(kept)).to_be_visible()
        expect(view.log.locator("code", has_text="$x$")).to_be_visible()
        expect(view.log.locator("pre", has_text="$z$")).to_be_visible()
        view.page.evaluate("document.fonts.ready.then(() => 1)")
        assert view.page.evaluate("[...document.fonts].some(font => font.family === 'KaTeX_Main')")
        assert [url for url in view.asked if "KaTeX_Main-Regular" in url]
        widths(view)


DIAGRAM = "graph LR\n  A[Question] --> B{Fits?}\n  B -->|yes| C[Answer]\n  B -->|no| D[Compaction]"
INVALID = "graph LR\n  A -->"
#: Counts what the frame drew.
COUNT_DRAWN = "window.drawn = 0; addEventListener('message', told => { if (told.data.id) window.drawn += 1 })"


def diagram(view: View) -> Locator:
    return view.log.locator("figure img")


@in_a_browser
@pytest.mark.parametrize("look", LOOKS)
def test_a_diagram_is_drawn_and_has_its_source_and_a_large_view(look: str) -> None:
    size, dark = LOOKS[look]
    with an_app(built=the_page()) as (app, _), a_view(app, size=size, dark=dark) as view:
        shows(app, view, "Draw", f"```mermaid\n{DIAGRAM}\n```\n\n```mermaid\n{INVALID}\n```\n")
        expect(diagram(view)).to_have_count(1)
        assert diagram(view).evaluate("it => it.decode().then(() => it.naturalWidth > 100)")
        expect(view.log.get_by_text(view.word("chat.diagram.failed"))).to_contain_text("line")
        expect(view.log.get_by_text("A -->")).to_be_visible()
        source = view.log.get_by_role("button", name=view.word("chat.diagram.source"))
        source.click()
        expect(view.log.locator("figure pre", has_text="Compaction")).to_be_visible()
        expect(diagram(view)).to_have_count(0)
        source.click()
        view.log.get_by_role("button", name=view.word("chat.enlarge")).press("Enter")
        large = view.page.get_by_role("dialog").locator("img")
        expect(large).to_be_visible()
        assert large.evaluate("it => it.getBoundingClientRect().width") >= min(size[0], 600) / 2
        view.page.keyboard.press("Escape")
        expect(view.page.get_by_role("dialog")).to_have_count(0)
        widths(view)


@in_a_browser
def test_a_diagram_that_is_written_is_drawn_once_when_it_is_complete_and_again_in_the_dark() -> None:
    text = f"Here:\n\n```mermaid\n{DIAGRAM}\n```\n\nAnd some more words after it."
    with an_app(lambda _: Answer(text=text, between=0.005), built=the_page()) as (app, _), a_view(app) as view:
        view.page.add_init_script(COUNT_DRAWN)
        view.open()
        view.say("Draw")
        expect(view.log.get_by_text("some more words after it.")).to_be_visible()
        view.answered()
        expect(diagram(view)).to_be_visible()
        assert view.page.evaluate("window.drawn") == 1
        light = diagram(view).get_attribute("src")
        view.page.emulate_media(color_scheme="dark")
        expect(diagram(view)).not_to_have_attribute("src", str(light))
        assert view.page.evaluate("window.drawn") == 2
        assert len([frame for frame in view.page.frames if "diagrams.html" in frame.url]) == 1


PYTHON = "def greet(name: str) -> None:\n    # Say hello\n    print(f'Hello, {name}', 42)\n"
DIFF = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"
NESTED = "- nested\n  ```js\n  let a = 1\n  ```\n"
CODE = f"```python\n{PYTHON}```\n\n```diff\n{DIFF}```\n\n```dockerfile\nFROM scratch\n```\n\n{NESTED}"


@in_a_browser
@pytest.mark.parametrize("look", LOOKS)
def test_code_has_colours_a_label_copy_and_wrapping(look: str) -> None:
    size, dark = LOOKS[look]
    with an_app(built=the_page()) as (app, _), a_view(app, size=size, dark=dark) as view:
        view.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        shows(app, view, "Code", f"{CODE}\n\n```\n{'long ' * 100}\n```\n")
        expect(view.log.locator(".hljs-keyword", has_text="def")).to_be_visible()
        expect(view.log.locator(".hljs-addition", has_text="+new")).to_be_visible()
        expect(view.log.locator(".hljs-keyword", has_text="FROM")).to_be_visible()  # a rarer language
        expect(view.log.locator("li .hljs-keyword", has_text="let")).to_be_visible()
        ink = "it => getComputedStyle(it).color"
        assert view.log.locator(".hljs-keyword").first.evaluate(ink) != view.log.evaluate(ink)
        block = view.log.locator("figure", has_text="greet")
        expect(block.locator("figcaption")).to_contain_text("python")
        assert block.locator("code").inner_text() == PYTHON.rstrip("\n")
        block.get_by_role("button", name=view.word("chat.copy.code")).click()
        expect(block.get_by_role("button", name=view.word("chat.copied"))).to_be_visible()
        assert view.page.evaluate("navigator.clipboard.readText()") == PYTHON.rstrip("\n")
        last = view.log.locator("figure").last
        overflows = "it => it.scrollWidth > it.clientWidth"
        assert last.locator("pre").evaluate(overflows)
        wrap = last.get_by_role("button", name=view.word("chat.wrap"))
        wrap.click()
        expect(wrap).to_have_attribute("aria-pressed", "true")
        assert not last.locator("pre").evaluate(overflows)
        widths(view)


@in_a_browser
def test_long_code_is_shown_in_part_and_whole_when_asked() -> None:
    lines = "\n".join(f"value_{number} = {number}" for number in range(80))
    with an_app(built=the_page()) as (app, _), a_view(app, size=PHONE) as view:
        shows(app, view, "Code", f"```python\n{lines}\n```")
        tall = "it => it.clientHeight"
        pre = view.log.locator("figure pre")
        before = pre.evaluate(tall)
        more = view.log.get_by_role("button", name=view.word("chat.code.more").replace("{lines}", "80"))
        expect(more).to_have_attribute("aria-expanded", "false")
        more.click()
        expect(view.button("chat.code.less")).to_have_attribute("aria-expanded", "true")
        assert pre.evaluate(tall) > 2 * before
        view.button("chat.code.less").click()
        assert pre.evaluate(tall) == before


NOTES = """First[^a], again[^a], second[^b], and [^none] is no note.

- [x] done
- [ ] open

[^b]: The **second** note.
[^a]: The first note, with `code`
  and a second line.
"""


@in_a_browser
def test_footnotes_are_numbered_as_they_are_mentioned_and_lead_there_and_back() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app, size=PHONE) as view:
        shows(app, view, "Notes", NOTES)
        references = view.log.locator("sup.reference button")
        expect(references).to_have_text(["1", "1", "2"])
        expect(view.log.get_by_text("[^none] is no note")).to_be_visible()
        notes = view.log.get_by_role("group", name=view.word("chat.notes"))
        expect(notes.locator(".note")).to_have_text(
            ["1 The first note, with code and a second line.", "2 The second note."]
        )
        references.nth(2).press("Enter")
        expect(notes.locator(".note").nth(1)).to_be_focused()
        notes.get_by_role("button", name=view.word("chat.note.back").replace("{number}", "2")).click()
        expect(references.nth(2)).to_be_focused()
        expect(view.log.locator("li")).to_have_text(["☑ done", "☐ open"])


PASTED = """Please look at **this**: <div class="x">*args, 2*3*4, &amp; __init__</div>
    four spaces, `code`, C:\\*dir
# a note, not a heading
https://example.com/a."""


@in_a_browser
@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_a_persons_words_are_markdown_and_keep_every_letter_and_line(language: str) -> None:
    with (
        an_app(lambda _: Answer(text="Yes."), built=the_page()) as (app, _),
        a_view(app, language=language) as view,
    ):
        view.open()
        view.say(f"{PASTED}\n\n```python\nprint(1)\n```")
        expect(view.log.get_by_text("Yes.")).to_be_visible()
        said = view.log.get_by_role("article", name=view.word("role.user"))
        assert said.locator(".said").evaluate("it => it.textContent") == f"{PASTED}\n"
        assert said.locator(".said").evaluate("it => it.innerText.split('\\n').length") >= 4
        expect(said.locator("strong")).to_have_text("**this**")
        expect(said.locator("code").first).to_have_text("`code`")
        expect(said.get_by_role("link")).to_have_attribute("href", "https://example.com/a")
        expect(said.locator(".hljs-built_in", has_text="print")).to_be_visible()


# --- while it grows ----------------------------------------------------------------------------------

#: Counts how often something changes inside blocks that were complete before, and how often at all.
WATCH = """
window.counted = {complete: 0, open: 0};
new MutationObserver(changes => {
  for (const box of document.querySelectorAll('.markdown.growing')) {
    const last = box.lastElementChild;
    for (const change of changes) {
      const block = [...box.children].find(child => child.contains(change.target));
      if (!block) continue;
      // What has just been completed was changed while it was open.
      if (block === last || block === last?.previousElementSibling) window.counted.open += 1;
      else window.counted.complete += 1;
    }
  }
}).observe(document, {subtree: true, childList: true, characterData: true});
"""


@in_a_browser
def test_blocks_that_are_complete_are_not_drawn_again_while_an_answer_grows() -> None:
    prose = [f"Paragraph {number} with $x_{{{number}}}$ and **bold** words." for number in range(10)]
    code = f"```python\n{PYTHON * 3}```"
    answer = Answer(text="\n\n".join((*prose[:4], code, *prose[4:], "The end of it.")), between=0.01)
    with an_app(lambda _: answer, built=the_page()) as (app, _), a_view(app) as view:
        view.page.add_init_script(WATCH)
        view.open()
        view.say("Write")
        expect(view.log.get_by_text("The end of it.")).to_be_visible()
        view.answered()
        counted = view.page.evaluate("window.counted")
        assert counted["open"] > 5
        # Each formula is put in its place once, and code gets its last colours when it is complete.
        assert counted["complete"] <= 2 * len(prose) + 10, json.dumps(counted)
        expect(view.log.locator(".katex")).to_have_count(len(prose))


@in_a_browser
def test_code_that_grows_keeps_its_height_when_its_colours_come() -> None:
    answer = Answer(text=f"```python\n{PYTHON * 8}```\n\nThe end of it.", between=0.002)
    with an_app(lambda _: answer, built=the_page()) as (app, _), a_view(app) as view:
        view.open()
        view.say("Write")
        expect(view.log.get_by_text("The end of it.")).to_be_visible()
        view.answered()
        code = view.log.locator("figure code")
        coloured = code.evaluate("it => it.getBoundingClientRect().height")
        expect(view.log.locator(".hljs-keyword").first).to_be_visible()
        plain = code.evaluate("it => { it.textContent = it.textContent; return it.getBoundingClientRect().height }")
        assert plain == coloured


@in_a_browser
def test_in_a_long_thread_few_rows_are_drawn_and_what_is_loaded_later_is_loaded_once() -> None:
    rich = (FORMULAS, CODE, f"```mermaid\n{DIAGRAM}\n```", TABLE)
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        asked: list[str] = []  # by the page itself: a worker that keeps files for later asks for them too
        view.page.on("request", lambda request: asked.append(request.url))
        thread = app.page().thread("The ship's log")
        roles = (Role.USER, Role.ASSISTANT)
        texts = (f"Line {number}. {rich[number // 2 % 4] if number % 2 else ''}" for number in range(5_000))
        app.state.threads.append(
            thread, [Message(roles[number % 2], (Text(text),)) for number, text in enumerate(texts)]
        )
        view.thread(thread)
        for place in (4_999, 2_500, 40, 4_000):
            view.open(f"#/t/{thread}/{place}")
            expect(view.log.get_by_text(f"Line {place}.")).to_be_in_viewport()
            expect(view.log.locator(".katex").first).to_be_attached()
            assert view.log.locator("[data-key]").count() <= 60
        later = [url.rpartition("/")[2] for url in asked if "/assets/" in url or "diagrams" in url]
        assert len(later) == len(set(later)), later


# --- for everyone ------------------------------------------------------------------------------------

AXE = PAGE / "node_modules" / "axe-core" / "axe.min.js"
#: The rules that an answer breaks, and where.
BREAKS = """() => axe.run(document.querySelector('main [role=log]'), {iframes: false})
  .then(found => found.violations.map(one => `${one.id}: ${one.nodes.map(node => node.html).slice(0, 3).join(' ')}`))"""


@in_a_browser
@pytest.mark.parametrize(("look", "language"), [("wide, light", "en-US"), ("phone, dark", "zh-CN")])
def test_axe_finds_nothing_in_answers(look: str, language: str) -> None:
    size, dark = LOOKS[look]
    rich = "\n\n".join((FORMULAS, TABLE, CODE, f"```mermaid\n{DIAGRAM}\n```", NOTES))
    with (
        an_app(built=the_page()) as (app, _),
        a_view(app, size=(size[0], 4_000), dark=dark, language=language) as view,
    ):
        shows(app, view, f"{PASTED}\n\n{TABLE}", rich)
        expect(diagram(view)).to_be_visible()
        expect(view.log.locator(".katex")).to_have_count(6)
        expect(view.log.locator(".hljs-addition")).to_be_visible()
        view.page.evaluate(AXE.read_text(encoding="utf-8"))
        assert view.page.evaluate(BREAKS) == []
