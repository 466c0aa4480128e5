"""Compaction beside the conversation: sending is never blocked, and what the model saw is told."""

import json
from threading import Event as Signal

from everlong.core import CallId, Message, Role, Text, ToolCall, ToolResult
from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Step
from everlong.store import MemoryThreads
from tests.web.boats import SUMMARY, TALKS, WINDOW, fill, points
from tests.web.running import an_app


def test_sending_is_not_blocked_while_a_summary_is_written() -> None:
    may_write = Signal()

    def writes(_: ReceivedRequest) -> Step:
        may_write.wait(60)
        return Answer(text=SUMMARY)

    with ScriptedServer(writes, models=("writer",)) as slow, an_app(TALKS, window=16_384) as (app, _):
        page = app.page()
        page.do("POST", "/everlong/api/sources", {"name": "slow", "url": slow.url})
        page.do("PUT", "/everlong/api/settings", {"auto": False, "summary_model": "slow/writer"})
        thread = page.thread()
        fill(page, thread, 4)
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/compact", {"focus": ""})
            stream.until("compacting", state=["started"])
            assert page.get(f"/everlong/api/threads/{thread}/context")["compacting"]
            assert page.ask("POST", f"/everlong/api/threads/{thread}/compact", {})[1]["error"]["kind"] == "compacting"
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "And meanwhile?"})
            stream.until("ended")
            may_write.set()
            stream.until("compacting", state=["done"])
        assert [row["text"] for row in page.rows(thread) if row["role"] == "user"][-1] == "And meanwhile?"
        assert len(points(page, thread)) == 1


def test_settings_of_a_thread_come_and_go_and_leave_others_alone() -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        thread = page.thread()
        app.state.threads.change(thread, settings='{"recall_share": 0.0, "window": 4000}')
        for auto, expected in (
            ("off", {"recall_share": 0.0, "window": 4000, "summaries": "off", "threshold": 0.95, "cold_mark": 1.0}),
            ("on", {"recall_share": 0.0, "window": 4000}),
        ):
            page.do("PATCH", f"/everlong/api/threads/{thread}", {"auto": auto})
            page.get(f"/everlong/api/threads/{thread}/context")
            assert json.loads(app.state.threads.thread(thread).settings) == expected
        page.do("PUT", "/everlong/api/settings", {"windows": {"main/scripted": 6_000}})
        assert page.get(f"/everlong/api/threads/{thread}/context")["window"] == 6_000
        page.do("PUT", "/everlong/api/settings", {"windows": {}})
        assert page.get(f"/everlong/api/threads/{thread}/context")["window"] == WINDOW


def test_a_shortened_result_shows_what_the_model_saw_and_what_was_there() -> None:
    log = "\n".join(f"line {number}: the boat passes the pier" for number in range(4_000))
    threads = MemoryThreads()
    with an_app(TALKS, window=16_384, threads=threads) as (app, server):
        page = app.page()
        thread = page.thread()
        call = ToolCall(CallId("c1"), "read_file", '{"path": "log"}')
        threads.append(
            thread,
            [
                Message(Role.USER, (Text("Read the log"),)),
                Message(Role.ASSISTANT, (call,)),
                Message(Role.TOOL, (ToolResult(CallId("c1"), (Text(log),), name="read_file"),)),
                Message(Role.ASSISTANT, (Text("Read."),)),
            ],
        )
        page.say(thread, "How many lines are there?")
        row = page.rows(thread)[2]
        assert row["sent"] in ("shortened", "left out")
        why = page.get(f"/everlong/api/threads/{thread}/rows/2/why")
        assert why["sent"] == row["sent"]
        assert why["original"].startswith("line 0")
        assert why["edits"]
        if row["sent"] == "shortened":
            assert why["as_sent"] is not None
            assert len(why["as_sent"]) < len(log)
            assert any(why["as_sent"] in message.text or message.results for message in server.requests[-1].messages)
        refs = [edit["ref"] for edit in why["edits"] if edit["ref"]]
        status, whole, _ = page.raw("GET", f"/everlong/api/threads/{thread}/original/{refs[0]}")
        assert status == 200
        assert b"line 3999" in whole
    with an_app(TALKS, window=16_384, threads=threads) as (app, _):  # the same after the server was started again
        assert app.page().rows(thread)[2]["sent"] == row["sent"]


def test_a_pinned_message_stays_whole_through_a_compaction() -> None:
    with an_app(TALKS, window=WINDOW) as (app, server):
        page = app.page()
        thread = page.thread()
        page.say(thread, "The code word is marigold. Keep it.")
        page.do("POST", f"/everlong/api/threads/{thread}/pins", {"order": 1})
        fill(page, thread, 4)
        page.compact(thread)
        page.say(thread, "And now?")
        assert any("marigold. Keep it." in message.text for message in server.requests[-1].messages)
        row = page.rows(thread)[1]
        assert (row["pinned"], row["sent"]) == (True, "whole")
