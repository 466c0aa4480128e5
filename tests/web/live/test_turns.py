"""Turns over the API: what is said, streamed, stopped and tried again."""

import base64
import json
from pathlib import Path
from threading import Event as Signal
from typing import Any

import pytest

from everlong.cli.demo_app import picture
from everlong.llm import Answer, ReceivedRequest, Refusal, Step, in_turn
from everlong.store import open_store
from tests.web.running import an_app


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """The types in their order, each run of the same once."""
    found: list[str] = []
    for event in events:
        if not found or found[-1] != event["type"]:
            found.append(event["type"])
    return found


@pytest.mark.parametrize("store", ["memory:", "sqlite", "jsonl:"])
def test_a_turn_is_streamed_and_kept(store: str, tmp_path: Path) -> None:
    places = {"sqlite": str(tmp_path / "threads.db"), "jsonl:": f"jsonl:{tmp_path}"}
    script = lambda _: Answer(text="The tide comes at six.", thinking="Look at the table.")  # noqa: E731
    with open_store(places.get(store, store)) as threads, an_app(script, threads=threads) as (app, _):
        page = app.page()
        thread = page.thread()
        events = page.say(thread, "When does the tide come?")
        said = "".join(event["text"] for event in events if event["type"] == "said")
        thought = "".join(event["text"] for event in events if event["type"] == "thought")
        assert (said, thought) == ("The tide comes at six.", "Look at the table.")
        told = kinds([event for event in events if event["type"] not in ("context", "title")])
        assert told == ["running", "row", "thought", "said", "row", "ended"]
        rows = page.rows(thread)
        assert [(row["role"], row["text"]) for row in rows] == [
            ("system", "You are a helpful assistant."),
            ("user", "When does the tide come?"),
            ("assistant", "The tide comes at six."),
        ]
        assert [event["row"]["order"] for event in events if event["type"] == "row"] == [0, 1, 2]
        assert {row["sent"] for row in rows} == {"whole"}


def test_pictures_and_files_reach_the_model() -> None:
    with an_app() as (app, server):
        page = app.page()
        thread = page.thread()
        image = {"name": "a.png", "media_type": "image/png", "data": picture(8, 8)}
        page.say(thread, "Look", images=[image], files=[{"name": 'no"tes.txt', "text": "boats: 7\n"}])
        body = json.loads(server.requests[0].body)
        content = body["messages"][-1]["content"]
        assert [part["type"] for part in content] == ["text", "text", "image_url"]
        assert content[1]["text"] == '<file name="no\'tes.txt">\nboats: 7\n</file>'
        assert page.rows(thread)[1]["images"] == [f"data:image/png;base64,{picture(8, 8)}"]


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
UNUSABLE: dict[str, tuple[dict[str, Any], int]] = {
    "nothing": ({}, 400),
    "blank": ({"text": " \n"}, 400),
    "a number": ({"text": 7}, 400),
    "images no list": ({"text": "a", "images": "x"}, 400),
    "an image that is not an object": ({"text": "a", "images": ["x"]}, 400),
    "svg": ({"text": "a", "images": [{"media_type": "image/svg+xml", "data": PNG}]}, 415),
    "not what it says": ({"text": "a", "images": [{"media_type": "image/jpeg", "data": PNG}]}, 415),
    "no base64": ({"text": "a", "images": [{"media_type": "image/png", "data": "%%"}]}, 400),
    "a binary file": ({"text": "a", "files": [{"name": "x", "text": "a\0b"}]}, 400),
    "too many files": ({"text": "a", "files": [{"name": "x", "text": "y"}] * 21}, 400),
}


def test_what_cannot_be_said_is_refused_and_nothing_is_kept() -> None:
    with an_app() as (app, server):
        page = app.page()
        thread = page.thread()
        answers = {
            name: page.ask("POST", f"/everlong/api/threads/{thread}/turn", said)[0]
            for name, (said, _) in UNUSABLE.items()
        }
        assert answers == {name: status for name, (_, status) in UNUSABLE.items()}
        assert page.rows(thread) == []
        assert not server.requests


def test_what_is_said_meanwhile_enters_the_turn() -> None:
    held, asked_twice = Signal(), Signal()

    def script(asked: ReceivedRequest) -> Step:
        if asked.number == 0:
            asked_twice.set()
            held.wait(60)
            return Answer(text="first")
        return Answer(text=f"heard {sum(message.role == 'user' for message in asked.messages)}")

    with an_app(script) as (app, _):
        page = app.page()
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "one"})
            asked_twice.wait(60)
            assert page.get(f"/everlong/api/threads/{thread}")["running"]
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "two"})
            held.set()
            stream.until("ended")
        assert [row["text"] for row in page.rows(thread)][1:] == ["one", "first", "two", "heard 2"]


def test_a_turn_goes_on_without_a_page_and_a_late_page_sees_it() -> None:
    held, begun = Signal(), Signal()

    def script(_: ReceivedRequest) -> Step:
        begun.set()
        held.wait(60)
        return Answer(text="done without you")

    with an_app(script) as (app, _):
        page = app.page()
        thread = page.thread()
        page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "go on"})
        begun.wait(60)
        with page.listen(thread) as stream:
            assert stream.events[0] == {"type": "running", "running": True}
            held.set()
            stream.until("ended")
        assert page.rows(thread)[-1]["text"] == "done without you"


def test_a_page_that_comes_back_is_told_what_it_missed_once() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "one"})
            stream.until("ended")
            last = stream.last
        page.say(thread, "two")
        with page.listen(thread, last) as again:
            told = again.until("ended")
        rows = [event["row"]["text"] for event in told if event["type"] == "row"]
        assert rows == ["two", "two"]
        with page.listen(thread, "otherrun-3") as lost:
            assert lost.events[0] == {"type": "reset"}


def test_stop_ends_the_turn_and_the_next_one_works() -> None:
    begun = Signal()

    def script(asked: ReceivedRequest) -> Step:
        begun.set()
        return Answer(text="word " * 4_000, between=0.05) if asked.number == 0 else Answer(text="fine")

    with an_app(script) as (app, _):
        page = app.page()
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "talk"})
            stream.until("said")
            assert page.do("POST", f"/everlong/api/threads/{thread}/stop") == {"stopped": True}
            stream.until("ended", reason=["interrupted"])
        assert page.do("POST", f"/everlong/api/threads/{thread}/stop") == {"stopped": False}
        page.say(thread, "again")
        assert page.rows(thread)[-1]["text"] == "fine"


def test_a_failure_is_told_and_retry_does_not_say_it_again() -> None:
    refused = Refusal(400, '{"error": {"message": "not today, key given-key-1234"}}')
    with an_app(in_turn([refused, Answer(text="now it works")])) as (app, _):
        page = app.page()
        thread = page.thread()
        events = page.say(thread, "hello?")
        failed = next(event for event in events if event["type"] == "failed")
        failure = failed["failure"]
        assert (failure["kind"], failure["model"], failure["source"]) == ("rejected", "scripted", "main")
        assert "retry" in failure["actions"]
        assert "not today" in failure["details"]
        assert "given-key" not in json.dumps(failure)
        with page.listen(thread) as late:
            late.until("failed")
            page.do("POST", f"/everlong/api/threads/{thread}/retry")
            late.until("ended")
        assert [row["text"] for row in page.rows(thread)][1:] == ["hello?", "now it works"]
