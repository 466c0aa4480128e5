"""What another model is sent for a summary or a title, over HTTP, holds none of the conversation's secrets."""

import json

from everlong.core import CallId, EventKind, Message, Role, Text, ToolCall, ToolResult
from everlong.engine import Author, Call, Engine, Finished, Summaries, Titles, converse
from everlong.lab.secrets.corpus import KINDS, Sample, samples
from everlong.lab.secrets.measure import is_left_over
from everlong.llm import Answer, HttpModel, ScriptedServer
from everlong.store import open_store
from tests.engine.authors import HONEST, over_http_with

SECRETS = [sample for kind in KINDS for sample in samples(kind, 1, seed=11)]
THREAD = "a thread"


def told(number: int, sample: Sample) -> tuple[Message, ...]:
    """A round in which a secret is said, written in a call, and read from a file."""
    call = CallId(f"call-{number}")
    command = json.dumps({"command": f"cat settings-{number}\n{sample.made.text}"})
    return (
        Message(Role.USER, (Text(f"Look at this, number {number}:\n{sample.made.text}\nWhat is it?"),)),
        Message(Role.ASSISTANT, (Text("I look."), ToolCall(call, "bash", command))),
        Message(Role.TOOL, (ToolResult(call, (Text(f"found:\n{sample.made.text}\n"),)),)),
        Message(Role.ASSISTANT, (Text(f"Number {number} is what you said: {number} lines."),)),
    )


def bodies(server: ScriptedServer) -> str:
    """Everything that a server was sent, as texts."""
    return "\n".join(message.text for asked in server.requests for message in asked.messages)


def test_another_summariser_gets_none_of_the_secrets() -> None:
    async def run(own: HttpModel, other: HttpModel) -> None:
        with open_store("memory:") as store:
            engine = Engine(store)
            summaries = Summaries(engine, [Author(model=other, name="gpt-4o-mini")], own_model=False)
            for number, sample in enumerate(SECRETS):
                await engine.append(THREAD, told(number, sample))
                if number % 40 == 39:  # so that a second summary is shown the first with its facts
                    outcome = await summaries.compact(THREAD, Call(model="gpt-4o"), own, focus=sample.made.text)
                    assert outcome.kind is EventKind.SUMMARY_APPLIED, outcome
            await summaries.drain()

    with ScriptedServer(lambda _: Answer(text="ok")) as server, ScriptedServer(lambda _: Answer(text=HONEST)) as other:
        over_http_with((server, other), run)
        sent = bodies(other)
        assert not server.requests
    assert "number 0" in sent
    assert "[redacted]" in sent
    assert not [sample for sample in SECRETS if is_left_over(sample, sent)]


def test_the_naming_model_gets_none_of_the_secrets() -> None:
    async def run(own: HttpModel, other: HttpModel) -> None:
        with open_store("memory:") as store:
            engine = Engine(store)
            titles = Titles(engine, [Author(model=other, name="gpt-4o-mini")])
            for number, sample in enumerate(SECRETS):
                said = Message(Role.USER, (Text(f"Look at this, number {number}:\n{sample.made.text}"),))
                await engine.append(f"thread {number}", (said,))
                replies = [reply async for reply in converse(engine, own, f"thread {number}", Call(model="gpt-4o"))]
                assert isinstance(replies[-1], Finished)
            await titles.drain()

    with ScriptedServer(lambda _: Answer(text="ok")) as server, ScriptedServer(lambda _: Answer(text="Files")) as other:
        over_http_with((server, other), run)
        sent = bodies(other)
    assert sent.count("Look at this") == len(SECRETS)
    assert not [sample for sample in SECRETS if is_left_over(sample, sent)]
