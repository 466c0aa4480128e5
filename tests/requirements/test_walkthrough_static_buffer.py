"""The document about the background summary, walked through: T1 to T4, its session file, its section of system text.

Through the engine, with scripted models over HTTP and real stores.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from everlong.core import EventKind, History, Message, Role, user_text
from everlong.engine import Author, Call, Engine, Finished, Settings, Summaries, Threads, converse
from everlong.llm import Answer, HttpModel, ReceivedRequest, Refusal, ScriptedServer, Step
from everlong.store import import_session, open_store, sessions_in
from tests.core.build import assistant, system, user
from tests.engine.authors import over_http_with, structured
from tests.engine.talking import FORMATS, Talk, over_http
from tests.store.jsonl.session_files import path_of

KEY, MODEL = "cli:direct", "gpt-4o"
SECTION = "## Conversation Summary"
OLD = "The harbour master is called Ingrid."
PERSONA, MEMORY = "You are nanobot.", "## Memory\nThe owner likes short answers."
STANDING = (system(MEMORY),)  # what an agent sends with every request
NEW = structured(
    what_happened=["The user asked what each function does."],
    important_details=["Each function has a number."],
    ongoing_context="The questions so far were answered.",
)


def question(number: int) -> str:
    return f"What does function number {number} do in the file?"


def spoken(messages: int) -> list[Message]:
    """User and assistant in turn, the user first."""
    return [user(question(n // 2)) if n % 2 == 0 else assistant(f"It adds {n}.") for n in range(messages)]


def session_file(folder: Path, header: dict[str, object], said: list[Message]) -> Path:
    """A session as nanobot leaves it, with these fields in its metadata line."""
    first = {"_type": "metadata", "key": KEY, "created_at": "2026-02-16T17:34:12", "metadata": {}} | header
    lines = [first, *({"role": message.role.value, "content": message.text} for message in said)]
    path = path_of(folder, KEY)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def system_text(request: ReceivedRequest) -> str:
    return "\n".join(message.text for message in request.messages if message.role is Role.SYSTEM)


def history(request: ReceivedRequest) -> History:
    return tuple(message for message in request.messages if message.role is not Role.SYSTEM)


def ends_with_section(request: ReceivedRequest, words: str) -> None:
    """The section is the last of the system text, behind everything else that stands there."""
    text = system_text(request)
    before, _, section = text.rpartition(SECTION)
    assert words in section
    assert section.strip().startswith("<background")
    assert section.strip().endswith(">"), "nothing stands behind its frame"
    assert MEMORY in before


async def say(engine: Engine, model: HttpModel, text: str, thread: str = KEY) -> None:
    await engine.append(thread, [user(text)])
    call = Call(model=MODEL, standing=STANDING)
    replies = [reply async for reply in converse(engine, model, thread, call)]
    assert isinstance(replies[-1], Finished)


class Writer:
    """A summary model that answers when it may."""

    def __init__(self) -> None:
        self.asked, self.may_answer = Event(), Event()

    def __call__(self, _: ReceivedRequest) -> Step:
        self.asked.set()
        assert self.may_answer.wait(60)
        return Answer(text=NEW)


async def reached(event: Event) -> None:
    assert await asyncio.to_thread(event.wait, 60)


# --- T1 to T4 -------------------------------------------------------------------------------------------------------


def test_SB_6_the_timeline_of_the_document_in_its_own_session_file(tmp_path: Path) -> None:
    session_file(tmp_path, {"summary": OLD}, [*spoken(49), *(assistant(f"Part {n}.") for n in range(5))])
    writer = Writer()

    async def run(model: HttpModel, cheap: HttpModel) -> None:
        with open_store(f"jsonl:{tmp_path}") as store:
            engine = Engine(store, settings=Settings(preset="static-buffer"))
            summaries = Summaries(engine, [Author(model=cheap, name="gpt-4o-mini")], own_model=False)

            await say(engine, model, "T1")  # the 55th message: cut at once, a summary begun, the old one used
            t1 = server.requests[-1]
            assert 10 <= len(history(t1)) <= 11
            assert user_text(history(t1)[0]) == question(22), "from a user message on"
            ends_with_section(t1, OLD)
            await reached(writer.asked)
            assert summaries.running(KEY)
            told = writing.requests[0].messages[-1].text
            assert OLD in told
            assert [n for n in range(25) if question(n) in told] == list(range(22)), "what was evicted, nothing else"

            await say(engine, model, "T2")  # not cut, none begun, still the old one
            t2 = server.requests[-1]
            assert len(history(t2)) == len(history(t1)) + 2
            ends_with_section(t2, OLD)
            assert len(writing.requests) == 1

            writer.may_answer.set()  # T3: the summary is there, and kept
            await summaries.drain()
            assert not summaries.running(KEY)
            header = [json.loads(line) for line in path_of(tmp_path, KEY).read_text("utf-8").splitlines()]
            kept = [line for line in header if line.get("_type") == "metadata"][-1]
            assert "what each function does" in json.dumps(kept)

            await say(engine, model, "T4")  # the new one
            t4 = server.requests[-1]
            assert len(history(t4)) == len(history(t1)) + 4
            ends_with_section(t4, "The user asked what each function does.")
            await summaries.drain()
            assert len(writing.requests) == 1

        with open_store(f"jsonl:{tmp_path}") as store:  # another process goes on with it
            await say(Engine(store, settings=Settings(preset="static-buffer")), model, "T5")
            ends_with_section(server.requests[-1], "The user asked what each function does.")
            assert len(history(server.requests[-1])) == len(history(t1)) + 6
            texts = [row.entry.text for row in store.read(KEY) if isinstance(row.entry, Message)]
            assert all(question(n) in texts for n in range(25)), "what was evicted stays in the file"

    with ScriptedServer(lambda _: Answer(text="Fine.")) as server, ScriptedServer(writer) as writing:
        over_http_with((server, writing), run)


def test_SB_1_SB_3_the_buffer_stays_between_its_bounds_and_every_eviction_is_summarised(tmp_path: Path) -> None:
    async def run(model: HttpModel, cheap: HttpModel) -> None:
        store = open_store(f"sqlite:///{tmp_path / 'chat.db'}")
        talk = Talk(model, Settings(preset="static-buffer"), Call(model=MODEL), threads=store)
        summaries = Summaries(talk.engine, [Author(model=cheap, name="gpt-4o-mini")], own_model=False)
        for turn in range(70):
            await talk.say(question(turn))
            await summaries.drain()

    with (
        ScriptedServer(lambda _: Answer(text="Fine.")) as server,
        ScriptedServer(lambda _: Answer(text=NEW)) as writing,
    ):
        over_http_with((server, writing), run)
        lengths = [len(history(request)) for request in server.requests]
        told = [request.messages[-1].text.split("</conversation")[0] for request in writing.requests]
    assert max(lengths) <= 50
    cuts = [at for at in range(1, 70) if lengths[at] < lengths[at - 1]]
    assert [lengths[at] for at in cuts] == [11] * len(cuts)
    assert [lengths[at - 1] for at in cuts] == [49] * len(cuts), "not before the buffer is full"
    assert len(cuts) == len(told) == 3
    evicted = [n for text in told for n in range(70) if question(n) in text]
    assert evicted == list(range(60)), "each once, none lost"


def test_SB_5_a_summary_that_fails_does_not_disturb_the_conversation(tmp_path: Path) -> None:
    def script(request: ReceivedRequest) -> Step:
        away = "Stop here and summarise" in request.messages[-1].text
        return Refusal(500, "away") if away else Answer(text="Fine.")

    with ScriptedServer(script) as server:

        async def run(model: HttpModel) -> Talk:
            store = open_store(f"sqlite:///{tmp_path / 'chat.db'}")
            talk = Talk(model, Settings(preset="static-buffer"), Call(model=MODEL), threads=store)
            summaries = Summaries(talk.engine)
            for turn in range(30):
                assert isinstance((await talk.say(question(turn)))[-1], Finished)
                await summaries.drain()
            return talk

        talk = over_http(server, run)
        assert {request.model for request in server.requests} == {MODEL}, "no other model was set"
    assert EventKind.SUMMARY_FAILED.value in talk.kinds()
    assert len(talk.stored) == 1 + 60


def test_SB_1_the_two_figures_are_settings(tmp_path: Path) -> None:
    variables = {
        "EVERLONG_PRESET": "static-buffer",
        "EVERLONG_MESSAGE_BUFFER_LIMIT": "20",
        "EVERLONG_MESSAGE_BUFFER_MIN": "4",
    }
    with ScriptedServer(lambda _: Answer(text="Fine.")) as server:

        async def run(model: HttpModel) -> None:
            store = open_store(f"sqlite:///{tmp_path / 'chat.db'}")
            talk = Talk(model, Settings.from_environment(variables), Call(model=MODEL), threads=store)
            for turn in range(30):
                await talk.say(question(turn))

        over_http(server, run)
        lengths = [len(history(request)) for request in server.requests]
    assert max(lengths) == 19
    assert min(lengths[10:]) == 5


# --- summaries that are there already --------------------------------------------------------------------------------

HEADERS: dict[str, dict[str, object]] = {
    "the document's own place": {"summary": OLD},
    "nanobot's own place": {"metadata": {"_last_summary": {"text": OLD, "last_active": "2026-02-16T17:34:12"}}},
    "behind what it stands for": {"metadata": {"_last_summary": {"text": OLD}}, "last_consolidated": 20},
}
Opened = Callable[[Path], Threads]


def as_folder(folder: Path) -> Threads:
    return open_store(f"jsonl:{folder}")


def as_import(folder: Path) -> Threads:
    store = open_store(f"sqlite:///{folder / 'imported.db'}")
    (session,) = sessions_in(path_of(folder, KEY).read_bytes(), "file")
    import_session(store, session)
    return store


@pytest.mark.parametrize("opened", [as_folder, as_import])
@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("preset", ["static-buffer", "nanobot", "nanobot-v3"])
def test_SB_4_a_summary_of_the_session_file_is_sent_where_the_preset_puts_it(
    preset: str, header: dict[str, object], opened: Opened, tmp_path: Path
) -> None:
    session_file(tmp_path, header, spoken(60))
    with ScriptedServer(lambda _: Answer(text="Fine.")) as server:

        async def run(model: HttpModel) -> None:
            with opened(tmp_path) as store:
                await say(Engine(store, settings=Settings(preset=preset)), model, "And now?")

        over_http(server, run)
        (request,) = server.requests
    ends_with_section(request, OLD)
    assert system_text(request).count(OLD) == 1
    assert not any(OLD in message.text for message in history(request)), "in one place"
    sent = len(history(request)) - 1
    assert sent == (20 if preset == "static-buffer" else 50), "what the preset sends, whatever was summarised"


@pytest.mark.parametrize("preset", ["nanobot", "nanobot-v3"])
def test_N1_8_a_summary_of_messages_that_are_all_sent_is_not_sent_as_well(preset: str, tmp_path: Path) -> None:
    session_file(tmp_path, HEADERS["behind what it stands for"], spoken(30))
    with ScriptedServer(lambda _: Answer(text="Fine.")) as server:

        async def run(model: HttpModel) -> None:
            with as_folder(tmp_path) as store:
                await say(Engine(store, settings=Settings(preset=preset)), model, "And now?")

        over_http(server, run)
        (request,) = server.requests
    assert len(history(request)) == 31
    assert SECTION not in system_text(request)


# --- the section, in every format ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", FORMATS)
def test_SB_5_the_section_ends_the_system_text_in_every_format(fmt: str, tmp_path: Path) -> None:
    session_file(tmp_path, {"summary": OLD}, [system(PERSONA), *spoken(60)])
    with ScriptedServer(lambda _: Answer(text="Fine.")) as server:

        async def run(model: HttpModel) -> None:
            with as_folder(tmp_path) as store:
                engine = Engine(store, settings=Settings(preset="static-buffer"))
                await engine.append(KEY, [user("And now?")])
                call = Call(model=MODEL, fmt=fmt, standing=STANDING, max_tokens=500)
                assert isinstance([reply async for reply in converse(engine, model, KEY, call)][-1], Finished)

        over_http(server, run, fmt)
        (request,) = server.requests
    ends_with_section(request, OLD)
    leading = [message.role is Role.SYSTEM for message in request.messages]
    assert leading == sorted(leading, reverse=True), "no system text further back"
    assert system_text(request).startswith(PERSONA)
