"""Nothing that was shown is lost: an answer that is stopped, breaks off, or dies with the server stays in its thread.

EVERLONG_SOAK=1 has each happen twenty times, at other moments.
"""

import os
import signal
from pathlib import Path

import pytest

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Step, Window, in_turn
from everlong.llm.scripted.script import Broken
from everlong.store import open_store
from tests.gateway.processes import ServingProcess
from tests.web.running import Page, an_app

TIMES = 20 if os.environ.get("EVERLONG_SOAK") else 2
WORDS = " ".join(f"word{at}" for at in range(4_000))
API = "/everlong/api/threads"


def shown(events: list[dict[str, str]]) -> str:
    """What a page has drawn."""
    return "".join(event["text"] for event in events if event["type"] == "said")


@pytest.mark.parametrize("nth", range(1, TIMES + 1))
def test_what_was_shown_before_stop_stays_in_the_thread(nth: int) -> None:
    script = in_turn([Answer(text=WORDS, thinking="Hm.", between=0.002), Answer(text="and so on")])
    with an_app(script) as (app, server):
        page = app.page()
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"{API}/{thread}/turn", {"text": "talk"})
            stream.wait(lambda _: sum(event["type"] == "said" for event in stream.events) >= 5 * nth)
            page.do("POST", f"{API}/{thread}/stop")
            events = stream.until("ended", reason=["interrupted"])
        row = page.rows(thread)[-1]
        assert len(shown(events)) > 20
        assert row["text"].startswith(shown(events))
        assert WORDS.startswith(row["text"])
        assert (row["ending"], row["model"], row["thinking"]) == ("stopped", "scripted", "Hm.")
        with page.listen(thread) as stream:
            page.do("POST", f"{API}/{thread}/continue")
            stream.until("ended", reason=["done"])
        assert [row["text"] for row in page.rows(thread)][-1] == "and so on"
        request = server.requests[-1].body.decode()
        assert "was interrupted" in request
        assert page.rows(thread)[1]["text"] == "talk"
        assert page.ask("POST", f"{API}/{thread}/continue", {})[1]["error"]["kind"] == "whole"


@pytest.mark.parametrize("nth", range(1, TIMES + 1))
def test_what_was_shown_before_the_upstream_died_stays_in_the_thread(nth: int) -> None:
    script = in_turn([Broken(Answer(text=WORDS), 7 * nth), Answer(text="now whole")])
    with an_app(script) as (app, _):
        page = app.page()
        thread = page.thread()
        events = page.say(thread, "talk")
        row = page.rows(thread)[-1]
        assert shown(events)
        assert (row["text"], row["ending"]) == (shown(events), "broken off")
        order = [event["type"] for event in events if event["type"] in ("row", "failed", "ended")]
        assert order[-3:] == ["row", "failed", "ended"], "the words stand before the failure is told"
        again = page.do("POST", f"{API}/{thread}/retry")["thread"]
        with page.listen(again) as stream:
            stream.wait(lambda event: event["type"] == "running" and not event["running"])
        assert [row["text"] for row in page.rows(again)][1:] == ["talk", "now whole"]
        assert page.rows(again)[-1]["versions"] == {"at": 1, "threads": [thread, again]}
        assert page.rows(thread)[-1]["text"] == shown(events)


@pytest.mark.parametrize("nth", range(1, TIMES + 1))
def test_what_was_shown_before_the_server_was_killed_stays_in_the_thread(nth: int, tmp_path: Path) -> None:
    def script(asked: ReceivedRequest) -> Step:
        return Answer(text=WORDS, between=0.002)

    store = str(tmp_path / "threads.db")
    with ScriptedServer(script, window=Window(16_384, told=True)) as server:
        options = ("--upstream", server.url, "--store", store, "--no-access-log")
        with ServingProcess(*options, folder=tmp_path) as serving:
            page = Page(serving.port)
            thread = page.thread()
            with page.listen(thread) as stream:
                page.do("POST", f"{API}/{thread}/turn", {"text": "talk"})
                stream.wait(lambda _: sum(event["type"] == "said" for event in stream.events) >= 11 * nth)
                serving.end(signal.SIGKILL)
                stream.wait_for_end()
                seen = shown(stream.events)
        with ServingProcess(*options, folder=tmp_path) as serving:
            rows = Page(serving.port).rows(thread)
        assert seen
        assert rows[-1]["text"].startswith(seen)
        assert WORDS.startswith(rows[-1]["text"])
        assert rows[-1]["ending"] == "broken off"
    with open_store(store) as threads:
        assert threads.facts("partial answer") == {}


def test_an_answer_that_was_stored_before_the_server_died_does_not_come_twice(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "threads.db")) as threads:
        with an_app(lambda _: Answer(text="All of it."), threads=threads) as (app, _):
            thread = app.page().thread()
            app.page().say(thread, "talk")
        threads.keep_fact("partial answer", thread, '{"model": "m", "text": "All of", "thinking": ""}')
        threads.keep_fact("partial answer", "gone", '{"model": "m", "text": "x", "thinking": ""}')
        with an_app(threads=threads) as (app, _):
            assert [row["text"] for row in app.page().rows(thread)][1:] == ["talk", "All of it."]
        assert threads.facts("partial answer") == {}
        threads.keep_fact("partial answer", thread, '{"model": "m", "text": "x", "thinking": ""}')
        with an_app(threads=threads) as (app, _):
            app.page().do("DELETE", f"{API}/{thread}")
        assert threads.facts("partial answer") == {}


def test_an_empty_answer_and_one_at_its_limit_say_so() -> None:
    with an_app(in_turn([Answer(text=""), Answer(text="As far as", stop="length")])) as (app, _):
        page = app.page()
        thread = page.thread()
        page.say(thread, "talk")
        assert [(row["text"], row["ending"]) for row in page.rows(thread)][-1] == ("", "empty")
        page.say(thread, "more")
        assert [(row["text"], row["ending"]) for row in page.rows(thread)][-1] == ("As far as", "length")
