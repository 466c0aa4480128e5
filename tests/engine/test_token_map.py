"""The token map: every token is in one place, every message has a title, what repeats is found."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import CallId, Image, Message, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.engine.token_map import TokenMap, map_tokens
from everlong.tokens import Counter
from tests.core.build import assistant, calls, result, system, user

COUNTER = Counter("gpt-4o")
LONG = "the same forty words again and again " * 12


def mapped(*messages: Message, tools: tuple[str, ...] = ()) -> TokenMap:
    return map_tokens(messages, COUNTER, tools)


TALK = (
    system("You help."),
    user("Read it"),
    calls("1", name="read_file", arguments='{"path": "a.py"}'),
    result("1", LONG),
    assistant("It is a file.", reasoning="Let me think."),
    user("And the other?"),
)


def test_the_total_is_what_the_counter_says() -> None:
    weights = mapped(*TALK, tools=('{"name": "read_file"}',))
    assert weights.total == COUNTER.messages(TALK) + COUNTER.tools(['{"name": "read_file"}'])
    assert [message.tokens for message in weights.messages] == [COUNTER.message(message) for message in TALK]


def test_rounds_are_named_by_what_was_asked() -> None:
    rounds = mapped(*TALK).rounds
    assert [(r.start, r.stop, r.title) for r in rounds] == [(1, 5, "Read it"), (5, 6, "And the other?")]


def test_a_result_is_named_by_its_call() -> None:
    weights = mapped(*TALK)
    assert weights.messages[3].title == weights.messages[2].title == "read_file a.py"
    assert weights.messages[3].tools == ("read_file",)


def test_a_result_without_its_call_has_an_unknown_tool() -> None:
    weights = mapped(user("x"), result("lost"))
    assert weights.messages[1].tools == ("(unknown tool)",)
    assert weights.by_tool[0].calls == 0


def test_tools_are_weighed_by_calls_and_results() -> None:
    (tool,) = mapped(*TALK).by_tool
    assert (tool.name, tool.calls) == ("read_file", 1)
    assert tool.tokens == tool.call_tokens + tool.result_tokens
    assert tool.result_tokens > tool.call_tokens


def test_protection_has_its_reason() -> None:
    reasons = {message.index: str(message.protected) for message in mapped(*TALK).messages if message.protected}
    assert reasons == {0: "system text", 1: "task", 5: "last user message"}


def test_heaviest_first_and_of_equals_the_older() -> None:
    weights = mapped(user("a"), assistant(LONG), user("b"))
    assert [message.index for message in weights.heaviest] == [1, 0, 2]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (user("words"), "text"),
        (calls("1", arguments='{"text": "one two three four"}'), "calls"),
        (result("1", "one two three"), "results"),
        (assistant("ok", reasoning="a long thought about many things"), "reasoning"),
        (Message(Role.USER, (Text("see"), Image(data="aGk=", media_type="image/png"))), "images"),
        (Message(Role.ASSISTANT, (Opaque("box", '{"type":"box"}'),)), "other"),
        (Message(Role.ASSISTANT, ()), "text"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_message_is_what_most_of_it_is(message: Message, kind: str) -> None:
    assert mapped(message).messages[0].kind == kind


def test_neighbours_of_one_kind_are_one_piece() -> None:
    message = Message(Role.ASSISTANT, (Text("a"), Text("b"), Reasoning("c"), Text("d")))
    assert [kind for kind, _ in mapped(message).messages[0].pieces] == ["text", "reasoning", "text"]


def test_what_repeats_is_named_with_its_places_and_cost() -> None:
    history = (user("go"), calls("1"), result("1", LONG), calls("2"), result("2", LONG), calls("3"), result("3", LONG))
    (repeat,) = mapped(*history).repeats
    assert repeat.messages == (2, 4, 6)
    assert repeat.wasted == 2 * COUNTER.text(LONG)


def test_short_texts_may_repeat() -> None:
    assert mapped(user("yes"), assistant("ok"), user("yes")).repeats == ()


def test_an_empty_history_weighs_nothing() -> None:
    weights = mapped()
    assert (weights.total, weights.messages, weights.rounds, weights.heaviest) == (0, (), (), ())


PARTS = st.sampled_from(
    [
        Text("hello world"),
        Text(""),
        Reasoning("thinking"),
        ToolCall(CallId("1"), "read", '{"path": "x"}'),
        ToolResult(CallId("1"), (Text("done"), Image(data="aGk=", media_type="image/png"))),
        Image(data="aGk=", media_type="image/png"),
        Opaque("box", "{}"),
    ]
)
MESSAGES = st.builds(
    Message, st.sampled_from(list(Role)), st.lists(PARTS, max_size=4).map(tuple), st.sampled_from(["", "ada"])
)


@given(st.lists(MESSAGES, max_size=8))
@settings(max_examples=60, deadline=None)
def test_roles_kinds_and_rounds_add_up_to_the_total(history: list[Message]) -> None:
    weights = map_tokens(history, COUNTER, ("{}",))
    assert sum(tokens for _, tokens, _ in weights.by_role) + weights.schemas == weights.total
    assert sum(tokens for _, tokens in weights.by_kind) + weights.schemas == weights.total
    head = weights.rounds[0].start if weights.rounds else len(history)
    assert (
        sum(message.tokens for message in weights.messages[:head])
        + sum(r.tokens for r in weights.rounds)
        + weights.schemas
        == weights.total
    )
