"""Messages deleted, brought back and erased by a person, in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from everlong.llm import Answer, in_turn
from everlong.store.sqlite import SqliteThreads
from tests.core.build import assistant, calls, result, user
from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import Page, an_app

AXE = Path(__file__).parents[2] / "src/everlong/web/page/node_modules/axe-core/axe.min.js"


def row(view: View, text: str) -> Locator:
    return view.log.get_by_role("article").filter(has_text=text)


def choose(view: View, text: str, key: str) -> None:
    article = row(view, text)
    article.hover()
    view.choose(article.get_by_role("button", name=view.word("chat.menu")), key)


def searched(view: View, page: Page, words: str) -> list[str]:
    return [hit["text"] for hit in page.get(f"/everlong/api/threads?q={words}")["hits"]]


@pytest.mark.parametrize(
    ("size", "language", "dark"), [(WIDE, "en-US", False), (PHONE, "zh-CN", True)], ids=["desk", "phone"]
)
@in_a_browser
def test_a_message_is_deleted_comes_back_and_is_erased(
    size: tuple[int, int], language: str, dark: bool, tmp_path: Path
) -> None:
    answers = [Answer(text="Quentin is a fine name."), Answer(text="Blue."), Answer(text="Gladly.")]
    store = SqliteThreads(tmp_path / "threads.db")
    with (
        an_app(in_turn(answers), built=the_page(), threads=store) as (app, server),
        a_view(app, size=size, language=language, dark=dark) as view,
    ):
        page = app.page()
        thread = page.thread()
        view.open(f"#/t/{thread}")
        view.say("My zebrafish is called Quentin. " + "It swims in its tank all day long. " * 20)
        view.answered()
        view.say("What colour is the sky?")
        expect(row(view, "Blue.")).to_be_visible()
        view.answered()
        before = page.get(f"/everlong/api/threads/{thread}/context")["tokens"]

        choose(view, "zebrafish", "deletion.delete")
        notice = view.log.get_by_role("status").filter(has_text=view.word("deletion.deleted.one"))
        expect(notice).to_be_visible()
        expect(row(view, "zebrafish")).to_have_count(0)
        assert searched(view, page, "zebrafish") == []
        without = page.get(f"/everlong/api/threads/{thread}/context")["tokens"]
        assert without < before
        notice.get_by_role("button", name=view.word("deletion.undo"), exact=True).click()
        expect(row(view, "zebrafish")).to_be_visible()
        expect(notice).to_have_count(0)
        assert page.get(f"/everlong/api/threads/{thread}/context")["tokens"] > without

        choose(view, "zebrafish", "deletion.erase")
        asked = view.page.get_by_role("dialog", name=view.word("deletion.title"))
        expect(asked).to_contain_text(view.word("deletion.from"))
        asked.get_by_role("button", name=view.word("app.cancel")).click()
        expect(row(view, "zebrafish")).to_be_visible()
        choose(view, "zebrafish", "deletion.erase")
        view.button("deletion.confirm").click()
        expect(row(view, "zebrafish")).to_have_count(0)
        expect(view.page.get_by_text(view.word("deletion.erased"), exact=True)).to_be_visible()
        assert [path.name for path in tmp_path.iterdir() if b"zebrafish" in path.read_bytes()] == []

        view.page.reload()
        expect(row(view, "Quentin is a fine name.")).to_be_visible()
        view.say("Say something.")
        expect(row(view, "Gladly.")).to_be_visible()
        assert b"zebrafish" not in server.requests[-1].body
        assert "zebrafish" not in view.page.content()


@in_a_browser
def test_an_answer_with_tools_goes_with_their_results_and_other_pages_follow() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view, a_view(app) as other:
        page = app.page()
        thread = page.thread()
        said = [user("look"), calls("1", "2"), result("1", "the walrus file"), result("2", "two"), assistant("Seen.")]
        app.state.threads.append(thread, said)
        for one in (view, other):
            one.thread(thread)
            expect(row(one, "read_file").first).to_be_visible()
        choose(view, "read_file", "deletion.delete")
        for one in (view, other):
            expect(row(one, "read_file")).to_have_count(0)
            expect(row(one, "Seen.")).to_be_visible()
        expect(view.log.get_by_role("status")).to_have_text(re.compile(re.escape(view.word("deletion.deleted.one"))))
        expect(other.log.get_by_role("status")).to_have_count(0)
        view.button("deletion.undo").click()
        for one in (view, other):
            expect(row(one, "read_file").first).to_be_visible()
        choose(view, "read_file", "deletion.delete")
        view.button("deletion.dismiss").click()
        expect(view.log.get_by_role("status")).to_have_count(0)
        view.page.reload()
        expect(row(view, "Seen.")).to_be_visible()
        expect(row(view, "read_file")).to_have_count(0)


@in_a_browser
def test_a_stopped_answer_can_be_deleted_but_not_while_it_comes() -> None:
    words = " ".join(f"word{at}" for at in range(150))  # few enough that the question stays in view
    script = in_turn([Answer(text="Hm."), Answer(text=words, between=0.2)])
    with an_app(script, built=the_page()) as (app, _), a_view(app) as view:
        view.open(f"#/t/{app.page().thread()}")
        view.say("first")
        view.answered()
        view.say("talk")
        expect(view.log.get_by_text("word3 ")).to_be_visible()
        first = row(view, "first")
        first.hover()
        first.get_by_role("button", name=view.word("chat.menu")).click()
        item = view.page.get_by_role("menuitem", name=view.word("deletion.delete"), exact=True)
        expect(item).to_be_disabled()
        view.page.keyboard.press("Escape")
        view.button("composer.stop").click()
        view.answered()
        choose(view, "word3 ", "deletion.delete")
        expect(row(view, "word3 ")).to_have_count(0)


def problems(view: View, place: str) -> list[tuple[str, list[str]]]:
    """What axe finds there."""
    found = view.page.evaluate("(place) => axe.run(place).then((told) => told.violations)", place)
    return [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found]


@pytest.mark.parametrize("dark", [False, True])
@in_a_browser
def test_nothing_of_it_is_out_of_reach(dark: bool) -> None:
    with an_app(built=the_page()) as (app, _), a_view(app, dark=dark) as view:
        view.open(f"#/t/{app.page().thread()}")
        view.say("hello")
        view.answered()
        menu = row(view, "hello").first.get_by_role("button", name=view.word("chat.menu"))
        menu.focus()
        view.page.keyboard.press("Enter")
        item = view.page.get_by_role("menuitem", name=view.word("deletion.delete"), exact=True)
        item.focus()
        view.page.keyboard.press("Enter")
        expect(view.button("deletion.undo")).to_be_visible()
        view.page.evaluate(AXE.read_text(encoding="utf-8"))
        assert problems(view, "main [role=log]") == []
        view.button("deletion.erase.short").click()
        expect(view.button("deletion.confirm")).to_be_visible()
        assert problems(view, "dialog[open]") == []
