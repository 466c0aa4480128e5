"""Cache marks that a client sets itself: forwarded where it set them, whatever is said twice, and never too many."""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import Phase, example, given, settings, strategies as st

from everlong.llm import Answer, ScriptedServer, Window
from everlong.store import MemoryThreads
from everlong.wire import ANTHROPIC, CacheMarks, problems
from tests.gateway.conversations.test_conversations import Desk
from tests.gateway.resending import Resending, of_clients, resets, valid_upstream
from tests.gateway.running import RunningGateway
from tests.llm.marked_cache import marks_of

MARKS = cast(CacheMarks, ANTHROPIC.marks)
Value = dict[str, Any]
MARK: Value = {"type": "ephemeral"}
HOOK = "The hook says: go on, and mind the style guide."
FILLING = " ".join(f"plain{number}" for number in range(60))


def marked_at_the_end(_fmt: str, messages: Sequence[Value], _turn: int) -> list[Value]:
    """As Claude Code marks: the system text (in `fields`) and the last two messages of each request."""
    return [_marked(message) if at >= len(messages) - 2 else message for at, message in enumerate(messages)]


def _marked(message: Value, mark: Value = MARK) -> Value:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return message | {"content": [*blocks[:-1], blocks[-1] | {"cache_control": mark}]}


class Repeating(Resending):
    """A client whose user says the same words in every turn, and whose hook adds the same text to them."""

    def body(self) -> Value:
        system = [{"type": "text", "text": self.system, "cache_control": MARK}, {"type": "text", "text": HOOK}]
        return super().body() | {"system": [*system[:1], system[1] | {"cache_control": MARK}]}

    def go_on(self, gateway: RunningGateway) -> None:
        hook = [{"type": "text", "text": HOOK}, {"type": "text", "text": "continue"}]
        self.messages.append({"role": "user", "content": hook})
        self._answered(self.send(gateway))


@pytest.mark.parametrize("window", [100_000, 6_000], ids=["roomy", "past the window"])
def test_words_said_again_and_again_are_marked_where_the_client_marks_them(window: int) -> None:
    client = Repeating("anthropic", disguise=marked_at_the_end)
    with (
        ScriptedServer(lambda asked: Answer(text=FILLING), window=Window(window, told=True)) as server,
        RunningGateway(upstream=server.url, summaries="off") as gateway,
    ):
        for _ in range(40):
            client.go_on(gateway)
        valid_upstream(server)
    requests = of_clients(server)
    sent = [json.loads(asked.body) for asked in requests]
    ends = [[str(at) for at in range(len(body["messages"]))[-2:]] for body in sent]
    assert [marks_of(body) for body in sent] == [["system", "system", *end] for end in ends]
    assert (resets(requests) > 0) == (window < 100_000)


def _plain(message: Value) -> str:
    content = message["content"]
    words = content if isinstance(content, str) else "".join(block["text"] for block in content)
    return f"{message['role']}: {words}"


def _is_marked(message: Value) -> bool:
    return not isinstance(message["content"], str) and any("cache_control" in block for block in message["content"])


WORDS = tuple(f"{start} {FILLING}" for start in ("continue", "go on", "as before", "yes"))
#: What is said next, and which of the newest messages are marked then, counted from the end.
TURNS = st.lists(
    st.tuples(st.integers(0, len(WORDS) - 1), st.frozensets(st.integers(0, 30), max_size=3)), min_size=20, max_size=45
)


@settings(max_examples=20, phases=[Phase.explicit, Phase.generate])
@given(turns=TURNS, in_front=st.booleans())
@example(turns=[(0, frozenset({0, 1, 2}))] * 40, in_front=True)
@example(turns=[(at % 2, frozenset({0, 2, 12})) for at in range(40)], in_front=True)
def test_marks_stand_where_the_client_set_them_before_and_after_compactions(
    turns: list[tuple[int, frozenset[int]]], in_front: bool
) -> None:
    desk, said = Desk(MemoryThreads(), "anthropic"), []
    system = [{"type": "text", "text": "Be brief."} | ({"cache_control": MARK} if in_front else {})]
    for number, (words, places) in enumerate(turns):
        said.append({"role": "user" if number % 2 == 0 else "assistant", "content": WORDS[words]})
        if number % 2:
            continue
        marked = {len(said) - 1 - place for place in places}
        asked = [_marked(message) if at in marked else message for at, message in enumerate(said)]
        conversation, body = desk.placed(asked, system=system)
        sent = json.loads(body)
        assert problems("anthropic", sent) == []
        assert len(marks_of(sent)) <= MARKS.most
        if not in_front and not marked & set(range(len(said))):
            continue  # the gateway sets its own
        assert marks_of(sent).count("system") == in_front
        row = desk.threads.open(conversation.thread).point
        since = len(said) if row is None else sum(start >= row.entry.boundary for start in conversation.starts)
        spoken = {_plain(message) for message in asked}
        theirs = [message for message in sent["messages"] if _plain(message) in spoken]  # not what was recalled
        assert list(map(_plain, theirs[-since:])) == list(map(_plain, asked[-since:]))
        assert list(map(_is_marked, theirs[-since:])) == list(map(_is_marked, asked[-since:]))
        assert sum(map(_is_marked, theirs[:-since])) <= sum(map(_is_marked, asked[:-since]))


def _forwarded(messages: list[Value], **fields: Any) -> Value:
    with ScriptedServer(lambda _: Answer(text="ok")) as server, RunningGateway(upstream=server.url) as gateway:
        client = Resending("anthropic", fields=fields, messages=messages)
        client.send(gateway)
        valid_upstream(server)
        value: Value = json.loads(of_clients(server)[0].body)
    return value


CALL: Value = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"cache_control": "of the tool"}}
RESULT: Value = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "line 1"}


def test_a_message_that_is_joined_with_its_neighbour_keeps_the_mark_of_its_end() -> None:
    messages: list[Value] = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": [CALL, CALL | {"id": "toolu_2"}]},
        {"role": "user", "content": [RESULT]},
        {"role": "user", "content": [RESULT | {"tool_use_id": "toolu_2", "cache_control": MARK | {"ttl": "1h"}}]},
    ]
    sent = _forwarded(messages)["messages"]
    assert [block["type"] for block in sent[-1]["content"]] == ["tool_result", "tool_result"]
    assert [block.get("cache_control") for block in sent[-1]["content"]] == [None, MARK | {"ttl": "1h"}]
    assert sent[1]["content"][0]["input"] == CALL["input"], "what a tool gets is no mark"


def test_of_more_marks_than_the_provider_takes_the_last_are_sent() -> None:
    talk = [{"role": "user" if at % 2 == 0 else "assistant", "content": f"words {at}"} for at in range(9)]
    tools = [{"name": "read_file", "input_schema": {"type": "object"}, "cache_control": MARK}]
    sent = _forwarded([_marked(message) for message in talk], tools=tools)
    assert marks_of(sent) == ["tools", "6", "7", "8"]
