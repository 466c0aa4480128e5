"""A tool that acts asks a person first; no answer is no."""

from pathlib import Path

import pytest

from everlong.llm import Answer, in_turn
from tests.web.running import an_app

ANSWERS = {"once": ({"answer": "once"}, False), "no": ({"answer": "no"}, True)}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_tool_that_acts_asks_first(name: str, tmp_path: Path) -> None:
    said, refused = ANSWERS[name]
    script = in_turn([Answer(calls=(("shell", '{"command": "echo from the shell"}'),)), Answer(text="ok")])
    with an_app(script, folder=tmp_path) as (app, _):
        page = app.page()
        page.do("PUT", "/api/settings", {"tools": True})
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"/api/threads/{thread}/turn", {"text": "use the shell"})
            asked = next(event for event in stream.until("ask") if event["type"] == "ask")
            assert asked["tool"] == "shell"
            assert "echo from the shell" in asked["details"]
            with page.listen(thread) as late:
                assert late.until("ask")[-1]["id"] == asked["id"]
            page.do("POST", f"/api/threads/{thread}/answer", {"id": asked["id"], **said})
            events = stream.until("ended")
            assert page.ask("POST", f"/api/threads/{thread}/answer", {"id": asked["id"], "answer": "once"})[0] == 404
        result = next(event for event in events if event["type"] == "result")
        assert result["failed"] is refused
        assert ("from the shell" in result["text"]) is not refused
        tool = next(row for row in page.rows(thread) if row["role"] == "tool")
        assert tool["results"][0]["failed"] is refused


def test_no_answer_in_time_is_no(tmp_path: Path) -> None:
    script = in_turn([Answer(calls=(("shell", '{"command": "echo hi"}'),)), Answer(text="ok")])
    with an_app(script, folder=tmp_path, answer_seconds=0.05) as (app, _):
        page = app.page()
        page.do("PUT", "/api/settings", {"tools": True})
        events = page.say(page.thread(), "use the shell")
        assert next(event for event in events if event["type"] == "result")["failed"]


def test_for_this_thread_is_asked_once_in_a_thread(tmp_path: Path) -> None:
    call = Answer(calls=(("shell", '{"command": "echo hi"}'),))
    with an_app(in_turn([call, call, Answer(text="ok")]), folder=tmp_path) as (app, _):
        page = app.page()
        page.do("PUT", "/api/settings", {"tools": True})
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"/api/threads/{thread}/turn", {"text": "twice"})
            asked = stream.until("ask")[-1]
            page.do("POST", f"/api/threads/{thread}/answer", {"id": asked["id"], "answer": "thread"})
            events = stream.until("ended")
        assert sum(event["type"] == "ask" for event in events) == 1
        assert [event["failed"] for event in events if event["type"] == "result"] == [False, False]
