"""The first minute: `everlong serve --sample` opens on the sample; its witness quotes what reached it, or says no."""

import re
from pathlib import Path
from threading import Event as Signal

import pytest
from playwright.sync_api import APIResponse, Route, expect

from everlong.llm import Answer, Endpoint, Fetch, ReceivedRequest, ScriptedServer
from everlong.store import MemoryThreads
from everlong.web.app import Setup
from everlong.web.state.sources import Source
from tests.gateway.processes import ServingProcess
from tests.web.browser import PHONE, View, a_view, in_a_browser, the_page
from tests.web.running import Page, RunningApp, an_app

SAMPLE = ("--sample", "--no-access-log", "--store", "memory:")
#: Where the answer of each example question must come from, by the words that name the place.
PLACES = {
    "en": {"recent": r"message \d+ of \d+", "summary": "the summary", "recall": "recalled", "nowhere": ""},
    "zh": {"recent": r"第 \d+ 条（共", "summary": "摘要", "recall": "取回的原文", "nowhere": ""},
}
ABSENT = {"en": "That is not in what I was sent.", "zh": "发给我的内容里没有这一点。"}


def opened(view: View) -> str:
    """Go to where `--browse` leads and wait for the sample; the name of its thread."""
    view.open("#/sample")
    expect(view.page.get_by_text(view.word("sample.line"))).to_be_visible()
    expect(view.summary()).to_have_count(1)
    found = re.search(r"#/t/(\w+)$", view.page.url)
    assert found, view.page.url
    return found[1]


def ask(view: View, place: str) -> str:
    """Press an example and wait for its answer."""
    answers = view.log.get_by_role("article", name=view.word("role.assistant"))
    view.page.get_by_role("button", name=view.word(f"sample.ask.{place}")).click()
    expect(view.log.get_by_text(view.word(f"sample.ask.{place}"), exact=True)).to_be_visible()
    view.answered()
    return answers.last.inner_text()


def check_quotations(page: Page, thread: str) -> int:
    """Every quotation in the answers stands in another row of the thread, character for character; how many."""
    rows = page.rows(thread)
    texts = [row["text"] for row in rows] + [result["text"] for row in rows for result in row.get("results", ())]
    quoted = 0
    for row in rows:
        if row["role"] != "assistant" or not row["text"].startswith(("In what I was sent:", "在发给我的内容里：")):
            continue
        for line in row["text"].splitlines():
            if line.startswith("> ") and not line.startswith(("> — *", "> ```")):
                quoted += 1
                assert any(line[2:] in text for text in texts if text != row["text"]), line
    return quoted


@in_a_browser
@pytest.mark.parametrize(
    ("size", "language"), [((1440, 900), "en"), (PHONE, "zh")], ids=["a desk", "a phone, in Chinese"]
)
def test_serve_opens_on_the_sample_and_each_question_is_answered_from_its_place(
    tmp_path: Path, size: tuple[int, int], language: str
) -> None:
    the_page()
    with ServingProcess(*SAMPLE, folder=tmp_path) as server:
        with a_view(server, size=size, language={"en": "en-US", "zh": "zh-CN"}[language]) as view:
            thread = opened(view)
            expect(view.summary()).to_contain_text(re.compile(r"\d"))
            assert view.faults() == []
            answers = {place: ask(view, place) for place in PLACES[language]}
        page = Page(server.port)
        for place, named in PLACES[language].items():
            assert re.search(named or ABSENT[language], answers[place]), (place, answers[place])
        assert "the summary" not in answers["recall"]
        assert check_quotations(page, thread) >= 3
        written = next(row for row in page.rows(thread) if row["kind"] == "summary")
        assert ("## Next" if language == "en" else "## 下一步") in written["text"]
        assert page.get(f"/everlong/api/threads/{thread}")["sample"] == language


@in_a_browser
def test_a_page_without_threads_opens_on_the_sample_once(tmp_path: Path) -> None:
    the_page()
    with ServingProcess(*SAMPLE, folder=tmp_path) as server, a_view(server) as view:
        view.open()
        expect(view.page.get_by_text(view.word("sample.line"))).to_be_visible()
        first = view.page.url
        assert opened(view) in first  # the same one, in this language
        view.page.get_by_role("link", name=view.word("sample.other")).click()
        expect(view.page.get_by_role("heading", name=view.word("first.title"))).to_be_visible()
        assert view.faults() == []
        view.button("first.witness_button").click()
        view.say("The cellar key hangs behind the till.")
        view.answered()
        view.say("Where does the cellar key hang?")
        view.answered()
        expect(view.log.locator("blockquote").get_by_text("The cellar key hangs behind the till.")).to_be_visible()


@in_a_browser
def test_the_local_model_is_downloaded_in_sight_and_can_be_given_up() -> None:
    arrived, more = Signal(), Signal()

    def start(fetch: Fetch) -> Source:
        fetch.begin(93_000_000)
        fetch.came(34_000_000)
        arrived.set()
        while not more.wait(0.05):
            fetch.came(34_000_000)
        return Source(name="local", endpoint=Endpoint(url=server.url), models=("local",), local=True)

    with (
        ScriptedServer(lambda _: Answer(text="I am small."), models=("local",)) as server,
        RunningApp(Setup(threads=MemoryThreads(), start_local=start), built=the_page()) as app,
        a_view(app) as view,
    ):
        view.open()
        expect(view.page.get_by_text("135 million parameters")).to_be_visible()
        view.button("first.local_button").click()
        expect(view.page.get_by_text("Downloading: 34 of 93 MB")).to_be_visible()
        view.button("first.local_cancel").click()
        view.button("first.local_button").click()
        expect(view.page.get_by_text("Downloading: 34 of 93 MB")).to_be_visible()
        more.set()
        expect(view.page.get_by_role("heading", name=view.word("welcome.title"))).to_be_visible()
        view.say("hello")
        expect(view.log.get_by_text("I am small.")).to_be_visible()


@in_a_browser
def test_after_a_second_without_a_word_it_is_said_what_happens() -> None:
    goes_on = Signal()

    def slow(_: ReceivedRequest) -> Answer:
        goes_on.wait(60)
        return Answer(text="At last.")

    with an_app(slow, built=the_page()) as (app, _), a_view(app) as view:
        thread = app.page().thread()
        view.open(f"#/t/{thread}")
        view.say("hello")
        expect(view.page.get_by_text(view.like("waiting.sending"))).to_be_visible()
        expect(view.page.get_by_text(view.like("waiting.reading"))).to_be_visible()
        goes_on.set()
        expect(view.log.get_by_text("At last.")).to_be_visible()
        expect(view.page.get_by_text(view.like("waiting.reading"))).to_have_count(0)


@in_a_browser
def test_a_context_that_comes_late_does_not_replace_a_newer_one() -> None:
    goes_on = Signal()
    late: list[tuple[Route, APIResponse]] = []

    def slow(_: ReceivedRequest) -> Answer:
        goes_on.wait(60)
        return Answer(text="At last.")

    with an_app(slow, built=the_page()) as (app, _), a_view(app) as view:
        view.page.route("**/context", lambda route: late.append((route, route.fetch())))
        view.open(f"#/t/{app.page().thread()}")
        view.say("hello")
        reading = view.page.get_by_text(view.like("waiting.reading"))
        expect(reading).to_be_visible()  # it has heard of the tokens
        assert late
        for route, response in late:
            with view.page.expect_response("**/context"):
                route.fulfill(response=response)
        view.page.evaluate("() => new Promise(requestAnimationFrame)")
        expect(reading).to_be_visible()
        goes_on.set()
        expect(view.log.get_by_text("At last.")).to_be_visible()
