"""What the panel says will happen is what happens: after Compact now, after Undo, after a cancelled compaction."""

from threading import Event as Signal
from typing import Any

import pytest

from everlong.agent import AgentConfig
from everlong.engine import Settings
from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Step
from tests.web.boats import SUMMARY, TALKS, WINDOW, fill, points
from tests.web.running import Page, an_app


def context(page: Page, thread: str) -> dict[str, Any]:
    told: dict[str, Any] = page.get(f"/everlong/api/threads/{thread}/context")
    return told


def happened(events: list[dict[str, Any]]) -> bool:
    """Whether a compaction came with a message, or a summary was begun after it."""
    begun = any(event["type"] == "compacting" and event["state"] == "started" for event in events)
    return begun or any(event["type"] == "row" and event["row"]["kind"] in ("summary", "cut") for event in events)


@pytest.mark.parametrize("preset", ["auto", "chatbox"])
def test_after_an_undo_nothing_is_compacted_before_the_panel_says(preset: str) -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset, "threshold": 40, "auto": False})
        thread = page.thread()
        fill(page, thread, 5)
        page.compact(thread)
        page.do("POST", f"/everlong/api/threads/{thread}/undo")
        page.do("PUT", "/everlong/api/settings", {"auto": True})
        told = context(page, thread)
        (due,) = (
            each["starts"][0]["at"] for each in page.get("/everlong/api/state")["presets"] if each["name"] == preset
        )
        assert told["tokens"] > due, "by the threshold alone another would be due at once"
        assert (told["next"], told["undone"]) == ("nothing", True)
        assert told["soon"] > told["tokens"]
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "And now?"})
            stream.until("ended")
            events = stream.wait(
                lambda event: event["type"] == "context" and event["context"]["messages"] > told["messages"]
            )
        assert not happened(events)
        assert not [row for row in points(page, thread) if row["stands"]]
        assert context(page, thread)["undone"]


def test_after_compact_now_the_next_message_is_sent_as_it_is() -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"threshold": 40})
        thread = page.thread()
        fill(page, thread, 3)
        page.compact(thread)
        told = context(page, thread)
        assert told["next"] == "nothing"
        assert told["soon"] <= told["high"] <= told["limit"]
        assert not happened(page.say(thread, "And now?"))


def test_what_is_foretold_comes_turn_by_turn() -> None:
    """No compaction below the figures of the panel, and one as soon as a message is sent above them."""
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"threshold": 50})
        thread = page.thread()
        seen = set()
        for _ in range(9):
            told = context(page, thread)
            events = fill(page, thread, 1)
            after = context(page, thread)
            if told["next"] == "compaction":
                assert happened(events)
            if happened(events) and told["next"] == "nothing":
                said = max(event["context"]["tokens"] for event in events if event["type"] == "context")
                assert max(said, after["tokens"]) >= told["soon"] or told["tokens"] + 600 >= told["soon"]
            seen.add(told["next"])
        assert "nothing" in seen
        assert points(page, thread)


def test_off_nothing_is_foretold_and_presets_with_their_own_limits_say_so() -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        thread = page.thread()
        fill(page, thread, 2)
        page.do("PATCH", f"/everlong/api/threads/{thread}", {"auto": "off"})
        assert context(page, thread)["next"] == "nothing"
        page.do("PATCH", f"/everlong/api/threads/{thread}", {"auto": "on"})
        page.do("PUT", "/everlong/api/settings", {"preset": "simple"})
        told = context(page, thread)
        assert (told["next"], told["high"], told["soon"]) == ("rules", None, None)
        by_tokens = {
            each["name"]: (each["by_tokens"], len(each["starts"]))
            for each in page.get("/everlong/api/state")["presets"]
        }
        assert (by_tokens["auto"], by_tokens["chatbox"], by_tokens["simple"]) == ((True, 11), (True, 11), (False, 0))


def slow_writer(may_write: Signal) -> ScriptedServer:
    def writes(_: ReceivedRequest) -> Step:
        may_write.wait(60)
        return Answer(text=SUMMARY)

    return ScriptedServer(writes, models=("writer",))


@pytest.mark.parametrize("by_hand", [True, False], ids=["asked for", "automatic"])
def test_a_compaction_is_cancelled_while_it_runs_and_nothing_changes(by_hand: bool) -> None:
    may_write = Signal()
    with slow_writer(may_write) as slow, an_app(TALKS, window=2 * WINDOW) as (app, _):
        page = app.page()
        page.do("POST", "/everlong/api/sources", {"name": "slow", "url": slow.url})
        changes = {"auto": not by_hand, "summary_model": "slow/writer", "threshold": 40}
        page.do("PUT", "/everlong/api/settings", changes)
        thread = page.thread()
        cancel = f"/everlong/api/threads/{thread}/compact/cancel"
        assert page.ask("POST", cancel, {})[1]["error"]["kind"] == "not_compacting"
        with page.listen(thread) as stream:
            fill(page, thread, 3)
            while not by_hand and context(page, thread)["next"] == "nothing":
                fill(page, thread, 1)
            if not by_hand:
                assert context(page, thread)["next"] == "summary"  # after the next answer, and so it is
                fill(page, thread, 1)
            if by_hand:
                page.do("POST", f"/everlong/api/threads/{thread}/compact", {"focus": ""})
            stream.until("compacting", state=["started"])
            before = [(row["order"], row["kind"], row["sent"]) for row in page.rows(thread)]
            tokens = context(page, thread)["tokens"]
            page.do("POST", cancel)
            told = stream.until("compacting", state=["skipped"])[-1]
            assert told["reason"] == "cancelled"
        assert [(row["order"], row["kind"], row["sent"]) for row in page.rows(thread)] == before
        after = context(page, thread)
        assert (after["tokens"], after["compacting"], after["can_undo"]) == (tokens, False, False)
        if not by_hand:
            events = page.say(thread, "And now?")
            assert not any(event["type"] == "compacting" for event in events), "it is not begun again at once"
            assert after["soon"] == after["high"], "and the panel says so"
        may_write.set()
        asked = page.compact(thread)  # who wants it after all, gets it
        assert asked[-1]["state"] == "done"


def test_a_window_that_the_server_was_started_with_is_not_called_the_persons() -> None:
    with an_app(config=AgentConfig(engine=Settings(window=12_345))) as (app, _):
        page = app.page()
        thread = page.thread()
        told, (model,) = context(page, thread), page.get("/everlong/api/state")["models"]
        assert (told["window"], told["window_source"]) == (12_345, "given")
        assert (model["window"], model["window_source"]) == (12_345, "given")
        page.do("PUT", "/everlong/api/settings", {"windows": {"main/scripted": 8_000}})
        told, (model,) = context(page, thread), page.get("/everlong/api/state")["models"]
        assert (told["window"], told["window_source"]) == (8_000, "user")
        assert (model["window"], model["window_source"]) == (8_000, "user")
