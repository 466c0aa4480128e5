"""Titles and sub-agents of one client: conversations of their own, and no word of one in another."""

import json
import re
from collections import Counter as Tally
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import CallId, Message, Role, Text, ToolCall
from everlong.gateway.recall.history import Round, notes_of, put_back
from everlong.gateway.recall.tool import NAME
from everlong.llm import Answer, ReceivedRequest, ScriptedServer
from everlong.store import MemoryThreads
from everlong.wire import format_named
from tests.gateway.conversations.test_conversations import Desk, planted, said
from tests.gateway.resending import FORMATS, Resending, of_clients, valid_upstream
from tests.gateway.running import RunningGateway

Value = dict[str, Any]
TASK = "Please port the harbour office to the new ledger. Ask if anything is unclear."
SECRET = re.compile(r"(\w+)secret\d+x")
TOOLS: dict[str, Value] = {
    "anthropic": {"name": "read_file", "input_schema": {"type": "object"}},
    "openai-chat": {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}},
    "openai-responses": {"type": "function", "name": "read_file", "parameters": {"type": "object"}},
}


class Speaker(Resending):
    """One of several conversations of a client. Every result holds a word that only this conversation has."""

    results = 0

    def _result(self, call: str) -> list[Value]:
        """The usual file, with the word of this conversation in each line."""
        self.results += 1
        word = f"{self.system.split()[-1]}secret{self.results}x"
        text = json.dumps(super()._result(call)).replace("return", f"return {word} and")
        found: list[Value] = json.loads(text)
        return found


def owner(text: str) -> set[str]:
    """The conversations whose words stand in a text."""
    return set(SECRET.findall(text))


def clerk() -> Any:
    """A model that reads a file for each question, and in every third answer recalls what it has seen before."""
    asked_of: Tally[str] = Tally()

    def script(asked: ReceivedRequest) -> Answer:
        last = asked.messages[-1]
        if not last.results and "everlong_recall" not in asked.body.decode():
            return Answer(text='{"context": "A clerk works."}')  # a summary is wanted
        whom = next(iter(re.findall(r"You are (\w+)", asked.body.decode())), "")
        if not last.results:
            return Answer(text="I read it.", calls=(("read_file", '{"path": "ledger.py"}'),))
        asked_of[whom] += 1
        if asked_of[whom] % 3 == 0:
            return Answer(text="", calls=((NAME, '{"query": "secret return function"}'),))
        return Answer(text="Done.")

    return script


@pytest.mark.parametrize("fmt", FORMATS)
def test_conversations_of_one_key_with_the_same_first_words_never_see_each_other(fmt: str) -> None:
    main = Speaker(fmt, system="You are main", fields={"tools": [TOOLS[fmt]]})
    agents = [Speaker(fmt, model="gpt-4", system=f"You are {name}", fields=main.fields) for name in ("scout", "critic")]
    title = Speaker(fmt, model="gpt-4o-mini", system="You are title")
    with ScriptedServer(clerk()) as server, RunningGateway(upstream=server.url, recall_tool=True) as gateway:
        for turn in range(7):
            for speaker in (main, *agents):
                speaker.ask(gateway, TASK if turn == 0 else f"Question {turn}: which secret did you see first?")
                speaker.settle(gateway)
            title.messages = main.messages[:1]
            title.send(gateway)
        known = gateway.services.conversations.all()
        cut = {one.opening[0].text for one in known if gateway.services.engine.threads.thread(one.thread).points}
        valid_upstream(server)
    for asked in server.requests:
        assert len(owner(asked.body.decode())) <= 1, asked.number
    for asked in of_clients(server):
        speakers = set(re.findall(r"You are (\w+)", asked.body.decode()))
        assert owner(asked.body.decode()) <= speakers, asked.number
        assert len(speakers) == 1
    assert {one.opening[0].text for one in known} == {one.system for one in (main, *agents, title)}
    assert cut == {agent.system for agent in agents}, "by the window of the model"
    assert any(
        "everlong_recall" in asked.body.decode() and "scoutsecret1x" in str(asked.messages[-1].results)
        for asked in server.requests
    ), "a sub-agent recalls its own"


def test_an_equal_answer_of_another_conversation_gets_nothing_that_was_recalled() -> None:
    """Some servers count the ids of calls from zero in each conversation."""
    format_ = format_named("anthropic")
    ours, theirs = ToolCall(CallId("0"), NAME, '{"query": "x"}'), ToolCall(CallId("1"), "read_file", "{}")
    message = Message(Role.ASSISTANT, (Text("I read it."), ours, theirs))
    notes = notes_of(format_, [Round(message, {ours.id: "mainsecret1x"})], "main")
    shown: list[Any] = [
        {"role": "user", "content": "Question"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I read it."},
                {"type": "tool_use", "id": "1", "name": "read_file", "input": {}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "a"}]},
    ]
    assert "mainsecret1x" in json.dumps(put_back(format_, shown, notes.get, ["", "main", ""]))
    assert put_back(format_, shown, notes.get, ["", "scout", ""]) is shown


@pytest.mark.parametrize("fmt", ["anthropic", "openai-chat"])
@settings(max_examples=15, deadline=None)
@given(
    shared=st.integers(1, 5),
    turns=st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=12, max_size=40),
)
def test_no_word_of_one_is_in_a_request_of_another_unless_its_client_said_it(
    fmt: str, shared: int, turns: list[tuple[int, bool]]
) -> None:
    desk = Desk(MemoryThreads(), fmt)
    beginning = [said(at, at) for at in range(shared + 1 - shared % 2)]
    talks = [list(beginning) for _ in range(3)]
    number = 100
    for who, anew in turns:
        number += 2
        system = f"You are speaker planted{90_000 + who}x."
        if anew:  # the last message is written anew
            talks[who] = [*talks[who][:-1], said(number, 0)]
        else:
            talks[who] += [said(number, 1), said(number + 1, 2)]
        leading = [{"role": "system", "content": system}] if fmt == "openai-chat" else []
        sent = desk.request([*leading, *talks[who]], system=system)
        assert planted(sent) <= planted(json.dumps(talks[who]) + system)
        assert planted(system) <= planted(sent)
