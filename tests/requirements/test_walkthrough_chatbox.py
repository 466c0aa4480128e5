"""The Chatbox document from FR-1.1 to FR-5.4, as a person sees it in the app with preset `chatbox`, over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest

from everlong.engine import counter_for
from everlong.llm import Answer, Endpoint, ReceivedRequest, ScriptedServer, Step, Window
from everlong.store import MemoryThreads, import_session, sessions_in
from everlong.web import Source
from tests.core.build import assistant
from tests.engine.authors import structured
from tests.web.running import Page, an_app

WINDOW = 200_000
DUE = 100_800  # (200 000 - 32 000) x 0.6, the document's own example
KEPT = "The harbour master counts the boats at the pier."
SUMMARY = structured(
    finished_tasks=["The boats at the pier were counted."],
    current_state=KEPT,
    key_context=["harbour/boats.csv"],
    next_steps=["Count the boats of the next pier."],
)
PARTS = ("finished_tasks", "current_state", "key_context", "next_steps")
LONG = " ".join(f"The boat number {number} lies at the pier." for number in range(600))  # some 6 000 tokens


def asks_for_summary(asked: ReceivedRequest) -> bool:
    return any(
        sign in asked.messages[-1].text for sign in ("Answer with one JSON object", "This summary cannot be used")
    )


def talk(asked: ReceivedRequest) -> Step:
    """A model that sums up, looks into a file where it is asked to, and otherwise answers at length."""
    if asks_for_summary(asked):
        return Answer(text=SUMMARY)
    last = asked.messages[-1]
    if last.results:
        return Answer(text="I have seen it.")
    if last.text.startswith("Look"):
        return Answer(calls=(("read_file", json.dumps({"path": f"{last.text.split()[-1]}.txt"})),))
    return Answer(text=f"Answer: {LONG}" if "boat" in last.text else "Yes.")


def chatbox(page: Page, **more: Any) -> None:
    page.do("PUT", "/everlong/api/settings", {"preset": "chatbox", **more})


def context(page: Page, thread: str) -> dict[str, Any]:
    shown: dict[str, Any] = page.get(f"/everlong/api/threads/{thread}/context")
    return shown


def summaries(page: Page, thread: str) -> list[dict[str, Any]]:
    return [row for row in page.rows(thread) if row["kind"] == "summary"]


def say_until_due(page: Page, server: ScriptedServer, thread: str) -> list[int]:
    """Long questions until a finished message passes the threshold; the size of request and answer each time."""
    answer = counter_for("scripted").message(assistant(f"Answer: {LONG}"))
    sizes: list[int] = []
    while not sizes or sizes[-1] < DUE:
        assert not summaries(page, thread), sizes
        assert not any(map(asks_for_summary, server.requests)), sizes
        page.say(thread, f"Question {len(sizes)}: {LONG}")
        said = (asked for asked in reversed(server.requests) if not asks_for_summary(asked))
        sizes.append(next(said).tokens + answer)
        assert len(sizes) < 20
    return sizes


def test_FR_1_1_to_1_8_the_context_is_summarised_at_60_percent_and_goes_on_from_there() -> None:
    with an_app(talk, window=WINDOW) as (app, server):
        page = app.page()
        chatbox(page)
        thread, other = page.thread(), page.thread()
        page.say(other, "How are the boats?")
        assert context(page, thread)["high"] == DUE
        with page.listen(thread) as stream:
            sizes = say_until_due(page, server, thread)
            words = [
                event["text"] for event in stream.until("compacting", state=["done"]) if event.get("state") == "words"
            ]
        assert sizes[-2] < DUE <= sizes[-1]
        assert "".join(words) == SUMMARY  # it streams

        (asked,) = filter(asks_for_summary, server.requests)
        assert all(part in asked.messages[-1].text for part in PARTS)

        rows = page.rows(thread)
        assert [row["text"] for row in rows if row["role"] == "user"] == [
            f"Question {number}: {LONG}"[:20_000] for number in range(len(sizes))
        ]
        (summary,) = summaries(page, thread)
        assert summary["order"] == len(rows) - 1
        assert KEPT in summary["text"]
        assert summary["covers"] == [0, summary["order"] - 3]  # all but the round that was just answered
        assert DUE * 0.95 <= summary["tokens_before"] <= sizes[-1] * 1.05
        assert 0 < summary["tokens_after"] < summary["tokens_before"] / 4

        page.say(thread, "And now?")
        sent = [message.text for message in server.requests[-1].messages]
        assert sent[0] == "You are a helpful assistant."
        assert KEPT in sent[1]
        assert [text.split(":")[0] for text in sent[2:]] == [f"Question {len(sizes) - 1}", "Answer", "And now?"]
        shown = context(page, thread)
        assert shown["tokens"] < DUE / 4
        assert abs(sum(shown["parts"].values()) - shown["tokens"]) <= shown["tokens"] * 0.02
        assert [row["sent"] for row in page.rows(thread) if row["role"] == "user"] == [
            *("covered" for _ in sizes[:-1]),
            "whole",
            "whole",
        ]

        assert summaries(page, other) == []
        page.say(other, "And the other boats?")
        assert len(server.requests[-1].messages) == 4  # system, question, answer, question: nothing of the other thread


def test_FR_1_6_a_second_compaction_starts_at_the_last_point_and_knows_its_summary() -> None:
    with an_app(talk, window=WINDOW) as (app, server):
        page = app.page()
        chatbox(page)
        thread = page.thread()
        for number in range(2):
            for turn in range(3):
                page.say(thread, f"Question {number}.{turn}: {LONG}")
            page.compact(thread)
        first, second = filter(asks_for_summary, server.requests)
        assert "[user] Question 0.0" in first.messages[-1].text
        told = second.messages[-1].text
        assert "[user] Question 0.1" not in told
        assert all(f"[user] Question {number}" in told for number in ("0.2", "1.0", "1.1"))  # all that no point covers
        assert KEPT in told
        assert len(summaries(page, thread)) == 2


CHATBOX_SESSION = {
    "id": "s1",
    "name": "Boats",
    "messages": [
        {"id": "m0", "role": "system", "contentParts": [{"type": "text", "text": "Be brief."}]},
        {"id": "m1", "role": "user", "contentParts": [{"type": "text", "text": "old question"}]},
        {"id": "m2", "role": "assistant", "contentParts": [{"type": "text", "text": "old answer"}]},
        {"id": "m3", "role": "user", "contentParts": [{"type": "text", "text": "new question"}]},
        {"id": "m4", "role": "assistant", "contentParts": [{"type": "text", "text": "new answer"}]},
        {"id": "m5", "role": "assistant", "isSummary": True, "contentParts": [{"type": "text", "text": KEPT}]},
    ],
    "compactionPoints": [{"summaryMessageId": "m5", "boundaryMessageId": "m2", "createdAt": 5}],
}


def test_FR_1_7_a_session_of_chatbox_goes_on_from_its_newest_point() -> None:
    threads = MemoryThreads()
    (session,) = sessions_in(json.dumps(CHATBOX_SESSION).encode(), "boats.json")
    thread = import_session(threads, session, owner="app").thread
    with an_app(talk, window=WINDOW, threads=threads) as (app, server):
        page = app.page()
        assert page.get("/everlong/api/state")["default_model"] == "main/scripted"
        chatbox(page)
        page.say(thread, "And now?")
        sent = [message.text for message in server.requests[-1].messages]
        assert sent[0] == "Be brief."
        assert KEPT in sent[1]
        assert sent[2:] == ["new question", "new answer", "And now?"]
        texts = [row["text"] for row in page.rows(thread)]
        assert "old question" in texts
        (summary,) = summaries(page, thread)
        assert summary["text"] == KEPT


def test_FR_2_1_to_2_5_tool_calls_of_the_last_two_rounds_are_sent_and_all_are_shown(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.txt").write_text(f"content-{number} " * 400)
    with an_app(talk, window=WINDOW, folder=tmp_path) as (app, server):
        page = app.page()
        chatbox(page, tools=True)
        thread = page.thread()
        sizes = []
        for number in range(6):
            page.say(thread, f"Look into {number}")
            first, second = server.requests[-2:]
            finished = [f"content-{each}" in str(first.body) for each in range(number)]
            assert finished == [
                each >= number - 2 for each in range(number)
            ]  # two finished rounds, the question is none
            assert f"content-{number}" in str(second.body)
            sizes.append(context(page, thread)["tokens"])
        assert max(sizes[3:]) - min(sizes[3:]) < 400  # what is left out counts nothing
        assert [message.text for message in server.requests[-1].messages].count("I have seen it.") == 5
        assert sum(bool(row["results"]) for row in page.rows(thread)) == 6


def test_FR_3_1_to_3_5_windows_are_known_by_name_or_96_000_are_assumed_until_one_is_set() -> None:
    models = ("gpt-4o", "gpt-4o-2099-01-01", "house-model")
    with an_app(talk, window=WINDOW, told=False, models=models) as (app, server):
        page = app.page()
        chatbox(page)
        listed = {model["name"]: model["window"] for model in page.get("/everlong/api/state")["models"]}
        assert listed == {"gpt-4o": 128_000, "gpt-4o-2099-01-01": 128_000, "house-model": None}

        thread = page.thread(model="main/house-model")
        with page.listen(thread) as stream:
            for turn in range(4):
                page.say(thread, f"Question {turn}: {LONG}")
            shown = context(page, thread)
            assert (shown["known"], shown["window"], shown["assumed"]) == (False, None, 96_000)
            assert shown["auto_on"] is False
            assert shown["tokens"] > 0.6 * (96_000 - 32_000) * 1.2  # a summary would be due
            assert not any(map(asks_for_summary, server.requests))

            page.do("PUT", "/everlong/api/settings", {"windows": {"main/house-model": 96_000}})
            shown = context(page, thread)
            assert (shown["known"], shown["window"], shown["assumed"], shown["auto_on"]) == (True, 96_000, None, True)
            page.say(thread, "And now?")
            stream.until("compacting", state=["done"])
        assert len(summaries(page, thread)) == 1


def test_FR_4_1_to_4_5_switches_and_the_threshold() -> None:
    with an_app(talk, window=WINDOW) as (app, _):
        page = app.page()
        settings = page.get("/everlong/api/settings")
        assert (settings["auto"], settings["threshold"]) == (True, 60)
        chatbox(page)
        thread = page.thread()
        seen = []
        for everywhere in (True, False):
            page.do("PUT", "/everlong/api/settings", {"auto": everywhere})
            for here in ("follow", "on", "off"):
                page.do("PATCH", f"/everlong/api/threads/{thread}", {"auto": here})
                seen.append(context(page, thread)["auto_on"])
        assert seen == [True, True, False, False, True, False]
        page.do("PUT", "/everlong/api/settings", {"auto": True})
        page.do("PATCH", f"/everlong/api/threads/{thread}", {"auto": "follow"})
        marks = {}
        for percent in range(40, 91, 5):
            page.do("PUT", "/everlong/api/settings", {"threshold": percent})
            marks[percent] = context(page, thread)["high"]
        assert marks == {percent: 1_680 * percent for percent in range(40, 91, 5)}
        for wrong in (35, 95, 62):
            assert page.ask("PUT", "/everlong/api/settings", {"threshold": wrong})[0] == 400


@pytest.mark.parametrize(
    ("fast", "naming", "writer"),
    [("quick", "", "quick"), ("", "main/namer", "namer"), ("quick", "main/namer", "namer"), ("", "", "talker")],
    ids=["the source's fast model", "the naming model", "a person's choice first", "the thread's own"],
)
def test_FR_5_1_to_5_4_who_summarises_and_names(fast: str, naming: str, writer: str) -> None:
    with ScriptedServer(talk, window=Window(WINDOW, told=True), models=("talker", "namer", "quick")) as server:
        source = Source(name="main", endpoint=Endpoint(url=server.url), fast_model=fast)
        with an_app(sources=(source,)) as (app, _):
            page = app.page()
            chatbox(page, naming_model=naming)
            thread = page.thread("", model="main/talker")
            with page.listen(thread) as stream:
                for turn in range(3):
                    page.say(thread, f"Question {turn}: {LONG}")
                stream.titled()
            page.compact(thread)
        beside = [asked for asked in server.requests if len(asked.messages) == 1 or asks_for_summary(asked)]
        assert len(beside) == 2
        assert {asked.model for asked in beside} == {writer}
