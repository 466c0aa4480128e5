"""Thoughts of older rounds are left out, as far as the provider lets them go."""

import pytest

from everlong.compress.draft import bound_reasoning, draft_of
from everlong.compress.steps.trims.reasoning import reasoning
from everlong.core import CallId, Message, Reasoning, Role, Text, ToolCall, message_ref, ref_of
from tests.compress.talks import assert_lawful, draft, task
from tests.core.build import assistant, result, user


def thinking(text: str, *, call: str = "", signature: str = "") -> Message:
    said = ToolCall(CallId(call), "ls", "{}") if call else Text("said")
    return Message(Role.ASSISTANT, (Reasoning(text, signature), said))


def thoughts(messages: tuple[Message, ...]) -> list[str]:
    return [part.text for message in messages for part in message.parts if isinstance(part, Reasoning)]


def test_older_rounds_lose_theirs_and_the_last_keeps_its() -> None:
    before = draft(user("a"), thinking("one"), user("b"), thinking("two", call="1"), result("1"), thinking("three"))
    after = reasoning(before, task())
    assert thoughts(after.messages) == ["two", "three"]
    assert after.edits[0].ref == ref_of("one")
    assert thoughts(reasoning(before, task(), keep_last_round=False).messages) == []
    assert_lawful(before, after, task())


@pytest.mark.parametrize(("length", "kept"), [(2_000, True), (2_001, False)])
def test_only_above_a_length(length: int, *, kept: bool) -> None:
    after = reasoning(draft(user("a"), thinking("x" * length), user("b")), task(), longest=2_000)
    assert bool(thoughts(after.messages)) is kept


def test_all_thoughts_of_a_message_or_none() -> None:
    twice = Message(Role.ASSISTANT, (Reasoning("x" * 1_500), Text("so"), Reasoning("y" * 1_500), Text("then")))
    after = reasoning(draft(user("a"), twice, user("b")), task(), longest=2_000)
    assert after.messages[1].parts == (Text("so"), Text("then"))


def test_a_sealed_thought_is_whole_or_gone_and_comes_back_with_its_seal() -> None:
    sealed = thinking("", signature="c2VhbA==" * 400)
    after = reasoning(draft(user("a"), sealed, user("b")), task(), longest=2_000)
    assert after.messages[1].parts == (Text("said"),)
    assert after.edits[0].ref == message_ref(sealed)


def test_a_message_of_nothing_but_thoughts_goes() -> None:
    only = Message(Role.ASSISTANT, (Reasoning("hm"),))
    after = reasoning(draft(user("a"), only, assistant("ok"), user("b")), task())
    assert [slot.at for slot in after.slots] == [0, 2, 3]


OPEN_LOOP = (
    user("a"),
    thinking("old"),
    user("b"),
    thinking("one", call="1"),
    result("1"),
    thinking("two", call="2"),
    result("2"),
)


@pytest.mark.parametrize(
    ("fmt", "model", "kept"),
    [
        ("anthropic", "claude-opus-4-5", ["one", "two"]),
        ("gemini", "gemini-2.5-pro", ["one", "two"]),
        ("openai-responses", "gpt-5", ["one", "two"]),
        ("openai-chat", "gpt-4o", []),
        ("openai-chat", "deepseek/deepseek-v3.2", ["one", "two"]),
        ("openai-chat", "moonshotai/Kimi-K2-Thinking", ["one", "two"]),
    ],
)
def test_while_a_tool_loop_is_open(fmt: str, model: str, kept: list[str]) -> None:
    what = task(fmt=fmt, model=model)
    after = reasoning(draft_of(OPEN_LOOP, what), what, keep_last_round=False)
    assert thoughts(after.messages) == kept


def test_once_it_is_closed_only_some_models_want_them_back() -> None:
    history = (*OPEN_LOOP, assistant("done"))
    for model, kept in (("claude-opus-4-5", []), ("deepseek-chat", ["one", "two"])):
        what = task(fmt="anthropic", model=model)
        assert thoughts(reasoning(draft_of(history, what), what, keep_last_round=False).messages) == kept


def test_signed_thoughts_bind_in_any_format() -> None:
    history = (user("b"), thinking("one", call="1", signature="c2ln"), result("1"))
    assert bound_reasoning(draft_of(history, task()), task()) == {1}
