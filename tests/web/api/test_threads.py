"""Threads over the API: listed, found, renamed, archived, branched, removed; their rows, pins and originals."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from everlong.core import CallId, Image, Message, Opened, Role, Row, Text, ToolCall, ToolResult
from everlong.llm import Answer
from everlong.store import MemoryThreads
from everlong.web.state.settings import OWNER
from tests.web.running import an_app


def said(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


def talk(pairs: int) -> list[Message]:
    """So many questions with answers."""
    return [
        message
        for number in range(pairs)
        for message in (
            said(Role.USER, f"What is at pier {number}?"),
            said(Role.ASSISTANT, f"At pier {number} lies the boat number {number * 7}, since day {number % 30}."),
        )
    ]


class Counted(MemoryThreads):
    """A store that counts the rows it hands out."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.rows_read = 0

    def read(self, thread: str, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        for row in super().read(thread, start, stop):
            self.rows_read += 1
            yield row

    def open(self, thread: str, before: int | None = None) -> Opened:
        found = super().open(thread, before)
        self.rows_read += len(found.head) + len(found.rows)
        return found


def test_threads_are_listed_the_latest_first_and_archived_apart() -> None:
    with an_app() as (app, _):
        page = app.page()
        one, two, three = (page.thread(title) for title in ("one", "two", "three"))
        page.do("PATCH", f"/everlong/api/threads/{two}", {"archived": True})
        page.do("PATCH", f"/everlong/api/threads/{one}", {"title": " First "})
        assert [thread["title"] for thread in page.get("/everlong/api/threads")["threads"]] == ["First", "three"]
        assert [thread["id"] for thread in page.get("/everlong/api/threads?archived=1")["threads"]] == [two]
        assert [thread["id"] for thread in page.get("/everlong/api/threads?limit=1&skip=1")["threads"]] == [three]


def test_threads_of_sub_agents_are_not_listed() -> None:
    with an_app() as (app, _):
        app.state.threads.create("below", owner=OWNER, title="errand", metadata='{"parent": {"thread": "x"}}')
        page = app.page()
        thread = page.thread()
        assert [one["id"] for one in page.get("/everlong/api/threads")["threads"]] == [thread]
        assert page.get("/everlong/api/usage")["success"]["threads"] == 1


def test_words_find_titles_and_messages_in_both_languages() -> None:
    with an_app() as (app, _):
        page = app.page()
        harbour = page.thread("Harbour plans")
        app.state.threads.append(harbour, [said(Role.USER, "请检查登录页面的缓存"), said(Role.ASSISTANT, "已检查。")])
        assert [one["id"] for one in page.get("/everlong/api/threads?q=harbour")["threads"]] == [harbour]
        hits = page.get("/everlong/api/threads?q=%E7%99%BB%E5%BD%95%E7%BC%93%E5%AD%98")["hits"]
        assert [(hit["thread"], hit["order"], hit["title"]) for hit in hits] == [(harbour, 0, "Harbour plans")]


def test_a_branch_has_the_rows_before_and_its_own_life() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread("Piers")
        app.state.threads.append(thread, talk(4))
        branch = page.do("POST", f"/everlong/api/threads/{thread}/branch", {"order": 4})
        assert (branch["branch_of"], branch["messages"], branch["model"]) == (thread, 4, "main/scripted")
        page.say(branch["id"], "Another question")
        assert [row["text"] for row in page.rows(branch["id"])][:4] == [row["text"] for row in page.rows(thread)][:4]
        assert len(page.rows(thread)) == 8
        for order in (99, -1, "x", None):
            assert page.ask("POST", f"/everlong/api/threads/{thread}/branch", {"order": order})[0] == 400


def test_a_removed_thread_is_gone() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        page.say(thread, "hello")
        page.do("DELETE", f"/everlong/api/threads/{thread}")
        assert page.ask("GET", f"/everlong/api/threads/{thread}/rows")[0] == 404
        assert page.get("/everlong/api/threads")["threads"] == []


def test_threads_too_old_to_be_kept_are_removed_when_that_is_wanted() -> None:
    then = datetime.now(UTC) - timedelta(days=40)
    times = [then]
    threads = MemoryThreads(clock=lambda: times[0])
    threads.create("old", owner=OWNER)
    threads.create("of-another", owner="client")
    times[0] = datetime.now(UTC)
    threads.create("new", owner=OWNER)
    with an_app(threads=threads) as (app, _):
        page = app.page()
        assert len(page.get("/everlong/api/threads")["threads"]) == 2
        page.do("PUT", "/everlong/api/settings", {"retention_days": 30})
        assert [one["id"] for one in page.get("/everlong/api/threads")["threads"]] == ["new"]
        assert threads.thread("of-another").id == "of-another"


def test_rows_come_in_pages_from_the_end() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        app.state.threads.append(thread, talk(5))
        newest = page.get(f"/everlong/api/threads/{thread}/rows?limit=4")
        assert ([row["order"] for row in newest["rows"]], newest["first"], newest["total"]) == ([6, 7, 8, 9], False, 10)
        older = page.get(f"/everlong/api/threads/{thread}/rows?limit=6&before=6")
        assert ([row["order"] for row in older["rows"]], older["first"]) == ([0, 1, 2, 3, 4, 5], True)
        assert page.get(f"/everlong/api/threads/{thread}/rows?before=0")["rows"] == []


def test_a_thread_of_5000_messages_is_read_a_page_at_a_time() -> None:
    threads = Counted()
    with an_app(threads=threads) as (app, _):
        page = app.page()
        thread = page.thread()
        threads.append(thread, talk(2_500))
        page.say(thread, "What is at pier 3?")
        assert page.rows(thread)[-1]["role"] == "assistant"
        threads.rows_read = 0
        rows = page.get(f"/everlong/api/threads/{thread}/rows?limit=100")["rows"]
        assert len(rows) == 100
        assert threads.rows_read == 100
        threads.rows_read = 0
        context = page.get(f"/everlong/api/threads/{thread}/context")
        assert context["covered"] > 4_000
        assert threads.rows_read <= 1_000


def test_long_texts_are_cut_in_rows_and_whole_behind_their_reference() -> None:
    long, log = "word " * 5_000, "line\n" * 6_000
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        call = ToolCall(CallId("c1"), "read_file", '{"path": "log"}')
        app.state.threads.append(
            thread,
            [
                said(Role.USER, long),
                Message(Role.ASSISTANT, (call,)),
                Message(Role.TOOL, (ToolResult(CallId("c1"), (Text(log),), name="read_file"),)),
            ],
        )
        user, assistant, tool = page.rows(thread)
        assert (user["cut"], len(user["text"])) == (True, 20_000)
        assert assistant["calls"] == [{"id": "c1", "name": "read_file", "arguments": '{"path": "log"}'}]
        result = tool["results"][0]
        assert (result["cut"], len(result["text"]), result["name"]) == (True, 20_000, "read_file")
        for ref, whole in ((user["ref"], long), (result["ref"], log)):
            status, body, headers = page.raw("GET", f"/everlong/api/threads/{thread}/original/{ref}")
            assert (status, body.decode()) == (200, whole)
            assert headers["content-type"] == "text/plain; charset=utf-8"
        assert page.ask("GET", f"/everlong/api/threads/{thread}/original/0000")[0] == 404


def test_pictures_that_could_run_are_not_shown() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        pictures = (
            Image(data="PHN2Zz4=", media_type="image/svg+xml"),
            Image(url="javascript:alert(1)"),
            Image(url="data:text/html,<script>"),
            Image(url="https://pictures.example/a.png"),
            Image(data="iVBO", media_type="image/png"),
        )
        app.state.threads.append(thread, [Message(Role.USER, pictures)])
        assert page.rows(thread)[0]["images"] == ["https://pictures.example/a.png", "data:image/png;base64,iVBO"]


def test_halves_of_characters_do_not_break_a_page() -> None:
    with an_app(lambda _: Answer(text="fine")) as (app, _):
        page = app.page()
        thread = page.thread()
        app.state.threads.append(thread, [said(Role.USER, "half \ud83d of it"), said(Role.ASSISTANT, "\u2028 yes")])
        assert page.rows(thread)[1]["text"] == "\u2028 yes"
        page.say(thread, "and now?")


def test_pins_are_made_told_and_let_go() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        app.state.threads.append(thread, talk(2))
        one = page.do("POST", f"/everlong/api/threads/{thread}/pins", {"order": 2})["id"]
        two = page.do("POST", f"/everlong/api/threads/{thread}/pins", {"text": "Always answer in French"})["id"]
        assert page.get(f"/everlong/api/threads/{thread}/pins") == [
            {"id": one, "order": 2, "text": ""},
            {"id": two, "order": None, "text": "Always answer in French"},
        ]
        assert [row["pinned"] for row in page.rows(thread)] == [False, False, True, False]
        page.do("DELETE", f"/everlong/api/threads/{thread}/pins/{one}")
        assert len(page.get(f"/everlong/api/threads/{thread}/pins")) == 1
        for wrong in ({}, {"order": "2"}, {"order": 1, "text": "both"}):
            assert page.ask("POST", f"/everlong/api/threads/{thread}/pins", wrong)[0] == 400
        assert page.ask("POST", f"/everlong/api/threads/{thread}/pins", {"order": 99})[0] == 404


def test_what_was_said_is_recalled_by_words() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        app.state.threads.append(thread, talk(20))
        found = page.do("POST", f"/everlong/api/threads/{thread}/recall", {"words": "boat number 77"})
        assert found["hits"][0]["order"] == 23
        assert found["hits"][0]["role"] == "assistant"
        assert page.ask("POST", f"/everlong/api/threads/{thread}/recall", {"words": " "})[0] == 400


def test_a_branch_before_the_first_question_has_rows_and_a_context() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        page.say(thread, "hello")
        branch = page.do("POST", f"/everlong/api/threads/{thread}/branch", {"order": 1})["id"]
        assert [row["role"] for row in page.rows(branch)] == ["system"]
        assert page.get(f"/everlong/api/threads/{branch}/context")["tokens"] > 0
        empty = page.do("POST", f"/everlong/api/threads/{thread}/branch", {"order": 0})["id"]
        assert page.rows(empty) == []
        for name in (branch, empty):
            page.say(name, "hello again")
            assert page.rows(name)[-1]["text"] == "hello again"


def test_a_thread_is_removed_while_its_turn_runs() -> None:
    with an_app(lambda _: Answer(text="word " * 4_000, between=0.05)) as (app, _):
        page = app.page()
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "talk"})
            stream.until("said")
            page.do("DELETE", f"/everlong/api/threads/{thread}")
            assert not [event for event in stream.until("ended") if event["type"] == "failed"]
        assert page.ask("GET", f"/everlong/api/threads/{thread}")[0] == 404
        assert page.get("/everlong/api/threads")["threads"] == []
