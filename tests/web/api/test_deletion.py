"""Messages deleted, brought back and erased over the API: afterwards no answer of it has a word of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everlong.core import CallId, Message, Role, Text, ToolCall, ToolResult
from everlong.engine import Threads
from everlong.llm import Answer, in_turn
from everlong.store import JsonlThreads, MemoryThreads
from everlong.store.sqlite import SqliteThreads
from tests.core.build import assistant, calls, result, user
from tests.web.running import Page, an_app

API = "/everlong/api/threads"
SECRET = "zebrafish"
PLACES: dict[str, Callable[[Path], Threads]] = {
    "memory": lambda _: MemoryThreads(),
    "sqlite": lambda folder: SqliteThreads(folder / "threads.db"),
    "jsonl": lambda folder: JsonlThreads(folder / "sessions"),
}


def everything(page: Page, thread: str, refs: list[str]) -> str:
    """All that the API tells of a thread."""
    rows = page.rows(thread)
    told: list[Any] = [rows, page.get("/everlong/api/threads"), page.get(f"/everlong/api/threads?q={SECRET}")]
    told += [page.get(f"{API}/{thread}{path}") for path in ("", "/context", "/pins", "/changes")]
    told.append(page.ask("POST", f"{API}/{thread}/recall", {"words": SECRET}))
    told += [page.ask("GET", f"{API}/{thread}/rows/{row['order']}/why") for row in rows]
    told += [page.raw("GET", f"{API}/{thread}/original/{ref}")[1].decode("utf-8", "replace") for ref in refs]
    return json.dumps(told, ensure_ascii=False)


@pytest.mark.parametrize("erases", [False, True], ids=["deleted", "erased"])
@pytest.mark.parametrize("place", PLACES)
def test_no_answer_of_the_api_knows_what_is_gone(place: str, erases: bool, tmp_path: Path) -> None:
    answers = [Answer(text=f"A {SECRET} is a fish."), Answer(text="Fine."), Answer(text="Later.")]
    with an_app(in_turn(answers), threads=PLACES[place](tmp_path)) as (app, server):
        page = app.page()
        thread = page.thread(f"About my {SECRET}")
        page.say(thread, f"My {SECRET} is called Quentin. " + "It swims in the tank. " * 200)
        page.say(thread, "And now something else.")
        orders = [row["order"] for row in page.rows(thread) if SECRET in row["text"]]
        assert len(orders) == 2
        page.do("POST", f"{API}/{thread}/pins", {"order": orders[0]})
        before = page.get(f"{API}/{thread}/context")
        refs = [row["ref"] for row in page.rows(thread) if row["ref"]]
        assert SECRET in everything(page, thread, refs)
        for order in orders:
            gone = page.do("DELETE", f"{API}/{thread}/rows/{order}" + ("?erase=1" if erases else ""))
            assert gone["orders"][0] == order
        assert SECRET not in everything(page, thread, refs)
        kept = [told.data for told in app.state.hub.channel(thread).kept]
        assert not erases or SECRET not in "".join(kept), "what pages that come back are told"
        assert page.get(f"{API}/{thread}/context")["tokens"] < before["tokens"]
        assert page.get(f"{API}/{thread}")["title"] == "And now something else."
        page.say(thread, "Go on")
        sent = server.requests[-1].body.decode()
        assert SECRET not in sent
        assert "something else" in sent
        if erases and place != "memory":
            files = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]
            assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []


def test_a_deleted_message_comes_back_and_pages_are_told() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        page.say(thread, "keep this")
        page.say(thread, "not this")
        before = page.rows(thread)
        order = before[-1]["order"]
        with page.listen(thread) as stream:
            assert page.do("DELETE", f"{API}/{thread}/rows/{order}") == {"orders": [order]}
            removed = stream.until("removed")[-1]
            assert (removed["orders"], removed["erased"]) == ([order], False)
            assert [row["kind"] for row in page.rows(thread)] == ["message"] * (len(before) - 1) + ["gone", "gone"]
            assert page.do("POST", f"{API}/{thread}/rows/{order}/restore") == {"orders": [order]}
            assert stream.until("restored")[-1]["orders"] == [order]
        rows = page.rows(thread)
        assert rows[: len(before)] == before
        assert [row["kind"] for row in rows[len(before) :]] == ["gone", "gone"]
        page.do("DELETE", f"{API}/{thread}/rows/{order}?erase=1")
        status, told = page.ask("POST", f"{API}/{thread}/rows/{order}/restore", {})
        assert (status, told["error"]["kind"]) == (409, "not_deleted")


def test_an_answer_goes_with_the_results_of_its_calls() -> None:
    with an_app() as (app, server):
        page = app.page()
        thread = page.thread()
        said = [user("look"), calls("1", "2"), result("1", "one"), result("2", "two"), assistant("Seen.")]
        app.state.threads.append(thread, said)
        assert page.do("DELETE", f"{API}/{thread}/rows/2") == {"orders": [1, 2, 3]}
        page.say(thread, "and?")
        roles = [message["role"] for message in json.loads(server.requests[-1].body)["messages"]]
        assert roles == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("DELETE", "/rows/99", 404, "no_row"),
        ("DELETE", "/rows/0", 404, "no_message"),
        ("DELETE", "/rows/0?erase=1", 404, "no_message"),
        ("DELETE", "/rows/1?erase=yes", 400, "input"),
        ("DELETE", "/rows/99?erase=1", 404, "no_row"),
        ("POST", "/rows/1/restore", 409, "not_deleted"),
        ("POST", "/rows/99/restore", 409, "not_deleted"),
    ],
)
def test_what_is_no_message_is_refused_in_one_line(method: str, path: str, status: int, kind: str) -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        app.state.threads.append(thread, [Message(Role.SYSTEM, (Text("Be kind."),)), user("hello")])
        got, told = page.ask(method, f"{API}/{thread}{path}", {})
        assert (got, told["error"]["kind"]) == (status, kind), told
        assert "\n" not in told["error"]["message"]
        assert len(page.rows(thread)) == 2
        assert page.ask(method, f"{API}/nowhere{path}", {})[0] == 404


def test_while_an_answer_is_given_it_is_refused() -> None:
    script = in_turn([Answer(text=" ".join(f"word{at}" for at in range(4_000)), between=0.002)])
    with an_app(script) as (app, _):
        page = app.page()
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"{API}/{thread}/turn", {"text": "talk"})
            stream.until("said")
            order = page.rows(thread)[-1]["order"]
            for path in (f"rows/{order}", f"rows/{order}?erase=1"):
                status, told = page.ask("DELETE", f"{API}/{thread}/{path}", {})
                assert (status, told["error"]["kind"]) == (409, "answering")
            page.do("POST", f"{API}/{thread}/stop")
            stream.until("ended")
        stopped = page.rows(thread)[-1]
        assert stopped["ending"] == "stopped"
        page.do("DELETE", f"{API}/{thread}/rows/{stopped['order']}")
        assert "word3" not in json.dumps(page.rows(thread))


def test_a_version_keeps_what_is_deleted_here_and_loses_what_is_erased() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        page.say(thread, f"a {SECRET}")
        page.say(thread, "more")
        order = next(row["order"] for row in page.rows(thread) if row["role"] == "user")
        branch = page.do("POST", f"{API}/{thread}/branch", {"order": order + 2})["id"]
        page.do("DELETE", f"{API}/{thread}/rows/{order}")
        assert SECRET in json.dumps(page.rows(branch))
        page.do("DELETE", f"{API}/{thread}/rows/{order}?erase=1")
        assert page.rows(branch)[order]["kind"] == "gone"


def test_another_site_cannot_delete() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        page.say(thread, "hello")
        other = Page(page.port, {"origin": "https://evil.example"})
        order = page.rows(thread)[-1]["order"]
        for path in (f"rows/{order}", f"rows/{order}?erase=1"):
            assert other.ask("DELETE", f"{API}/{thread}/{path}", {})[0] == 403
        assert page.rows(thread)[-1]["kind"] == "message"


def test_calls_that_were_never_answered_go_alone() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        call = Message(Role.ASSISTANT, (ToolCall(CallId("1"), "read_file", "{}"),))
        late = Message(Role.TOOL, (ToolResult(CallId("9"), (Text("nobody asked"),)),))
        app.state.threads.append(thread, [user("look"), call, late])
        assert page.do("DELETE", f"{API}/{thread}/rows/1") == {"orders": [1]}
        assert page.do("DELETE", f"{API}/{thread}/rows/2") == {"orders": [2]}
