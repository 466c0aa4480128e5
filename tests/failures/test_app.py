"""What chat apps got wrong, at the API of ours. Each test is named after its failure mode."""

from everlong.core import Message, Role, Text
from everlong.llm import Endpoint, ScriptedServer
from everlong.store import MemoryThreads
from everlong.web import Source
from tests.web.boats import TALKS, WINDOW, fill, points, summaries_asked
from tests.web.running import an_app


def test_D4_tokens_are_the_limit_not_messages() -> None:
    with an_app(TALKS, window=32_000) as (app, server):
        page = app.page()
        thread = page.thread()
        for number in range(10):
            said = Message(Role.USER, (Text(f"Report {number}: " + "figures and words " * 9_000),))
            app.state.threads.append(thread, [said, Message(Role.ASSISTANT, (Text("noted"),))])
        assert page.say(thread, "What now?")[-1]["reason"] == "done"
        assert all(asked.tokens <= 32_000 for asked in server.requests)


def test_D4_no_request_is_above_the_threshold_that_was_set() -> None:
    with an_app(TALKS, window=WINDOW) as (app, server):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"threshold": 50})
        thread = page.thread()
        for _ in range(10):
            page.say(thread, "And the next one? " + "a few more words " * 20)
        high = page.get(f"/everlong/api/threads/{thread}/context")["high"]
        talk = [asked for asked in server.requests if asked not in summaries_asked(server)]
        assert all(asked.tokens <= high for asked in talk)


def test_D4_the_price_of_the_next_request_is_told() -> None:
    with ScriptedServer(models=("gpt-4o",)) as server:
        known = Source(name="openai", endpoint=Endpoint(url=server.url, provider="openai"), models=("gpt-4o",))
        with an_app(sources=(known,)) as (app, _):
            page = app.page()
            thread = page.thread()
            page.say(thread, "How much is this? " + "words " * 500)
            context = page.get(f"/everlong/api/threads/{thread}/context")
            assert 0 < context["cost"] < 0.1


def test_H1_everything_is_shown_after_three_compactions_and_found() -> None:
    threads = MemoryThreads()
    with an_app(TALKS, window=16_384, threads=threads) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"auto": False})
        thread = page.thread()
        for number in range(3):
            page.say(thread, f"The code word of day {number} is marigold{number}.")
            fill(page, thread, 4)
            page.compact(thread)
        rows = page.rows(thread)
        assert sum(row["kind"] == "message" for row in rows) == 1 + 2 * 15
        assert [row["kind"] for row in rows if row["kind"] in ("summary", "cut")] == ["summary"] * 3
        assert any(hit["order"] == 1 for hit in page.get("/everlong/api/threads?q=marigold0")["hits"])
        assert app.page().rows(thread) == rows
    with an_app(TALKS, window=WINDOW, threads=threads) as (app, _):  # another run of the program
        assert app.page().rows(thread) == rows


def test_H1_every_message_says_why_it_was_left_out_and_what_it_said() -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        thread = page.thread()
        fill(page, thread, 3)
        page.compact(thread)
        for row in page.rows(thread):
            if row["kind"] != "message":
                continue
            why = page.get(f"/everlong/api/threads/{thread}/rows/{row['order']}/why")
            assert why["original"] == row["text"]
            assert why["sent"] == row["sent"]
            assert (why["as_sent"] == row["text"]) is (row["sent"] == "whole")
            assert bool(why["edits"]) is (row["sent"] != "whole")
            assert all(edit["why"] and edit["before"] >= edit["after"] for edit in why["edits"])


def test_H2_undo_brings_back_what_was_sent_before_and_keeps_new_turns() -> None:
    with an_app(TALKS, window=16_384) as (app, server):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"auto": False})
        thread = page.thread()
        fill(page, thread, 8)
        before = server.requests[-1].messages
        page.compact(thread)
        page.say(thread, "A new turn")
        page.do("POST", f"/everlong/api/threads/{thread}/undo")
        page.say(thread, "After the undo")
        sent = server.requests[-1].messages
        assert sent[: len(before)] == before
        assert [message.text for message in sent if message.role is Role.USER][-2:] == ["A new turn", "After the undo"]
        rows = page.rows(thread)
        assert [row["kind"] for row in rows if row["kind"] not in ("message", "recalled")] == ["summary", "undo"]
        assert [row["stands"] for row in rows if row["kind"] == "summary"] == [False]
        assert {row["sent"] for row in rows if row["kind"] == "message"} == {"whole"}
        status, told = page.ask("POST", f"/everlong/api/threads/{thread}/undo", {})
        assert (status, told["error"]["kind"]) == (409, "nothing_to_undo")


def test_H2_a_branch_before_the_boundary_has_no_later_point() -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        thread = page.thread()
        fill(page, thread, 3)
        page.compact(thread)
        branch = page.do("POST", f"/everlong/api/threads/{thread}/branch", {"order": 3})["id"]
        assert points(page, branch) == []
        assert not page.get(f"/everlong/api/threads/{branch}/context")["can_undo"]
        assert page.get(f"/everlong/api/threads/{thread}/context")["can_undo"]


def test_H4_the_meter_after_a_compaction_is_what_is_sent_next() -> None:
    with an_app(TALKS, window=WINDOW, models=("gpt-4o",)) as (app, server):
        page = app.page()
        thread = page.thread()
        fill(page, thread, 3)
        page.compact(thread)
        context = page.get(f"/everlong/api/threads/{thread}/context")
        assert context["certainty"] == "counted"
        assert sum(context["parts"].values()) <= context["tokens"] * 1.05
        page.say(thread, "ok")
        assert abs(server.requests[-1].tokens - context["tokens"]) <= 0.1 * context["tokens"] + 20


def test_H5_nothing_to_compact_is_said_not_done() -> None:
    with an_app(TALKS) as (app, server):
        page = app.page()
        thread = page.thread()
        page.say(thread, "hello")
        told = [event for event in page.compact(thread) if event["type"] == "compacting"]
        assert [event["state"] for event in told] == ["started", "skipped"]
        assert told[-1]["reason"]
        assert not summaries_asked(server)
