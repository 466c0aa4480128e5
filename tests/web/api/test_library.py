"""The library over the API: folders and pins, threads as files out and in, several at once, the tree of branches."""

import io
import json
import zipfile
from typing import Any
from urllib.parse import quote

import pytest

from everlong.core import Message, Role, Text
from everlong.llm import Answer, in_turn
from everlong.store import MemoryThreads
from everlong.web.state.settings import OWNER
from everlong.web.state.shelf import MOST_FOLDERS
from tests.web.running import Page, an_app
from tests.wire.sessions.samples import CHATBOX, CHATGPT, LIBRECHAT, OPEN_WEBUI

API = "/everlong/api"


def shelf(page: Page, query: str = "") -> Any:
    return page.get(f"{API}/threads?shelf=1{query}")


def titles(threads: list[dict[str, Any]]) -> list[str]:
    return [thread["title"] for thread in threads]


def bring_in(page: Page, data: bytes, name: str = "export.json") -> list[dict[str, Any]]:
    """Import a file; everything that was told."""
    status, body, _ = page.raw("POST", f"{API}/import?name={quote(name)}", data)
    assert status == 200, body
    return [json.loads(line) for line in body.splitlines()]


# Folders


def test_threads_are_kept_in_folders_and_pinned_on_top() -> None:
    with an_app() as (app, _):
        page = app.page()
        boats, piers, loose = (page.thread(title) for title in ("Boats", "Piers", "Loose"))
        assert page.do("POST", f"{API}/folders", {"name": "  Sea \n side "}) == {"name": "Sea side"}
        page.do("POST", f"{API}/folders", {"name": "Air"})
        before = page.get(f"{API}/threads/{boats}")["updated"]
        page.do("PATCH", f"{API}/threads/{boats}", {"folder": "Sea side"})
        page.do("PATCH", f"{API}/threads/{piers}", {"folder": "Sea side", "pinned": True})
        assert page.get(f"{API}/threads/{boats}")["updated"] == before  # its place by age stays

        seen = shelf(page)
        assert [(one["name"], one["count"], one["threads"]) for one in seen["folders"]] == [
            ("Air", 0, []),
            ("Sea side", 2, []),
        ]
        assert (titles(seen["pinned"]), titles(seen["threads"])) == (["Piers"], ["Loose"])
        opened = shelf(page, f"&open={quote('Sea side')}")["folders"][1]["threads"]
        assert sorted(titles(opened)) == ["Boats", "Piers"]
        assert sorted(titles(page.get(f"{API}/threads?folder={quote('Sea side')}")["threads"])) == ["Boats", "Piers"]
        assert titles(page.get(f"{API}/threads?loose=1")["threads"]) == ["Loose"]

        page.do("PATCH", f"{API}/folders", {"name": "Sea side", "new": "Harbour"})
        assert page.get(f"{API}/threads/{boats}")["folder"] == "Harbour"
        assert page.do("DELETE", f"{API}/folders?name=Harbour") == {"threads": 2}
        assert [one["name"] for one in shelf(page)["folders"]] == ["Air"]
        assert page.get(f"{API}/threads/{piers}")["pinned"] is True
        assert len(page.get(f"{API}/threads")["threads"]) == 3
        assert page.get(f"{API}/threads/{loose}")["folder"] == ""


def test_the_last_folder_that_fits_is_made_and_the_next_is_refused() -> None:
    with an_app() as (app, _):
        page = app.page()
        for number in range(MOST_FOLDERS - 1):
            app.state.shelf.add(f"f{number}")
        page.do("POST", f"{API}/folders", {"name": "the last"})
        status, told = page.ask("POST", f"{API}/folders", {"name": "one more"})
        assert (status, told["error"]["kind"]) == (409, "too_many_folders")


REFUSED = {
    "a blank name": ("POST", {"name": " \n "}, 400, "name is missing"),
    "a long name": ("POST", {"name": "x" * 81}, 400, "at most 80 characters"),
    "a name that is taken": ("POST", {"name": "WORK"}, 409, "already"),
    "another's name": ("PATCH", {"name": "Play", "new": "work"}, 409, "already"),
}


@pytest.mark.parametrize(("method", "body", "status", "told"), REFUSED.values(), ids=REFUSED)
def test_folders_that_cannot_be(method: str, body: dict[str, str], status: int, told: str) -> None:
    with an_app() as (app, _):
        page = app.page()
        for name in ("Work", "Play"):
            page.do("POST", f"{API}/folders", {"name": name})
        answered, error = page.ask(method, f"{API}/folders", body)
        assert (answered, told in error["error"]["message"]) == (status, True), error


def test_several_threads_are_moved_archived_and_deleted_together() -> None:
    with an_app() as (app, _):
        page = app.page()
        names = [page.thread(str(number)) for number in range(4)]
        assert page.do("POST", f"{API}/chosen", {"threads": [*names, "gone"], "folder": "All"}) == {"changed": 4}
        assert shelf(page)["folders"] == [{"name": "All", "count": 4, "threads": []}]
        page.do("POST", f"{API}/chosen", {"threads": names[:2], "archived": True})
        page.do("POST", f"{API}/chosen", {"threads": names[2:3], "delete": True})
        assert titles(page.get(f"{API}/threads")["threads"]) == ["3"]
        assert sorted(titles(page.get(f"{API}/threads?archived=1")["threads"])) == ["0", "1"]
        assert page.ask("POST", f"{API}/chosen", {"threads": "all"})[0] == 400
        assert page.ask("POST", f"{API}/chosen", {"threads": ["x"] * 1_001})[0] == 400


# Out and in


def test_a_thread_goes_out_and_comes_back() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread("Sieben Boote 七")
        page.say(thread, "How many boats?")
        page.do("PATCH", f"{API}/threads/{thread}", {"folder": "Sea", "pinned": True})
        rows = page.rows(thread)
        status, data, headers = page.raw("GET", f"{API}/threads/{thread}/export?format=everlong")
        assert status == 200
        assert "attachment; filename=" in headers["content-disposition"]
        assert quote("sieben-boote-七") in headers["content-disposition"]
        page.do("DELETE", f"{API}/threads/{thread}")
        *_, done = bring_in(page, data)
        assert (done["type"], done["new"], done["messages"], done["threads"]) == ("done", 1, 3, [thread])
        assert page.rows(thread) == rows
        assert [page.get(f"{API}/threads/{thread}")[key] for key in ("folder", "pinned")] == ["Sea", True]
        *_, again = bring_in(page, data)
        assert (again["new"], again["known"], again["messages"]) == (0, 1, 0)


def test_all_threads_are_one_archive_that_can_be_taken_in_elsewhere() -> None:
    with an_app() as (app, _), an_app() as (other, _):
        page = app.page()
        for number in range(3):
            page.say(page.thread(f"Talk {number}"), f"number {number}")
        page.do("POST", f"{API}/threads/{page.get(f'{API}/threads')['threads'][0]['id']}/branch", {"order": 1})
        status, data, headers = page.raw("GET", f"{API}/export?format=everlong")
        assert (status, headers["content-type"]) == (200, "application/zip")
        events = bring_in(other.page(), data, "all.zip")
        assert [event["type"] for event in events] == ["progress"] * 4 + ["done"]
        assert events[-1]["new"] == 4
        listed = other.page().get(f"{API}/threads")["threads"]
        assert sum(thread["branch_of"] is not None for thread in listed) == 1

        chosen = [thread["id"] for thread in page.get(f"{API}/threads")["threads"]][:2]
        _, data, _ = page.raw("GET", f"{API}/export?format=markdown&thread={chosen[0]}&thread={chosen[1]}")
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
        assert len(names) == 2
        assert all(name.endswith(".md") for name in names)


FILES = {
    "Chatbox": (CHATBOX, "chatbox", 2, 0),
    "ChatGPT": ([CHATGPT], "chatgpt", 1, 1),
    "Open WebUI": ([OPEN_WEBUI], "open-webui", 1, 1),
    "LibreChat": (LIBRECHAT, "librechat", 1, 1),
    "OpenAI": ([{"role": "user", "content": "hi"}], "openai-chat", 1, 0),
}


@pytest.mark.parametrize(("raw", "fmt", "count", "versions"), FILES.values(), ids=FILES)
def test_exports_of_other_programs_are_taken_in_once(raw: Any, fmt: str, count: int, versions: int) -> None:
    with an_app() as (app, _):
        page = app.page()
        *_, done = bring_in(page, json.dumps(raw).encode())
        assert (done["type"], done["formats"], done["new"], done["versions"]) == ("done", [fmt], count, versions)
        assert done["messages"] > 0
        first = page.rows(done["threads"][0])
        assert first[0]["text"]
        assert sum(row["versions"] is not None for row in first) == versions
        *_, again = bring_in(page, json.dumps(raw).encode())
        assert (again["new"], again["grown"], again["known"]) == (0, 0, count + versions)


def test_an_imported_thread_is_talked_on_with_the_model_here() -> None:
    with an_app() as (app, server):
        page = app.page()
        assert page.get(f"{API}/state")["default_model"]
        *_, done = bring_in(page, json.dumps([CHATGPT]).encode())
        page.say(done["threads"][0], "And tomorrow?")
        assert b"How many boats?" in server.requests[-1].body
        assert page.rows(done["threads"][0])[-1]["role"] == "assistant"


def test_a_file_of_a_hostile_kind_is_refused_in_one_line_and_leads_nowhere() -> None:
    store = MemoryThreads()
    store.create("victim", owner="gateway")
    store.append("victim", [Message(Role.USER, (Text("mine"),))])
    with an_app(threads=store) as (app, _):
        page = app.page()
        for data in (b"", b"\x00\xff", b"<html>", b'{"a": 1}', b"[" * 100_000, b"PK\x03\x04rubbish"):
            *_, failed = bring_in(page, data)
            assert failed["type"] == "failed"
            assert "\n" not in failed["message"]
            assert "Traceback" not in failed["message"]
        names = ("victim", "../../etc/passwd", "a/b", "x" * 100_000, "\x00")
        export = [CHATGPT | {"id": name, "conversation_id": name} for name in names]
        *_, done = bring_in(page, json.dumps(export).encode())
        assert done["new"] == len(names)
        for thread in done["threads"]:
            assert page.rows(thread), thread
        assert [row.entry for row in store.read("victim")] == [Message(Role.USER, (Text("mine"),))]
        assert not {"../../etc/passwd", "a/b"} & {thread.id for thread in store.threads(owner=OWNER)}


def test_a_body_that_is_too_large_and_a_page_of_somebody_else() -> None:
    with an_app() as (app, _):
        page = app.page()
        status, _, _ = page.raw("POST", f"{API}/import", b"{}", {**page.headers, "content-length": str(10**10)})
        assert status == 413
        status, _, _ = page.raw("POST", f"{API}/import", b"{}", {})
        assert status == 403
        assert page.ask("GET", f"{API}/export?format=exe")[0] == 400
        assert page.ask("GET", f"{API}/threads/nobody/export")[0] == 404


def test_the_tree_of_branches() -> None:
    with an_app() as (app, _):
        page = app.page()
        root = page.thread("Boats")
        page.say(root, "one")
        page.say(root, "two")
        first = page.do("POST", f"{API}/threads/{root}/branch", {"order": 2, "title": "First"})["id"]
        page.say(first, "another two")
        second = page.do("POST", f"{API}/threads/{first}/branch", {"order": 4, "title": "Second"})["id"]
        page.thread("Somebody else")
        trees = [page.get(f"{API}/threads/{thread}/family") for thread in (root, first, second)]
        assert trees[0] == trees[1] == trees[2]
        told = [(node["id"], node["parent"], node["order"], node["words"]) for node in trees[0]["nodes"]]
        assert told == [(root, None, 0, "one"), (first, root, 2, "another two"), (second, first, 4, "")]
        assert [node["after"] for node in trees[0]["nodes"]] == ["", "one", "another two"]


def test_a_search_by_title_in_messages_and_in_the_archive() -> None:
    with an_app() as (app, _):
        page = app.page()
        page.say(page.thread("Marigold"), "hello")
        old = page.thread("Old")
        page.say(old, f"{'so many words before it ' * 20} the marigold is yellow")
        page.do("PATCH", f"{API}/threads/{old}", {"archived": True})
        found = page.get(f"{API}/threads?q=marigold")
        assert (titles(found["threads"]), found["hits"][0]["thread"]) == (["Marigold"], old)
        assert "marigold is yellow" in found["hits"][0]["text"]
        assert page.get(f"{API}/threads?q=marigold&in=titles")["hits"] == []
        assert page.get(f"{API}/threads?q=marigold&in=messages")["threads"] == []
        assert page.get(f"{API}/threads?q=marigold&archived=0")["hits"] == []
        assert page.get(f"{API}/threads?q=marigold&archived=1")["threads"] == []


def test_a_conversation_with_versions_is_exported_and_comes_back_with_all_of_them() -> None:
    with an_app(in_turn([Answer(text="first"), Answer(text="second")])) as (app, _):
        page = app.page()
        thread = page.thread()
        page.say(thread, "tell me")
        again = page.do("POST", f"/everlong/api/threads/{thread}/regenerate")["id"]
        with page.listen(again) as stream:
            stream.wait(lambda event: event["type"] == "running" and not event["running"])
        status, archive, _ = page.raw("GET", f"/everlong/api/threads/{again}/export?format=everlong")
        assert status == 200
    with an_app() as (app, _):
        page = app.page()
        status, _, _ = page.raw("POST", "/everlong/api/import?name=talk.zip", archive)
        assert status == 200
        [listed] = page.get("/everlong/api/threads")["threads"]
        [marked] = [row for row in page.rows(listed["id"]) if row["versions"]]
        texts = {page.rows(name)[-1]["text"] for name in marked["versions"]["threads"]}
        assert texts == {"first", "second"}
