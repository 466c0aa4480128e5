"""A tool that acts asks a person first; no answer is no."""

import json
from pathlib import Path
from typing import Any

import pytest

from everlong.agent import AgentConfig
from everlong.llm import Answer, in_turn
from tests.web.running import Page, an_app

ANSWERS = {"once": ({"answer": "once"}, False), "no": ({"answer": "no"}, True)}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_tool_that_acts_asks_first(name: str, tmp_path: Path) -> None:
    said, refused = ANSWERS[name]
    script = in_turn([Answer(calls=(("shell", '{"command": "echo from the shell"}'),)), Answer(text="ok")])
    with an_app(script, folder=tmp_path) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "use the shell"})
            asked = next(event for event in stream.until("ask") if event["type"] == "ask")
            assert asked["tool"] == "shell"
            assert "echo from the shell" in asked["details"]
            with page.listen(thread) as late:
                assert late.until("ask")[-1]["id"] == asked["id"]
            page.do("POST", f"/everlong/api/threads/{thread}/answer", {"id": asked["id"], **said})
            events = stream.until("ended")
            assert (
                page.ask("POST", f"/everlong/api/threads/{thread}/answer", {"id": asked["id"], "answer": "once"})[0]
                == 404
            )
        result = next(event for event in events if event["type"] == "result")
        assert result["failed"] is refused
        assert ("from the shell" in result["text"]) is not refused
        tool = next(row for row in page.rows(thread) if row["role"] == "tool")
        assert tool["results"][0]["failed"] is refused


def test_no_answer_in_time_is_no(tmp_path: Path) -> None:
    script = in_turn([Answer(calls=(("shell", '{"command": "echo hi"}'),)), Answer(text="ok")])
    with an_app(script, folder=tmp_path, answer_seconds=0.05) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        events = page.say(page.thread(), "use the shell")
        assert next(event for event in events if event["type"] == "result")["failed"]


def test_for_this_thread_is_asked_once_in_a_thread(tmp_path: Path) -> None:
    call = Answer(calls=(("shell", '{"command": "echo hi"}'),))
    with an_app(in_turn([call, call, Answer(text="ok")]), folder=tmp_path) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "twice"})
            asked = stream.until("ask")[-1]
            page.do("POST", f"/everlong/api/threads/{thread}/answer", {"id": asked["id"], "answer": "thread"})
            events = stream.until("ended")
        assert sum(event["type"] == "ask" for event in events) == 1
        assert [event["failed"] for event in events if event["type"] == "result"] == [False, False]


def call(name: str, **arguments: Any) -> Answer:
    return Answer(calls=((name, json.dumps(arguments)),))


def answered(page: Page, thread: str, *answers: str, say: str = "go") -> tuple[list[Any], list[Any]]:
    """Say something and give these answers to the questions; all questions and all events."""
    asked: list[Any] = []
    known: set[str] = set()
    with page.listen(thread) as stream:
        page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": say})
        for answer in answers:
            asked.append(stream.wait(lambda event: event["type"] == "ask" and event["id"] not in known)[-1])
            known.add(asked[-1]["id"])
            page.do("POST", f"/everlong/api/threads/{thread}/answer", {"id": asked[-1]["id"], "answer": answer})
        events = stream.until("ended")
    assert [event["id"] for event in events if event["type"] == "ask"] == [one["id"] for one in asked]
    return asked, events


def test_a_file_is_asked_for_with_its_diff_and_can_be_restored(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("first\n")
    script = in_turn([call("write_file", path="notes.txt", content="second\n"), Answer(text="ok")] * 2)
    with an_app(script, folder=tmp_path) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        thread = page.thread()
        asked, _ = answered(page, thread, "no")
        assert (asked[0]["kind"], asked[0]["subject"]) == ("file", "notes.txt")
        assert asked[0]["details"] == "@@ -1 +1 @@\n-first\n+second"
        assert file.read_text() == "first\n"
        assert page.get(f"/everlong/api/threads/{thread}/changes") == []
        answered(page, thread, "once")
        assert file.read_text() == "second\n"
        (change,) = page.get(f"/everlong/api/threads/{thread}/changes")
        restore = f"/everlong/api/threads/{thread}/changes/{change['id']}/restore"
        file.write_text("a person's own\n")
        status, told = page.ask("POST", restore, {})
        assert (status, told["error"]["kind"]) == (409, "changed")
        assert file.read_text() == "a person's own\n"
        assert page.do("POST", restore, {"force": True}) == {"path": "notes.txt", "removed": False}
        assert file.read_text() == "first\n"
        assert page.ask("POST", restore, {})[0] == 404
        assert page.get(f"/everlong/api/threads/{page.thread()}/changes") == []


def test_a_command_that_ends_out_of_sight_is_refused_and_not_cut(tmp_path: Path) -> None:
    command = "ls" + " " * 21_000 + "; touch made.txt"
    with an_app(in_turn([call("shell", command=command), Answer(text="ok")]), folder=tmp_path) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        events = page.say(page.thread(), "list it")
        assert "ask" not in [event["type"] for event in events]
        refused = next(event for event in events if event["type"] == "refused")
        assert refused["reason"].startswith("shell was not allowed: it is too long to show")
    assert not (tmp_path / "made.txt").exists()


def test_what_is_hidden_in_a_command_is_written_out(tmp_path: Path) -> None:
    command = "echo a" + " " * 300 + "; echo \u202eb\x1b[2K"
    with an_app(in_turn([call("shell", command=command), Answer(text="ok")]), folder=tmp_path) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        asked, _ = answered(page, page.thread(), "no")
        assert asked[0]["details"] == "echo a⟨300 spaces⟩; echo ⟨U+202E⟩b⟨U+001B⟩[2K"
        assert asked[0]["answers"] == ["no", "once", "thread"]  # no pattern can say it


def test_always_is_written_to_the_users_file_and_counts_in_new_threads(tmp_path: Path) -> None:
    work, own = tmp_path / "work", tmp_path / "own" / "permissions.toml"
    work.mkdir()
    config = AgentConfig(workspace=work, remembered=own)
    script = in_turn([call("shell", command="echo hi"), Answer(text="ok")] * 3)
    with an_app(script, folder=tmp_path, config=config) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        thread = page.thread()
        asked, _ = answered(page, thread, "always")
        assert asked[0]["pattern"] == "shell:echo hi"
        assert 'allow = "shell:echo hi"' in own.read_text()
        for each in (thread, page.thread()):
            _, events = answered(page, each)
            assert [event["failed"] for event in events if event["type"] == "result"] == [False]


def test_an_answer_that_was_not_offered_is_refused(tmp_path: Path) -> None:
    script = in_turn([call("shell", command="echo hi"), Answer(text="ok")])
    with an_app(script, folder=tmp_path) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "go"})
            asked = stream.until("ask")[-1]
            for given in ("always", "yes", "nonsense"):
                said = {"id": asked["id"], "answer": given}
                assert page.ask("POST", f"/everlong/api/threads/{thread}/answer", said)[0] == 400
            page.do("POST", f"/everlong/api/threads/{thread}/answer", {"id": asked["id"], "answer": "no"})
            stream.until("ended")


def test_patterns_of_the_server_decide_beforehand(tmp_path: Path) -> None:
    config = AgentConfig(workspace=tmp_path, allow=("write:src/**",), deny=("shell",))
    steps = [call("write_file", path="src/a.txt", content="x"), call("shell", command="ls"), Answer(text="ok")]
    with an_app(in_turn(steps), folder=tmp_path, config=config) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        _, events = answered(page, page.thread())
        assert [event["failed"] for event in events if event["type"] == "result"] == [False, True]
        (refused,) = (event["reason"] for event in events if event["type"] == "refused")
        assert refused == "shell was not allowed: the pattern shell denies it"
    assert (tmp_path / "src/a.txt").exists()
