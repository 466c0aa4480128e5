"""One stream for all that a browser has open: each event with its thread, none lost or doubled when it opens anew."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote, urlencode

from hypothesis import given, settings, strategies as st

from everlong.core import JsonObject
from everlong.llm import Answer, ReceivedRequest, Step
from everlong.web.live.hub import QUIET, Hub, Wanted
from tests.web.running import Page, Stream, an_app

EVENTS = "/everlong/api/events?"


def stream_of(page: Page, threads: Iterable[tuple[str, str]], **more: list[str]) -> Stream:
    """The stream of those threads, each from its last event on."""
    pairs = [("thread", f"{name}:{last}") for name, last in threads]
    pairs += [(name, value) for name, values in more.items() for value in values]
    return Stream(page, EVENTS + urlencode(pairs))


def of(stream: Stream, thread: str) -> list[dict[str, Any]]:
    """What was told of a thread."""
    return [event for event, name in zip(stream.events, stream.names, strict=True) if name.endswith(f"@{thread}")]


def wait_for_end(stream: Stream, thread: str) -> None:
    """Until a turn of the thread has ended."""
    stream.wait(lambda _: any(told["type"] == "ended" for told in of(stream, thread)))


def script(asked: ReceivedRequest) -> Step:
    return Answer(text=f"You said {asked.messages[-1].text}.")


def test_one_stream_tells_of_many_threads() -> None:
    with an_app(script) as (app, _):
        page = app.page()
        first, second = page.thread(), page.thread()
        with stream_of(page, [(first, ""), (second, ""), ("no-such-thread", "")]) as stream:
            for name in (first, second):
                page.do("POST", f"/everlong/api/threads/{name}/turn", {"text": f"hello {name}"})
            for name in (first, second):
                wait_for_end(stream, name)
                said = "".join(told["text"] for told in of(stream, name) if told["type"] == "said")
                assert said == f"You said hello {name}."
            assert app.state.hub.streams == 1


def test_a_stream_that_is_opened_anew_goes_on_in_every_thread_where_it_was() -> None:
    with an_app(script) as (app, _):
        page = app.page()
        first, second = page.thread(), page.thread()
        with stream_of(page, [(first, ""), (second, "")]) as stream:
            page.say(first, "one")
            stream.until("ended")
            heard = {thread: number for number, _, thread in (name.partition("@") for name in stream.names)}
        page.say(second, "two")
        page.say(first, "three")
        with stream_of(page, [(name, heard[name]) for name in (first, second)]) as stream:
            wait_for_end(stream, first)
            wait_for_end(stream, second)
            users = {
                name: [e["row"]["text"] for e in of(stream, name) if e["type"] == "row" and e["row"]["role"] == "user"]
                for name in (first, second)
            }
            assert users == {first: ["three"], second: ["two"]}
            assert not any(event["type"] == "reset" for event in stream.events)


def test_a_new_tab_is_told_the_present_state_beside_what_the_others_missed() -> None:
    with an_app(script) as (app, _):
        page = app.page()
        thread = page.thread()
        with stream_of(page, [(thread, "")]) as stream:
            stream.until("running")
            assert set(stream.kinds) == {"hello"}
            last = stream.names[-1].partition("@")[0]
        page.say(thread, "one")
        with stream_of(page, [(thread, last)], fresh=[thread]) as stream:
            stream.wait(lambda _: "hello" in stream.kinds)
            missed = stream.events[: stream.kinds.index("hello")]
            assert [event["type"] for event in missed if event["type"] in ("running", "ended")][-2:] == [
                "ended",
                "running",
            ]
            assert stream.events[stream.kinds.index("hello")] == {"type": "running", "running": False}
        with stream_of(page, [(thread, "other-1")], fresh=[thread]) as stream:
            stream.until("running")
            assert set(stream.kinds) == {"anew"}
            assert stream.events[0]["type"] == "reset"


def test_what_is_out_of_sight_is_told_no_words() -> None:
    with an_app(script) as (app, _):
        page = app.page()
        thread = page.thread()
        with stream_of(page, [(thread, "")], quiet=[thread]) as stream:
            page.say(thread, "one")
            stream.until("ended")
            assert {event["type"] for event in stream.events} <= QUIET


def test_the_requests_of_the_gateway_come_in_the_same_stream() -> None:
    with an_app() as (app, _):
        page = app.page()
        thread = page.thread()
        told: JsonObject = {"type": "request", "id": "r1", "model": "gpt-4o"}
        with stream_of(page, [(thread, "")], live=[""]) as stream:
            app.run(lambda: app.state.report_request(told))
            assert stream.until("request")[-1] == told
            assert stream.names[-1].endswith("@")


def test_too_many_threads_are_refused() -> None:
    with an_app() as (app, _):
        page = app.page()
        status, told = page.ask("GET", EVENTS + urlencode([("thread", f"t{number}:") for number in range(101)]))
        assert (status, told["error"]["message"]) == (400, "thread can be given at most 100 times")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_is_published_and_however_often_it_is_opened_each_event_is_heard_once(data: st.DataObject) -> None:
    threads = data.draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=4, unique=True))
    hub = Hub()
    heard: dict[str, list[str]] = {name: [] for name in threads}
    last = {name: hub.channel(name).last for name in threads}
    count = 0
    for _ in range(data.draw(st.integers(1, 5))):
        for _ in range(data.draw(st.integers(0, 5))):
            hub.publish(data.draw(st.sampled_from(threads)), {"type": "said", "text": str(count)})
            count += 1
        texts = [
            text
            for name in threads
            for text in hub.channel(name).enter(asyncio.Queue(1_000), Wanted(thread=name, last=last[name], name=name))
        ]
        for text in texts:
            head, body = text.removeprefix("id: ").split("\n")[:2]
            number, _, name = head.partition("@")
            last[unquote(name)] = number
            heard[unquote(name)].append(json.loads(body.removeprefix("data: "))["text"])
    every = [text for told in heard.values() for text in told]
    for name in threads:  # what was published after the last opening
        every += [json.loads(told.data)["text"] for told in hub.channel(name).missed(last[name]) or []]
    assert sorted(every, key=int) == [str(number) for number in range(count)]
