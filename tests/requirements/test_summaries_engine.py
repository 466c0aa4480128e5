"""Summaries as the documents ask for them, by the engine, against scripted models over HTTP."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from everlong.core import EventKind, Message, Point, Role
from everlong.engine import Author, Call, Engine, Settings, Summaries, Titles, counter_for, due_at, newest_summary
from everlong.llm import (
    Answer,
    HttpModel,
    ReceivedRequest,
    Refusal,
    ScriptedModel,
    ScriptedServer,
    Step,
    Window,
    reads_files,
)
from everlong.llm.scripted.script import Script
from everlong.store import MemoryThreads, open_store
from everlong.summarize.text import counted_words
from tests.core.build import user
from tests.engine.authors import (
    HONEST,
    Gate,
    accounts,
    author,
    both,
    is_asked_to_summarise,
    of_kind,
    over_http_with,
    structured,
)
from tests.engine.talking import Talk, pages

PROSE = "The user asks what each function does, question after question. Each answer is a page of code."
LONG_PROSE = " ".join(f"Question {n}: what does function_{n} do? Answer {n}." for n in range(14))
BUFFER = structured(
    what_happened=["The user asked what each function does."],
    important_details=["Each function has a number."],
    ongoing_context="The questions so far were answered.",
)
CHAT = structured(
    finished_tasks=["The questions so far were answered."],
    current_state="The user asks what each function does.",
    key_context=["Each file is read once."],
    next_steps=[],
)


def says(text: str) -> Script:
    return lambda _: Answer(text=text)


def question(turn: int) -> str:
    return f"Question {turn}: what does function_{turn} do?"


ASKS = "What does function number {0} do in the file?"


def asks(turn: int) -> str:
    return ASKS.format(turn)


def told(asked: ReceivedRequest) -> list[Message]:
    """The messages of a request that are a summary of ours."""
    return [message for message in asked.messages if "A summary of the earlier part" in message.text]


def answers(asked: ReceivedRequest) -> Step:
    """Talks: an answer of a few hundred tokens."""
    return Answer(text=f"Answer {asked.number}.\n" + pages(asked.number, 20))


# --- N1: nanobot ------------------------------------------------------------------------------------


def test_N1_5_a_cheaper_model_writes_at_most_500_characters_which_follow_the_system_prompt_as_background() -> None:
    settings = Settings(preset="nanobot", summaries="on")

    async def run(model: HttpModel, cheap: HttpModel) -> None:
        talk = Talk(model, settings=settings, call=Call(model="gpt-4o", served=16_000, max_tokens=500))
        summaries = Summaries(talk.engine, [Author(model=cheap, name="gpt-4o-mini")], own_model=False)
        for turn in range(60):
            await talk.say(question(turn))
            await summaries.drain()
        kept = newest_summary(talk.threads, talk.thread)
        assert kept is not None
        assert 400 < len(kept.context) <= 500
        last = server.requests[-1].messages
        assert [message.role for message in last[:3]] == [Role.SYSTEM, Role.SYSTEM, Role.USER]
        assert last[0].text == "Work carefully."
        assert kept.context in last[1].text
        assert "as background: not a request" in last[1].text
        assert last[-1].text == question(59)  # and the last rounds are whole
        assert question(58) in [message.text for message in last]
        assert {asked.model for asked in cheaper.requests} == {"gpt-4o-mini"}

    with ScriptedServer(answers) as server, ScriptedServer(says(LONG_PROSE)) as cheaper:
        over_http_with((server, cheaper), run)


def test_N1_5_a_failed_summary_is_a_silent_drop() -> None:
    async def run(model: HttpModel, cheap: HttpModel) -> None:
        settings = Settings(preset="nanobot", summaries="on")
        talk = Talk(model, settings=settings, call=Call(model="gpt-4o", served=16_000, max_tokens=500))
        summaries = Summaries(talk.engine, [Author(model=cheap, name="gpt-4o-mini")], own_model=False)
        for turn in range(50):
            assert (await talk.say(question(turn)))[-1].message.text.startswith("Answer")  # type: ignore[union-attr]
            await summaries.drain()
        assert of_kind(talk, EventKind.SUMMARY_FAILED)
        assert not talk.threads.points(talk.thread)
        assert not any(told(asked) for asked in server.requests)

    with ScriptedServer(answers) as server, ScriptedServer(lambda _: Refusal(500, "away")) as cheaper:
        over_http_with((server, cheaper), run)


@pytest.mark.parametrize(("preset", "begun"), [("nanobot", False), ("nanobot-v3", False), ("auto", True)])
def test_N1_5_off_unless_asked_for_in_this_preset(preset: str, begun: bool) -> None:
    async def run() -> None:
        model = ScriptedModel(both(answers), Window(16_000, told=True))
        talk = Talk(model, settings=Settings(preset=preset))
        summaries = Summaries(talk.engine)
        for turn in range(60):
            await talk.say(question(turn))
        await summaries.drain()
        assert bool(of_kind(talk, EventKind.SUMMARY_STARTED)) == begun

    asyncio.run(run())


def test_N1_8_every_ten_rounds_there_after_twenty_and_an_emergency_needs_no_new_call() -> None:
    async def run() -> None:
        model = ScriptedModel(both(reads_files(1)), Window(32_000, told=True))
        talk = Talk(model, settings=Settings(preset="nanobot", summaries="on"))
        cheap = author()
        summaries = Summaries(talk.engine, [cheap], own_model=False)
        covered = []
        for turn in range(20):
            await talk.say(question(turn))
            await summaries.drain()
            account = newest_summary(talk.threads, talk.thread)
            covered.append(0 if account is None else account.covers)
        assert covered[8] == 0 < covered[9]
        assert len(set(covered)) == 3  # none, one, and a second after ten more rounds
        asked = len(cheap.model.requests)  # type: ignore[attr-defined]
        assert asked == 2
        talk.threads.append(talk.thread, [user("And now all at once: " + pages(7, 1_100))])
        prepared = await talk.engine.prepare(talk.thread, replace(talk.call, served=32_000))
        assert "A summary of the earlier part" in prepared.request.messages[1].text
        assert len(cheap.model.requests) == asked  # type: ignore[attr-defined]

    asyncio.run(run())


def test_N1_8_the_summary_is_kept_in_the_session_file_which_still_loads(tmp_path: Path) -> None:
    async def run() -> None:
        with open_store(f"jsonl:{tmp_path}") as store:
            talk = Talk(
                ScriptedModel(reads_files(1)), settings=Settings(preset="nanobot", summaries="on"), threads=store
            )
            summaries = Summaries(talk.engine, [author()], own_model=False)
            for turn in range(20):
                await talk.say(question(turn))
                await summaries.drain()
            before = newest_summary(store, talk.thread)
            messages = talk.stored
        with open_store(f"jsonl:{tmp_path}") as store:
            assert before is not None
            assert newest_summary(store, "talk") == before
            assert tuple(r.entry for r in store.read("talk") if isinstance(r.entry, Message)) == messages
        lines = [
            json.loads(line) for path in tmp_path.rglob("*.jsonl") for line in path.read_text("utf-8").splitlines()
        ]
        metadata = [line["metadata"] for line in lines if isinstance(line, dict) and line.get("_type") == "metadata"]
        assert "each function does" in json.dumps(metadata[-1], ensure_ascii=False)

    asyncio.run(run())


def test_N1_9_structured_with_its_five_parts_merged_newer_after_older_and_prose_where_no_json_comes() -> None:
    first = structured(
        decisions=["Questions are answered from the files."],
        constraints=["Each file is read once."],
        open_questions=["Which function is asked about next?"],
        file_changes=[],
        context="The user asks what each function does. " * 20,
    )
    second = structured(decisions=["Answers name the function."], context="The user asks what each function does.")
    texts = iter([first, second, PROSE])

    async def run() -> None:
        talk = Talk(ScriptedModel(reads_files(1)), settings=Settings(preset="nanobot", summaries="on"))
        summaries = Summaries(talk.engine, [author(lambda _: Answer(text=next(texts)))], own_model=False)
        for part in range(3):
            for turn in range(part * 8, part * 8 + 8):
                await talk.say(question(turn))
            assert (await summaries.compact(talk.thread, talk.call, talk.model)).kind is EventKind.SUMMARY_APPLIED
            account = newest_summary(talk.threads, talk.thread)
            assert account is not None
            if part == 0:
                assert len(account.context) <= 200
            if part >= 1:
                assert account.decisions == ("Questions are answered from the files.", "Answers name the function.")
        assert PROSE in account.context

    asyncio.run(run())


# --- SB: the static buffer --------------------------------------------------------------------------


def test_SB_2_what_was_evicted_and_the_summary_before_go_to_the_model_in_the_background() -> None:
    async def run() -> None:
        talk = Talk(ScriptedModel(says("Fine.")), settings=Settings(preset="static-buffer"))
        writer = author(BUFFER)
        summaries = Summaries(talk.engine, [writer], own_model=False)
        for turn in range(60):
            await talk.say(asks(turn))
            await summaries.drain()
        texts = [asked.messages[-1].text for asked in writer.model.requests]  # type: ignore[attr-defined]
        assert len(texts) >= 2
        seen = [[n for n in range(60) if asks(n) in text.split("</conversation")[0]] for text in texts]
        together = [n for part in seen for n in part]
        assert together == list(range(len(together)))  # each evicted message once, none left out
        assert "The user asked what each function does." in texts[1]

    asyncio.run(run())


def test_SB_3_one_at_a_time_and_an_eviction_meanwhile_is_not_lost() -> None:
    async def run() -> None:
        gate = Gate(answer=BUFFER)
        talk = Talk(ScriptedModel(says("Fine.")), settings=Settings(preset="static-buffer"))
        summaries = Summaries(talk.engine, [gate.author()], own_model=False)
        for turn in range(60):  # three evictions, while the first summary waits
            await talk.say(asks(turn))
        assert len(gate.requests) == 1
        gate.opened.set()
        await summaries.drain()  # nobody speaks any more: what was queued is looked at by itself
        assert len(gate.requests) == 2
        later = gate.requests[1].messages[-1].text
        assert asks(39) in later
        assert len(accounts(talk)) == 2
        talk.one_outcome_each()

    asyncio.run(run())


def test_SB_4_kept_in_the_sessions_metadata_and_used_after_a_load_while_evicted_messages_stay(tmp_path: Path) -> None:
    async def run() -> None:
        with open_store(f"jsonl:{tmp_path}") as store:
            talk = Talk(ScriptedModel(says("Fine.")), settings=Settings(preset="static-buffer"), threads=store)
            summaries = Summaries(talk.engine, [author(BUFFER)], own_model=False)
            for turn in range(30):
                await talk.say(asks(turn))
                await summaries.drain()
        with open_store(f"jsonl:{tmp_path}") as store:
            store.append("talk", [user("And now?")])
            prepared = await Engine(store, settings=Settings(preset="static-buffer")).prepare(
                "talk", Call(model="gpt-4o")
            )
            assert "The user asked what each function does." in prepared.request.messages[1].text
            said = [row.entry.text for row in store.read("talk") if isinstance(row.entry, Message)]
            assert all(asks(turn) in said for turn in range(30))

    asyncio.run(run())


@pytest.mark.parametrize("chinese", [False, True], ids=["English", "Chinese"])
def test_SB_5_under_its_heading_and_under_200_words(chinese: bool) -> None:
    said = "用户询问了第 {0} 个函数的作用。" if chinese else "The user asked what function number {0} does in the file."
    words = " ".join(said.format(number) for number in range(60))
    text = structured(what_happened=[words], important_details=[], ongoing_context=words)

    async def run() -> None:
        talk = Talk(ScriptedModel(says("好的。" if chinese else "Fine.")), settings=Settings(preset="static-buffer"))
        asked = "请问第 {0} 个函数有什么作用？文件要读取吗？" if chinese else ASKS
        summaries = Summaries(talk.engine, [author(text)], own_model=False)
        for turn in range(60):
            await talk.say(asked.format(turn))
            await summaries.drain()
        await talk.say(asked.format(99))
        section = talk.model.requests[-1].messages[1].text  # type: ignore[attr-defined]
        assert section.startswith("## Conversation Summary\n")
        inside = section.split("\n\n", 2)[2]
        assert 10 < counted_words(inside) <= 200 + 2  # and the closing tag

    asyncio.run(run())


def test_SB_5_without_a_summary_model_the_main_model_writes_and_a_failure_only_tells_itself() -> None:
    async def run() -> None:
        asked: list[ReceivedRequest] = []

        def fails(request: ReceivedRequest) -> Step:
            asked.append(request)
            return Refusal(500, "away")

        talk = Talk(ScriptedModel(both(says("Fine."), fails)), settings=Settings(preset="static-buffer"))
        summaries = Summaries(talk.engine)
        for turn in range(40):
            assert (await talk.say(asks(turn)))[-1].message.text == "Fine."  # type: ignore[union-attr]
            await summaries.drain()
        assert asked
        assert {request.model for request in asked} == {"gpt-4o"}
        assert of_kind(talk, EventKind.SUMMARY_FAILED)
        assert not talk.threads.points(talk.thread)

    asyncio.run(run())


# --- CB: Chatbox ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "threshold", "mark"),
    [
        (200_000, None, 100_800),
        (200_000, 0.8, 134_400),
        (200_000, 0.9, 151_200),
        (128_000, None, 57_600),
        (32_000, None, 9_600),
    ],
    ids=["the document's example", "set by the user", "90 %", "a smaller window", "one that the reserve would eat"],
)
def test_CB_1_1_the_threshold_is_of_the_window_without_the_reserve(
    window: int, threshold: float | None, mark: int
) -> None:
    settings = Settings(preset="chatbox", threshold=threshold)
    assert due_at(MemoryThreads(), settings, Call(model="scripted", served=window)) == mark


def chatting(model: ScriptedModel, window: int = 16_000) -> Talk:
    call = Call(model="gpt-4o", served=window, max_tokens=500)
    return Talk(model, settings=Settings(preset="chatbox"), call=call)


def test_CB_1_1_it_is_checked_after_each_finished_message() -> None:
    async def run() -> None:
        talk = chatting(ScriptedModel(both(answers, CHAT)))
        summaries = Summaries(talk.engine)
        sizes = []
        while not accounts(talk):
            prepared_before = len(talk.model.requests)  # type: ignore[attr-defined]
            await talk.say(question(len(sizes)))
            asked = talk.model.requests[prepared_before].tokens  # type: ignore[attr-defined]
            said = [row.entry for row in talk.threads.read(talk.thread, 0) if isinstance(row.entry, Message)]
            sizes.append(asked + counter_for(talk.call.model).message(said[-1]))
            await summaries.drain()
        mark = due_at(talk.threads, talk.settings, talk.call)
        assert sizes[-2] < mark <= sizes[-1]

    asyncio.run(run())


def test_CB_3_no_summary_begins_by_itself_while_nobody_knows_the_window() -> None:
    """In the terminal and the gateway as in the app: 96 000 are assumed until a person sets the window."""

    async def run() -> None:
        talk = Talk(
            ScriptedModel(both(answers, CHAT)), settings=Settings(preset="chatbox"), call=Call(model="house-model")
        )
        summaries = Summaries(talk.engine)
        for turn in range(4):
            await talk.say(f"{question(turn)} {pages(turn, 900)}")
            await summaries.drain()
        prepared = (await talk.engine.preview(talk.thread, talk.call)).prepared
        assert (prepared.window.known, prepared.window.context) == (False, 96_000)
        assert prepared.tokens > 38_400
        assert not accounts(talk)
        (hint,) = of_kind(talk, EventKind.CONTEXT_WARNED)
        assert "96,000 tokens are assumed" in hint.reason
        assert "until then no summary is written automatically" in hint.reason
        talk.threads.change(talk.thread, settings='{"window": 96000}')
        await talk.say(question(4))
        await summaries.drain()
        assert accounts(talk)

    asyncio.run(run())


def test_CB_1_2_to_1_6_over_everything_since_the_last_point_streamed_and_what_is_sent_starts_there() -> None:
    pieces: list[tuple[str, str]] = []

    async def run(model: HttpModel, fast: HttpModel) -> None:
        call = Call(model="gpt-4o", served=16_000, max_tokens=500)
        talk = Talk(model, settings=Settings(preset="chatbox"), call=call)
        writer = Author(model=fast, name="gpt-4o-mini")
        watch = lambda thread, text: pieces.append((thread, text))  # noqa: E731
        summaries = Summaries(talk.engine, [writer], own_model=False, watch=watch)
        for turn in range(60):
            before = talk.stored
            await talk.say(question(turn))
            await summaries.drain()
            assert talk.stored[: len(before)] == before  # CB-1.3: nothing stored changes
        made = accounts(talk)
        assert len(made) >= 2  # CB-1.4: many points, each with its summary, boundary and time
        assert all(point.summary and point.boundary and point.account for point in made)
        assert "The user asks what each function does." in summarizer.requests[1].messages[-1].text  # the one before
        assert len(pieces) > 4  # CB-1.2: progress shows
        assert "".join(text for _, text in pieces) == CHAT * len(summarizer.requests)

        row = talk.threads.points(talk.thread)[-1][0]
        assert isinstance(row.entry, Point)
        await talk.say("One more?")
        sent = server.requests[-1].messages
        since = [
            entry.entry.text
            for entry in talk.threads.read(talk.thread, row.entry.boundary)
            if isinstance(entry.entry, Message)
        ]
        assert "A summary of the earlier part" in sent[1].text  # CB-1.5: summary in front, then what came after
        assert sent[1].role is Role.USER
        assert [message.text for message in sent[2:]] == since[: len(sent) - 2]

        talk.threads.create("other")  # CB-1.6: another thread has a state of its own
        await talk.engine.append("other", [user("Hello?")])
        assert not [m for m in (await talk.engine.prepare("other", call)).request.messages if "summary" in m.text]
        assert talk.threads.open(talk.thread, row.order).point != talk.threads.open(talk.thread).point

    with ScriptedServer(answers) as server, ScriptedServer(says(CHAT)) as summarizer:
        over_http_with((server, summarizer), run)


@pytest.mark.parametrize("failing", [0, 1, 2], ids=["the fast model", "the naming model", "the session's model"])
def test_CB_5_the_fast_model_then_the_naming_model_then_the_sessions(failing: int) -> None:
    async def run() -> None:
        asked: list[str] = []

        def said(name: str, works: bool) -> Script:
            def script(_: ReceivedRequest) -> Step:
                asked.append(name)
                return Answer(text=HONEST) if works else Refusal(404, '{"error":{"message":"model not found"}}')

            return script

        talk = Talk(ScriptedModel(both(reads_files(1), said("session", True))), settings=Settings(preset="chatbox"))
        authors = [author(said("fast", failing < 1), name="fast"), author(said("naming", failing < 2), name="naming")]
        for turn in range(8):
            await talk.say(question(turn))
        summaries = Summaries(talk.engine, authors)
        assert (await summaries.compact(talk.thread, talk.call, talk.model)).kind is EventKind.SUMMARY_APPLIED
        assert asked == ["fast", "naming", "session"][: failing + 1]

    asyncio.run(run())


@pytest.mark.parametrize("preset", ["chatbox", "auto"])
def test_CB_8_the_prompt_follows_the_language_and_a_failed_summary_never_blocks_sending(preset: str) -> None:
    async def run() -> None:
        writer = author(lambda _: Refusal(500, "away"))
        model = ScriptedModel(says("好的。" + pages(4, 20)), Window(16_000, told=True))
        talk = Talk(model, settings=Settings(preset=preset))
        summaries = Summaries(talk.engine, [writer], own_model=False)
        for turn in range(80):
            replies = await talk.say(f"请问第 {turn} 个函数的作用是什么？文件里面怎么写的？")
            assert replies[-1].message.text.startswith("好的")  # type: ignore[union-attr]
            await summaries.drain()
        assert all("请停在这里" in asked.messages[-1].text for asked in writer.model.requests)  # type: ignore[attr-defined]
        assert EventKind.OVERFLOW_DETECTED.value not in talk.kinds()
        assert max(asked.tokens for asked in model.requests) <= 15_500
        account = newest_summary(talk.threads, talk.thread)
        if preset == "chatbox":  # trimmed by rule, from the full history each time
            assert of_kind(talk, EventKind.SUMMARY_FAILED)
            assert account is None
            assert model.requests[-1].tokens > 12_000
            assert model.requests[-1].messages[-1].text.startswith("请问第 79 个")
        else:
            assert of_kind(talk, EventKind.SUMMARY_APPLIED)[0].reason.startswith("by rules")
            assert account is not None
            assert (account.source, account.language) == ("rules", "zh")

    asyncio.run(run())


# --- CB-9: titles -----------------------------------------------------------------------------------

TITLES = {
    "a title": ('Title: "Login fails in Safari"', "Login fails in Safari"),
    "a refusal": ("I'm sorry, but I can't help with that.", "Why does the login page fail in Safari?"),
    "nothing": ("", "Why does the login page fail in Safari?"),
    "an address": ("See https://evil.example/x", "Why does the login page fail in Safari?"),
    "an essay": ("The login page fails. " * 40, "Why does the login page fail in Safari?"),
}


@pytest.mark.parametrize("name", TITLES)
def test_CB_9_the_naming_model_names_a_thread_once_and_its_first_words_do_otherwise(name: str) -> None:
    said, title = TITLES[name]

    async def run(model: HttpModel, naming: HttpModel) -> None:
        talk = Talk(model)
        titles = Titles(talk.engine, [Author(model=naming, name="gpt-4o-mini")])
        for text in ("Why does the login page fail in Safari?", "And in Firefox?", "Thanks!"):
            await talk.say(text)
            await titles.drain()
        assert talk.threads.thread(talk.thread).title == title
        assert len(names.requests) == 1
        assert not names.requests[0].tools
        spent = [e for e in of_kind(talk, EventKind.USAGE_RECORDED) if e.reason == "title"]
        assert len(spent) == 1

    with ScriptedServer(says("Hm.")) as server, ScriptedServer(says(said)) as names:
        over_http_with((server, names), run)


def test_CB_9_a_title_that_someone_gave_stays_also_one_given_meanwhile() -> None:
    async def run() -> None:
        gate = Gate(answer="Another title")
        talk = Talk(ScriptedModel())
        titles = Titles(talk.engine, [gate.author()])
        await talk.say("Why does the login page fail?")
        await gate.waiting.wait()
        talk.threads.change(talk.thread, title="Mine")
        gate.opened.set()
        await titles.drain()
        await talk.say("And now?")
        await titles.drain()
        assert talk.threads.thread(talk.thread).title == "Mine"
        assert len(gate.requests) == 1

    asyncio.run(run())


def test_CB_9_the_sessions_model_names_where_no_other_is_set_and_none_in_mode_trim() -> None:
    async def run(settings: Settings, title: str) -> None:
        named: Script = lambda asked: Answer(text="A title" if "Name this" in asked.messages[-1].text else "Hm.")  # noqa: E731
        talk = Talk(ScriptedModel(named), settings=settings)
        titles = Titles(talk.engine)
        await talk.say("Why does the login page fail?")
        await titles.drain()
        assert talk.threads.thread(talk.thread).title == title

    asyncio.run(run(Settings(), "A title"))
    asyncio.run(run(Settings(mode="trim"), "Why does the login page fail?"))


def test_a_summary_request_is_recognised() -> None:
    asked = ReceivedRequest(number=0, model="m", messages=(user("Stop here and summarise the conversation so far"),))
    assert is_asked_to_summarise(asked)
