"""Google's Agent Development Kit with our plugin: the real framework, a scripted provider over HTTP."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.events.event import Event
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types
from google.genai.errors import ServerError
from google.genai.types import Content, Part
from hypothesis import given, strategies as st

from everlong import count, fit, open_engine
from everlong.adapters.google_adk import EverlongPlugin, EverlongSummarizer
from everlong.core import EventKind
from everlong.llm import ReceivedRequest
from everlong.store import open_store
from everlong.testing import Answer, Refusal, ScriptedServer, Window, in_turn
from everlong.wire import problems
from everlong.wire.libraries.google_genai import LIBRARY
from tests.adapters.pages import example_of
from tests.wire.conversations import objects, texts, values

pytestmark = pytest.mark.filterwarnings("ignore")  # the framework has some of its own
LONG = "The ship sails north and the wind is fair. " * 90
REFUSED = '{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."}}'  # noqa: E501


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "key")


def runner_of(server: ScriptedServer, *plugins: EverlongPlugin, **app: Any) -> InMemoryRunner:
    model = Gemini(model="scripted", base_url=server.address)
    agent = LlmAgent(name="clerk", model=model, instruction="You are a careful clerk.")
    return InMemoryRunner(app=App(name="desk", root_agent=agent, plugins=list(plugins), **app))


async def say(
    runner: InMemoryRunner, words: str, *, user: str = "ann", session: str = "s", stream: bool = False
) -> str:
    """Say something in a session; return the last words of the answer."""
    service = runner.session_service
    if await service.get_session(app_name="desk", user_id=user, session_id=session) is None:
        await service.create_session(app_name="desk", user_id=user, session_id=session)
    said = ""
    config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
    message = Content(role="user", parts=[Part(text=words)])
    async for event in runner.run_async(user_id=user, session_id=session, new_message=message, run_config=config):
        if event.is_final_response() and event.content and not event.partial:
            said = "".join(part.text or "" for part in event.content.parts or ())
    return said


def contents_of(asked: ReceivedRequest) -> list[Any]:
    body = json.loads(asked.body)
    assert problems("gemini", body) == []
    return list(body["contents"])


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recalls = Answer(calls=(("recall", '{"what": "ship"}'),))
    with ScriptedServer(in_turn([recalls, Answer(text="The Marigold.")])) as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.address)
        names: dict[str, Any] = {}
        exec(compile(example_of("google-adk"), "google-adk.md", "exec"), names)
        assert asyncio.run(say(names["runner"], "Which ship?")) == "The Marigold."
    offered = json.loads(server.requests[0].body)["tools"][0]["functionDeclarations"]
    assert [tool["name"] for tool in offered] == ["recall"]
    with open_store("desk.db") as store:
        assert [thread.id for thread in store.threads()] == ["desk/ann/s/clerk"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_refusal_is_answered_with_a_smaller_request_and_taught_once(stream: bool) -> None:
    async def talk(server: ScriptedServer) -> list[str]:
        plugin = EverlongPlugin(open_engine("memory:"))
        runner = runner_of(server, plugin)
        answers = [await say(runner, f"Day {day}: {LONG}", stream=stream) for day in range(16)]
        kinds = [event.kind for event in plugin.keeper.engine.threads.events("desk/ann/s/clerk")]
        assert kinds.count(EventKind.OVERFLOW_RECOVERED) == kinds.count(EventKind.OVERFLOW_DETECTED) == 1
        return answers

    window = Window(9_000, body=REFUSED)
    with ScriptedServer(lambda asked: Answer(text=f"Noted {asked.number}."), window=window) as server:
        answers = asyncio.run(talk(server))
    assert all(answer.startswith("Noted") for answer in answers)
    assert len([asked for asked in server.requests if asked.tokens > 9_000]) == 1
    for asked in server.requests:
        contents_of(asked)


def test_another_failure_is_the_frameworks_own() -> None:
    with ScriptedServer(lambda _: Refusal(500, '{"error": {"code": 500, "message": "out of order"}}')) as server:
        runner = runner_of(server, EverlongPlugin())
        with pytest.raises(ServerError, match="out of order"):
            asyncio.run(say(runner, "Hello."))


def test_an_answer_to_a_request_that_was_cut_in_silence_is_asked_for_again() -> None:
    async def talk(server: ScriptedServer) -> str:
        runner = runner_of(server, EverlongPlugin())
        for day in range(8):
            said = await say(runner, f"Day {day}: {LONG}")
        return said

    with ScriptedServer(lambda asked: Answer(text=f"{asked.number}"), window=Window(4_096, truncates=True)) as server:
        said = asyncio.run(talk(server))
    assert said == f"{len(server.requests) - 1}", "the answer to the last request is the one that counts"
    assert len(server.requests) > 8
    assert server.requests[-1].tokens <= 4_096


def test_two_users_of_one_session_name_do_not_read_each_other() -> None:
    async def talk(server: ScriptedServer) -> None:
        plugin = EverlongPlugin(window=6_000)
        runner = runner_of(server, plugin)
        await say(runner, "The strongbox opens with 8812.", user="ann")
        for day in range(8):
            await say(runner, f"Day {day}: {LONG}", user="ann")
        await say(runner, "Which number opens the strongbox?", user="bob")
        assert "8812" in await plugin.keeper.arecalled("desk/ann/s/clerk", "strongbox")
        assert "8812" not in await plugin.keeper.arecalled("desk/bob/s/clerk", "strongbox")

    with ScriptedServer(lambda _: Answer(text="Noted.")) as server:
        asyncio.run(talk(server))
    assert "8812" not in server.requests[-1].body.decode()


def test_each_agent_of_a_session_has_its_own_thread_and_a_stable_prefix() -> None:
    def script(asked: ReceivedRequest) -> Answer:
        if "clerk" in asked.messages[0].text and asked.number == 0:
            return Answer(calls=(("transfer_to_agent", '{"agent_name": "pilot"}'),))
        return Answer(text=f"Said {asked.number}.")

    async def talk(server: ScriptedServer) -> list[str]:
        model = Gemini(model="scripted", base_url=server.address)
        pilot = LlmAgent(name="pilot", model=model, description="Steers.", instruction="You are the pilot.")
        clerk = LlmAgent(name="clerk", model=model, instruction="You are the clerk.", sub_agents=[pilot])
        plugin = EverlongPlugin()
        runner = InMemoryRunner(app=App(name="desk", root_agent=clerk, plugins=[plugin]))
        for words in ("Steer north.", "Steer south."):
            await say(runner, words)
        return [thread.id for thread in plugin.keeper.engine.threads.threads()]

    with ScriptedServer(script) as server:
        assert sorted(asyncio.run(talk(server))) == ["desk/ann/s/clerk", "desk/ann/s/pilot"]
    steered = [contents_of(asked) for asked in server.requests[1:]]
    assert steered[1][: len(steered[0])] == steered[0]


# --- summaries of events -----------------------------------------------------------------------


def event(words: str, author: str = "user", **more: Any) -> Event:
    role = "user" if author == "user" else "model"
    return Event(author=author, content=Content(role=role, parts=[Part(text=words)]), **more)


def test_a_summary_holds_the_users_words_and_goes_on_from_the_one_before() -> None:
    async def twice() -> tuple[Any, Any]:
        summarizer = EverlongSummarizer()
        first = await summarizer.maybe_summarize_events(
            events=[
                event("Never enter a ship under the seal XR-9120.", timestamp=1.0),
                event("Noted.", "clerk", timestamp=2.0),
            ]
        )
        assert first is not None
        compaction = first.actions.compaction
        seed = Event(author="model", content=compaction.compacted_content, timestamp=1.0)
        later = [seed, event("Write dates in the manner of Ostrava-3.", timestamp=3.0)]
        return first, await summarizer.maybe_summarize_events(events=later)

    first, second = asyncio.run(twice())
    assert (first.actions.compaction.start_timestamp, first.actions.compaction.end_timestamp) == (1.0, 2.0)
    text = second.actions.compaction.compacted_content.parts[0].text
    assert "XR-9120" in text
    assert "Ostrava-3" in text
    assert asyncio.run(EverlongSummarizer().maybe_summarize_events(events=[Event(author="user")])) is None


def test_a_session_is_compacted_with_our_summaries() -> None:
    async def talk(server: ScriptedServer) -> None:
        config = EventsCompactionConfig(summarizer=EverlongSummarizer(), compaction_interval=3, overlap_size=0)
        runner = runner_of(server, events_compaction_config=config)
        await say(runner, "Never enter a ship under the seal XR-9120.")
        for day in range(6):
            await say(runner, f"Day {day}: {LONG}")

    with ScriptedServer(lambda _: Answer(text="Noted.")) as server:
        asyncio.run(talk(server))
    assert "XR-9120" in server.requests[-1].body.decode()
    said = 6 * (server.requests[1].tokens - server.requests[0].tokens)
    assert server.requests[-1].tokens < said * 0.6


# --- contents ----------------------------------------------------------------------------------

blobs = st.builds(types.Blob, data=st.binary(max_size=6), mime_type=st.sampled_from(["image/png", "audio/wav"]))
signatures = st.none() | st.binary(min_size=1, max_size=4)
names = st.sampled_from(["read", "write"])
parts = (
    st.builds(Part, text=texts.filter(lambda text: "\ud83d" not in text), thought=st.none() | st.just(True))
    | st.builds(Part, inline_data=blobs)
    | st.builds(
        Part, file_data=st.builds(types.FileData, file_uri=st.just("gs://a/b.png"), mime_type=st.just("image/png"))
    )
    | st.builds(
        Part,
        function_call=st.builds(types.FunctionCall, name=names, args=st.none() | objects, id=st.none() | st.just("c1")),
        thought_signature=signatures,
    )
    | st.builds(
        Part,
        function_response=st.builds(
            types.FunctionResponse,
            name=names,
            id=st.none() | st.just("c1"),
            response=st.dictionaries(st.sampled_from(["result", "error", "output", "a"]), values, max_size=2),
        ),
    )
    | st.builds(Part, thought_signature=st.binary(min_size=1, max_size=4))
    | st.builds(Part, executable_code=st.builds(types.ExecutableCode, code=st.just("1"), language=st.just("PYTHON")))
)
contents = st.lists(
    st.builds(Content, role=st.sampled_from(["user", "model"]), parts=st.lists(parts, max_size=4)), max_size=4
)


@given(contents)
def test_contents_come_back_as_they_were(items: list[Content]) -> None:
    units = LIBRARY.read(items)
    assert [unit.items for unit in units] == [(item,) for item in items]
    assert LIBRARY.write([message for unit in units for message in unit.messages]) == items


def test_fit_takes_contents_and_gives_them_back() -> None:
    talk = [
        Content(role=role, parts=[Part(text=f"Day {day}. {LONG}" if role == "user" else "Noted.")])
        for day in range(12)
        for role in ("user", "model")
    ]
    talk.append(Content(role="user", parts=[Part(text="Which day was it?")]))
    assert count(talk, model="gemini-2.5-flash") > 6_000
    fitted = fit(talk, model="gemini-2.5-flash", budget=6_000)
    assert fitted.messages[-1] is talk[-1]
    assert all(isinstance(content, Content) for content in fitted.messages)
    assert count(fitted.messages, model="gemini-2.5-flash") <= 6_000
    sent = [content.model_dump(mode="json", exclude_none=True, by_alias=True) for content in fitted.messages]
    assert problems("gemini", {"contents": sent}) == []
