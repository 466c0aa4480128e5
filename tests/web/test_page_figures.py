"""One number for each fact: what card, panel, usage and events say about a compaction, and that it stays so."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from everlong.compress import steps
from everlong.core import EventKind, Message, Role, Text
from everlong.llm import Answer, ReceivedRequest, Refusal, Step
from everlong.store import MemoryThreads
from everlong.web.build import PAGE
from tests.web.boats import SUMMARY, TALKS, WINDOW, WORDS, fill, is_asked_to_summarise, points
from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import Page, RunningApp, an_app

FIGURE = re.compile(r"\d[\d,]*")
IN_BOTH = pytest.mark.parametrize(("language", "size"), [("en-US", WIDE), ("zh-CN", PHONE)], ids=["en", "zh phone"])


def three_compactions(page: Page) -> str:
    """A thread that was compacted by a summary, by hand; by rules, as it grew; and by a summary again."""
    thread = page.thread()
    fill(page, thread, 3)
    page.compact(thread)
    page.do("PATCH", f"/everlong/api/threads/{thread}", {"auto": "off"})
    while len(points(page, thread)) < 2:
        fill(page, thread, 1)
    page.do("PATCH", f"/everlong/api/threads/{thread}", {"auto": "follow"})
    fill(page, thread, 2)
    page.compact(thread)
    return thread


def compactions(page: Page, thread: str) -> list[dict[str, Any]]:
    """The rows of compactions; a summary that is kept for the next one is none."""
    return [row for row in points(page, thread) if not row["waits"]]


def facts(app: RunningApp, thread: str) -> list[tuple[int, ...]]:
    """Messages, tokens before and tokens after of each compaction, as its event tells them."""
    cuts = [event for event in app.state.threads.events(thread) if event.kind is EventKind.CONTEXT_COMPRESSED]
    return [(json.loads(cut.data)["messages"], cut.tokens_before or 0, cut.tokens_after or 0) for cut in cuts]


def numbers(place: Locator) -> tuple[int, ...]:
    """All numbers that are read there."""
    return tuple(int(found.replace(",", "")) for found in FIGURE.findall(place.inner_text()))


def card(view: View, thread: str, order: int) -> Locator:
    """The card of the compaction at that order, in view."""
    view.open(f"#/t/{thread}/{order}")
    found = view.log.locator(f'[data-key="row-{order}"] article')
    expect(found).to_be_visible()
    return found


@in_a_browser
@IN_BOTH
def test_each_fact_of_a_compaction_is_one_number_and_stays_it(language: str, size: tuple[int, int]) -> None:
    with an_app(TALKS, window=WINDOW, built=the_page()) as (app, _), a_view(app, language=language, size=size) as view:
        page = app.page()
        thread = three_compactions(page)
        told, cards = facts(app, thread), compactions(page, thread)
        assert len(cards) == len(told) >= 3
        assert {row["kind"] for row in cards} == {"summary", "cut"}
        for again in range(2):  # once more after ten more messages, in a page that was loaded again
            for row, fact in zip(cards, told, strict=True):
                assert numbers(card(view, thread, row["order"]).locator(".figures")) == fact
            now = compactions(page, thread)
            for row, same in zip(cards, now, strict=False):
                assert row | {"stands": same["stands"]} == same
                assert row["kept"] + row["shortened"] + row["left_out"] == row["messages"]
            context = page.get(f"/everlong/api/threads/{thread}/context")
            assert sum(context["parts"].values()) == context["tokens"]
            assert context["covered"] == [row for row in now if row["stands"]][-1]["messages"]
            if not again:
                for number in range(5):
                    page.say(thread, f"Short {number}")
                view.page.reload()
        view.open("#/usage")
        expect(view.page.get_by_test_id("success-compactions")).to_have_text(str(len(facts(app, thread))))


@in_a_browser
@IN_BOTH
def test_what_is_told_when_it_is_done_is_what_the_card_says(language: str, size: tuple[int, int]) -> None:
    with an_app(TALKS, window=WINDOW, built=the_page()) as (app, _), a_view(app, language=language, size=size) as view:
        page = app.page()
        thread = page.thread()
        fill(page, thread, 3)
        before = page.get(f"/everlong/api/threads/{thread}/context")["tokens"]
        view.thread(thread)
        view.listening()
        events = page.compact(thread)
        status = view.page.get_by_text(view.like("outcome.done")).first
        expect(status).to_be_visible()
        [row] = compactions(page, thread)
        assert numbers(status) == (row["messages"], row["tokens_before"], row["tokens_after"])
        assert row["tokens_before"] == before  # what the meter showed
        assert row["tokens_after"] == page.get(f"/everlong/api/threads/{thread}/context")["tokens"]
        ended = events[-1]
        assert [ended[name] for name in ("messages", "tokens_before", "tokens_after")] == list(numbers(status))


@in_a_browser
@IN_BOTH
def test_a_compaction_by_rules_has_its_card_and_what_it_kept_is_read_there(
    language: str, size: tuple[int, int]
) -> None:
    with an_app(TALKS, window=WINDOW, built=the_page()) as (app, _), a_view(app, language=language, size=size) as view:
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"auto": False})
        thread = page.thread()
        page.say(thread, "The code word is marigold: keep it in mind, it is my task.")
        while not points(page, thread):
            fill(page, thread, 1)
        [row] = points(page, thread)
        assert row["kind"] == "cut"
        found = card(view, thread, row["order"])
        found.get_by_role("button", expanded=False).first.press("Enter")
        expect(found.get_by_text(view.word("cut.about"))).to_be_visible()
        expect(found.locator("li", has_text="The code word is marigold").first).to_be_visible()
        expect(found.locator(".fates")).to_contain_text(view.like("cut.left_out"))
        assert sum(numbers(found.locator(".fates"))) == row["messages"]


@in_a_browser
@IN_BOTH
def test_a_summary_that_failed_is_told_as_failed_with_what_happens_now(language: str, size: tuple[int, int]) -> None:
    well = [False]

    def script(asked: ReceivedRequest) -> Step:
        if is_asked_to_summarise(asked):
            return Answer(text=SUMMARY) if well[0] else Refusal(401, '{"error": {"message": "no such key"}}')
        return TALKS(asked)

    with (
        an_app(script, window=WINDOW, built=the_page()) as (app, _),
        a_view(app, language=language, size=size) as view,
    ):
        page = app.page()
        thread = page.thread()
        fill(page, thread, 3)
        view.thread(thread)
        view.listening()
        events = page.compact(thread)
        assert (events[-1]["state"], events[-1]["reason"], events[-1]["by_rules"]) == ("failed", "key", True)
        status = view.page.get_by_role("status").filter(has_text=view.like("outcome.failed"))
        expect(status).to_contain_text(view.word("outcome.reason.key").replace("{model}", "scripted"))
        expect(status).to_contain_text(view.like("outcome.next_by_rules"))
        [row] = compactions(page, thread)
        fill(page, thread, 2)
        well[0] = True
        status.get_by_role("button", name=view.word("app.retry")).click()
        expect(view.page.get_by_text(view.like("outcome.done")).first).to_be_visible()
        found = card(view, thread, row["order"])
        found.get_by_role("button", expanded=False).first.press("Enter")
        expect(found).to_contain_text(view.word("cut.by_rules"))
        expect(found.get_by_role("listitem").filter(has_text="Question 0").first).to_be_visible()
        newest = card(view, thread, compactions(page, thread)[-1]["order"])
        newest.get_by_role("button", expanded=False).first.press("Enter")
        expect(newest).to_contain_text(WORDS)


@in_a_browser
@IN_BOTH
def test_what_the_model_saw_is_told_in_sentences(language: str, size: tuple[int, int]) -> None:
    log = "\n".join(f"line {number}: the boat passes the pier" for number in range(2_000))
    threads = MemoryThreads()
    with (
        an_app(TALKS, window=16_384, threads=threads, built=the_page()) as (app, _),
        a_view(app, language=language, size=size) as view,
    ):
        page = app.page()
        thread = page.thread()
        threads.append(
            thread, [Message(Role.USER, (Text(f"Read this:\n{log}"),)), Message(Role.ASSISTANT, (Text("Read."),))]
        )
        fill(page, thread, 1)
        [edit] = page.get(f"/everlong/api/threads/{thread}/rows/0/why")["edits"]
        found = card(view, thread, 0)
        found.get_by_role("button", name=view.word("chat.shortened")).click()
        dialog = view.page.get_by_role("dialog")
        expect(dialog).to_contain_text(view.word("why.sent.shortened"))
        expect(dialog).to_contain_text(view.word(f"why.step.{edit['step']}"))
        for inside in (edit["step"], edit["why"]):
            expect(dialog).not_to_contain_text(inside)
        saw, original = (dialog.get_by_role("region", name=view.word(key)) for key in ("why.saw", "why.there"))
        expect(saw).to_contain_text("line 0")
        expect(original).to_contain_text("line 300:")
        expect(saw).not_to_contain_text("line 300:")
        left, right = saw.bounding_box(), original.bounding_box()
        assert left is not None
        assert right is not None
        assert (left["y"] == right["y"]) is (size == WIDE)  # beside each other, on a phone below


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_step_of_a_compaction_has_a_sentence(language: str) -> None:
    names = {path.stem for path in Path(steps.__file__).parent.glob("*.py")} - {"__init__", "custom"}
    words = (PAGE / "src" / "words" / f"{language}.ts").read_text(encoding="utf-8")
    assert {name for name in names if f'"why.step.{name}":' not in words} == set()
