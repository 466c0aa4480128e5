"""The chat app's lines of the Chatbox document, at its API. Each test is named after the line it proves."""

import json
from pathlib import Path

import pytest

from everlong.core import CallId, Message, Role, Text, ToolCall, ToolResult
from everlong.llm import Answer, Endpoint, ReceivedRequest, Refusal, ScriptedServer, Step, Window
from everlong.web import Source
from tests.web.boats import CHAT_SUMMARY, SUMMARY, TALKS, WINDOW, WORDS, fill, points, summaries_asked, talks
from tests.web.running import an_app

#: What the app does by itself, and what the document describes.
in_both_presets = pytest.mark.parametrize("preset", ["auto", "chatbox"])


def test_CB_1_1_the_limit_is_the_window_without_its_reserve_times_the_threshold() -> None:
    with an_app() as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": "chatbox", "windows": {"main/scripted": 200_000}})
        thread = page.thread()
        page.say(thread, "hello")
        assert page.get(f"/everlong/api/threads/{thread}/context")["high"] == 100_800


@in_both_presets
def test_CB_1_2_above_it_a_summary_is_written_and_its_progress_shows(preset: str) -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        thread = page.thread()
        with page.listen(thread) as stream:
            fill(page, thread, 8)
            told = [event for event in stream.until("compacting", state=["done"]) if event["type"] == "compacting"]
        states = [event["state"] for event in told]
        assert states[0] == "started"
        assert "words" in states
        written = CHAT_SUMMARY if preset == "chatbox" else SUMMARY
        assert "".join(event["text"] for event in told if event["state"] == "words") == written


@in_both_presets
def test_CB_1_3_stored_messages_never_change_and_all_are_shown(preset: str) -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        thread = page.thread()
        fill(page, thread, 3)
        before = {row["order"]: (row["role"], row["text"]) for row in page.rows(thread)}
        page.compact(thread)
        fill(page, thread, 2)
        after = {row["order"]: (row["role"], row["text"]) for row in page.rows(thread)}
        assert {order: after[order] for order in before} == before


@in_both_presets
def test_CB_1_4_a_summary_is_a_row_of_its_own_and_there_may_be_many(preset: str) -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        thread = page.thread()
        for _ in range(2):
            fill(page, thread, 3)
            page.compact(thread)
        summaries = [row for row in page.rows(thread) if row["kind"] == "summary"]
        assert len(summaries) >= 2
        for row in summaries:
            assert row["covers"][0] == 0
            assert row["covers"][1] < row["order"]
            assert row["tokens_after"] < row["tokens_before"]
            assert WORDS in row["text"]
        in_force = sum(row["stands"] for row in summaries)
        assert page.get(f"/everlong/api/threads/{thread}")["points"] == in_force >= 1


@in_both_presets
def test_CB_1_5_what_is_sent_begins_with_the_newest_summary(preset: str) -> None:
    with an_app(TALKS, window=WINDOW) as (app, server):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        thread = page.thread()
        fill(page, thread, 3)
        page.compact(thread)
        page.say(thread, "And now?")
        sent = [message.text for message in server.requests[-1].messages]
        assert sent[0] == "You are a helpful assistant."
        assert WORDS in sent[1]
        first = [text for text in sent[2:] if "Question 0" in text]
        assert len(first) == (preset == "auto")  # ours keeps the first question: it is the task
        assert not any("Question 1" in text for text in sent[2:])
        fates = {row["order"]: row["sent"] for row in page.rows(thread) if row["kind"] == "message"}
        assert fates[2] == "covered"
        assert fates[max(fates)] == "whole"


@in_both_presets
def test_CB_1_6_threads_have_their_own_state_and_the_time_before_a_point_can_be_opened(preset: str) -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        one, other = page.thread(), page.thread()
        fill(page, one, 3)
        before = page.rows(one)
        page.compact(one)
        page.say(one, "And now?")
        assert points(page, other) == []
        point = points(page, one)[-1]
        earlier = page.rows(one, f"&point={point['order']}")
        assert earlier == before[: point["order"]]
        assert {row["sent"] for row in earlier} == {"whole"}


def test_CB_2_old_tool_calls_are_left_out_of_what_is_sent_and_stay_in_view() -> None:
    with an_app() as (app, server):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": "chatbox", "windows": {"main/scripted": 100_000}})
        thread = page.thread()
        for number in range(5):
            call = CallId(f"c{number}")
            app.state.threads.append(
                thread,
                [
                    Message(Role.USER, (Text(f"Question {number}"),)),
                    Message(Role.ASSISTANT, (ToolCall(call, "look", "{}"),)),
                    Message(Role.TOOL, (ToolResult(call, (Text(f"found {number}"),), name="look"),)),
                    Message(Role.ASSISTANT, (Text(f"Answer {number}"),)),
                ],
            )
        page.say(thread, "And?")
        sent = json.dumps(json.loads(server.requests[-1].body))
        assert "found 0" not in sent
        assert "found 4" in sent
        assert "Answer 0" in sent
        assert sum(bool(row["results"]) for row in page.rows(thread)) == 5


def test_CB_3_an_unknown_window_switches_compaction_off_until_it_is_set() -> None:
    with an_app(TALKS, told=False) as (app, server):
        page = app.page()
        thread = page.thread()
        fill(page, thread, 1)
        context = page.get(f"/everlong/api/threads/{thread}/context")
        assert (context["known"], context["window"], context["auto_on"], context["auto"]) == (
            False,
            None,
            False,
            "follow",
        )
        assert context["assumed"] == 96_000
        page.do("PUT", "/everlong/api/settings", {"preset": "chatbox"})
        context = page.get(f"/everlong/api/threads/{thread}/context")
        assert (context["known"], context["window"], context["assumed"]) == (False, None, 96_000)
        page.do("PUT", "/everlong/api/settings", {"preset": "auto", "windows": {"main/scripted": WINDOW}})
        context = page.get(f"/everlong/api/threads/{thread}/context")
        assert (context["known"], context["window"], context["auto_on"], context["window_source"]) == (
            True,
            WINDOW,
            True,
            "user",
        )
        assert not summaries_asked(server)


#: global switch, that of the thread, whether compaction happens by itself.
SWITCHES = [
    (True, "follow", True),
    (True, "on", True),
    (True, "off", False),
    (False, "follow", False),
    (False, "on", True),
    (False, "off", False),
]


@pytest.mark.parametrize(("everywhere", "here", "on"), SWITCHES, ids=lambda value: str(value))
@in_both_presets
def test_CB_4_a_thread_follows_the_switch_or_has_its_own(everywhere: bool, here: str, on: bool, preset: str) -> None:
    with an_app(TALKS, window=WINDOW) as (app, server):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        page.do("PUT", "/everlong/api/settings", {"auto": everywhere, "threshold": 40})
        thread = page.thread()
        page.do("PATCH", f"/everlong/api/threads/{thread}", {"auto": here})
        with page.listen(thread) as stream:
            fill(page, thread, 8)
            context = page.get(f"/everlong/api/threads/{thread}/context")
            assert (context["auto"], context["auto_on"]) == (here, on)
            if on:
                stream.until("compacting", state=["done"])
        assert bool(summaries_asked(server)) is on
        assert bool(points(page, thread)) is on


#: preset, percent, where it is due in a window of 200 000 tokens.
FIGURES = [
    ("chatbox", 40, 67_200),
    ("chatbox", 60, 100_800),
    ("chatbox", 90, 151_200),
    ("auto", 60, 116_928),
    ("auto", 90, 175_392),
]


@pytest.mark.parametrize("tools", [False, True], ids=["without tools", "with tools"])
@pytest.mark.parametrize(("preset", "threshold", "tokens"), FIGURES, ids=lambda value: str(value))
def test_CB_4_every_surface_has_the_one_figure_of_the_preset(
    preset: str, threshold: int, tokens: int, tools: bool, tmp_path: Path
) -> None:
    """The slider, the panel of a new thread and that of one that began, and the meter of the engine."""
    with an_app(folder=tmp_path) as (app, _):
        page = app.page()
        changes = {"preset": preset, "threshold": threshold, "tools": tools, "windows": {"main/scripted": 200_000}}
        page.do("PUT", "/everlong/api/settings", changes)
        (starts,) = (each["starts"] for each in page.get("/everlong/api/state")["presets"] if each["name"] == preset)
        thread = page.thread()
        new = page.get(f"/everlong/api/threads/{thread}/context")["high"]
        page.say(thread, "hello")
        begun = page.get(f"/everlong/api/threads/{thread}/context")["high"]
        assert starts[(threshold - 40) // 5]["at"] == new
        assert new == tokens if preset == "chatbox" or not tools else new > tokens
        assert begun == new if preset == "chatbox" else 0 < begun - new < 20, "ours counts what must stay to it"


def test_CB_4_the_app_starts_with_60_percent() -> None:
    with an_app() as (app, _):
        assert app.page().get("/everlong/api/state")["settings"]["threshold"] == 60


@pytest.mark.parametrize("threshold", [40, 60, 90])
def test_CB_4_the_threshold_is_where_a_compaction_is_due(threshold: int) -> None:
    with an_app(TALKS, window=WINDOW) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"threshold": threshold})
        thread = page.thread()
        page.say(thread, "hello")
        context = page.get(f"/everlong/api/threads/{thread}/context")
        assert context["threshold"] == threshold
        assert abs(context["high"] - context["limit"] * threshold / 100) <= context["limit"] / 100


@in_both_presets
def test_CB_4_off_still_fits(preset: str) -> None:
    with an_app(TALKS, window=4_096) as (app, server):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        thread = page.thread()
        page.do("PATCH", f"/everlong/api/threads/{thread}", {"auto": "off"})
        events = fill(page, thread, 10)
        assert not [event for event in events if event["type"] == "failed"]
        assert not summaries_asked(server)
        assert all(asked.tokens <= 4_096 for asked in server.requests)


@in_both_presets
def test_CB_5_the_chosen_model_summarises_else_the_naming_model_else_the_threads_own(preset: str) -> None:
    with an_app(TALKS, window=WINDOW, models=("talker", "namer", "writer")) as (app, server):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        used = []
        for chosen in (
            {"summary_model": "main/writer", "naming_model": "main/namer"},
            {"summary_model": "", "naming_model": "main/namer"},
            {"summary_model": "", "naming_model": ""},
        ):
            page.do("PUT", "/everlong/api/settings", chosen)
            thread = page.thread(model="main/talker")
            fill(page, thread, 4)
            page.compact(thread)
            used.append(summaries_asked(server)[-1].model)
        assert used == ["writer", "namer", "talker"]


@pytest.mark.parametrize("fast_model", ["quick", ""], ids=["which recommends a fast model", "which recommends none"])
def test_CB_5_a_conversation_on_a_private_server_reaches_no_other(fast_model: str) -> None:
    """A provider with a fast model of its own is the default; it gets no word for a summary, nor for a title."""
    private = ScriptedServer(TALKS, window=Window(WINDOW, told=True), models=("secret", "quick"))
    public = ScriptedServer(TALKS, window=Window(WINDOW), models=("gpt-4o", "gpt-4o-mini"))
    with private, public:
        provider = Source(name="openai", endpoint=Endpoint(url=public.url, provider="openai"), models=public.models)
        with an_app(sources=(provider,)) as (app, _):
            page = app.page()
            page.do("POST", "/everlong/api/sources", {"name": "house", "url": private.url, "fast_model": fast_model})
            assert page.get("/everlong/api/state")["default_model"] == "openai/gpt-4o"
            thread = page.thread("", model="house/secret")
            with page.listen(thread) as stream:
                fill(page, thread, 4)
                stream.titled()
            page.compact(thread)
        assert public.requests == []
        writer = fast_model or "secret"
        assert {asked.model for asked in summaries_asked(private)} == {writer}
        turns = 4 if writer == "secret" else 0
        assert sum(asked.model == writer for asked in private.requests) == turns + len(summaries_asked(private)) + 1


@in_both_presets
def test_CB_5_a_model_that_a_person_chose_elsewhere_does_write(preset: str) -> None:
    with (
        ScriptedServer(TALKS, window=Window(WINDOW, told=True), models=("secret",)) as private,
        an_app(TALKS) as (
            app,
            other,
        ),
    ):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        page.do("POST", "/everlong/api/sources", {"name": "house", "url": private.url})
        page.do("PUT", "/everlong/api/settings", {"summary_model": "main/scripted"})
        thread = page.thread(model="house/secret")
        fill(page, thread, 4)
        page.compact(thread)
        assert summaries_asked(other)
        assert not summaries_asked(private)


@in_both_presets
def test_CB_7_a_smaller_model_adapts_before_the_next_request(preset: str) -> None:
    small_one = ScriptedServer(TALKS, window=Window(4_096, told=True), models=("small",))
    with small_one as small, an_app(TALKS, window=64_000) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        page.do("POST", "/everlong/api/sources", {"name": "pocket", "url": small.url})
        thread = page.thread()
        fill(page, thread, 10)
        assert points(page, thread) == []
        page.do("PATCH", f"/everlong/api/threads/{thread}", {"model": "pocket/small"})
        context = page.get(f"/everlong/api/threads/{thread}/context")
        assert context["window"] == 4_096
        # The document trims every request, and a summary follows the answer; ours makes a point before the request.
        assert (context["tokens"] > context["limit"]) is (preset == "auto")
        with page.listen(thread) as stream:
            events = page.say(thread, "And now?")
            if preset == "chatbox":
                stream.until("compacting", state=["done"])
        assert not [event for event in events if event["type"] == "failed"]
        talked = [asked for asked in small.requests if asked not in summaries_asked(small)]
        assert [600 < asked.tokens < 4_096 for asked in talked] == [True]
        assert len(points(page, thread)) == 1


@in_both_presets
def test_CB_8_a_summary_that_fails_falls_back_to_rules_and_sending_goes_on(preset: str) -> None:
    broken = talks(Refusal(400, '{"error": {"message": "no summaries today"}}'))
    with an_app(broken, window=WINDOW) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        thread = page.thread()
        fill(page, thread, 3)
        done = page.compact(thread, "the boats")[-1]
        assert (done["state"], done["by_rules"]) == ("failed", True)
        assert "no summaries today" in done["detail"]
        assert points(page, thread)[-1]["focus"] == "the boats"
        assert page.say(thread, "And now?")[-1]["reason"] == "done"


@in_both_presets
def test_CB_9_titles_are_made_by_the_naming_model_once(preset: str) -> None:
    def script(asked: ReceivedRequest) -> Step:
        return Answer(text="Boats at the pier") if asked.model == "namer" else Answer(text="Seven boats.")

    with an_app(script, models=("talker", "namer")) as (app, server):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": preset})
        page.do("PUT", "/everlong/api/settings", {"naming_model": "main/namer"})
        thread = page.thread("", model="main/talker")
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "How many boats are at the pier?"})
            assert stream.titled() == "Boats at the pier"
        page.say(thread, "And tomorrow?")
        assert [asked.model for asked in server.requests].count("namer") == 1
        assert page.get("/everlong/api/threads")["threads"][0]["title"] == "Boats at the pier"


@in_both_presets
def test_CB_10_the_figures_of_success_can_be_read(preset: str) -> None:
    with ScriptedServer(TALKS, window=Window(4_096), models=("lies",)) as server:
        liar = Source(name="main", endpoint=Endpoint(url=server.url))
        with an_app(sources=(liar,)) as (app, _):
            page = app.page()
            page.do("PUT", "/everlong/api/settings", {"preset": preset})
            thread = page.thread()
            fill(page, thread, 10)
            page.thread()
            success = page.get("/everlong/api/usage")["success"]
            assert success["overflow_errors"] >= 1
            assert success["recovered"] == success["overflow_errors"]
            assert success["compactions"] >= 1
            assert (success["threads"], success["threads_by_hand"], success["longest"]) == (2, 2, 21)
