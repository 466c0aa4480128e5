"""CS-2 and the reading part of SB-4, for session files of other programs."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import CallId, History, JsonObject, Message, Role, Text, ToolCall, ToolResult, pairs_of
from everlong.wire import Document
from everlong.wire.sessions.agents import claude_code, codex, nanobot, pi
from everlong.wire.sessions.chats import chatbox
from tests.wire.sessions.reading import read, written
from tests.wire.sessions.samples import CHATBOX, LINE_SESSIONS, NANOBOT, NANOBOT_NEWER, Sample

FORMATS = (pi, claude_code, codex, nanobot, chatbox)


def through(module: ModuleType, messages: History) -> History:
    """The messages written as a session of the format and read again."""
    document = Document(fmt=module.NAME, messages=messages)
    if module is chatbox:
        return chatbox.parse_body(chatbox.render_body(document)).messages
    return read(module, written(module, document)).messages


def flat(messages: History) -> list[tuple[str, str]]:
    """Words, calls and results in order: formats differ in how many of them share a message."""
    spoken: list[tuple[str, str]] = []
    for message in messages:
        for part in message.parts:
            match part:
                case Text(text):
                    spoken.append((message.role.value, text))
                case ToolCall(call, name, arguments):
                    spoken.append(("call", f"{call} {name} {arguments}"))
                case ToolResult(call=call):
                    spoken.append(("result", f"{call} {part.text} {part.failed}"))
    return spoken


@st.composite
def conversations(draw: st.DrawFn) -> History:
    """Turns of a user, each answered in words or by way of calls; some words are Chinese."""
    messages: list[Message] = []
    number = 0
    for turn in range(draw(st.integers(1, 4))):
        messages.append(Message(Role.USER, (Text(f"question {turn} 问题"),)))
        for _ in range(draw(st.integers(0, 2))):
            calls = [CallId(f"call_{number + extra}") for extra in range(draw(st.integers(1, 3)))]
            number += len(calls)
            said = (Text("I look."),) if draw(st.booleans()) else ()
            made = tuple(ToolCall(call, "read_file", '{"path":"文件.py"}') for call in calls)
            messages.append(Message(Role.ASSISTANT, (*said, *made)))
            messages += [Message(Role.TOOL, (ToolResult(call, (Text(f"of {call}"),)),)) for call in calls]
        messages.append(Message(Role.ASSISTANT, (Text(f"answer {turn} 回答"),)))
    return tuple(messages)


@pytest.mark.parametrize("module", FORMATS, ids=lambda module: module.NAME)
@given(messages=conversations())
@settings(max_examples=40, deadline=None)
def test_CS_2_any_conversation_of_ours_goes_through_every_session_format(module: ModuleType, messages: History) -> None:
    again = through(module, messages)
    assert sorted(flat(again)) == sorted(flat(messages))
    assert [words for words in flat(again) if words[0] != "call"] == [
        words for words in flat(messages) if words[0] != "call"
    ]
    assert len(pairs_of(again)) == sum(len(message.calls) for message in messages)


@pytest.mark.parametrize("sample", LINE_SESSIONS, ids=lambda sample: sample.name)
def test_CS_2_a_session_becomes_our_messages_with_every_call_answered(sample: Sample) -> None:
    messages = read(sample.module, sample.lines).messages
    assert {message.origin for message in messages} == {sample.module.NAME}
    assert len(pairs_of(messages)) == sum(len(message.calls) for message in messages)


@pytest.mark.parametrize("target", FORMATS, ids=lambda module: f"to {module.NAME}")
@pytest.mark.parametrize("sample", LINE_SESSIONS, ids=lambda sample: sample.name)
def test_CS_2_a_session_of_one_program_becomes_one_of_another(sample: Sample, target: ModuleType) -> None:
    messages = tuple(
        message for message in read(sample.module, sample.lines).messages if message.role is not Role.SYSTEM
    )
    again = through(target, messages)
    assert [message.text for message in again if message.text] == [message.text for message in messages if message.text]
    assert sorted(result.call for message in again for result in message.results) == sorted(
        result.call for message in messages for result in message.results
    )


def test_CS_2_chatbox_becomes_our_messages_and_comes_back() -> None:
    found = chatbox.parse_body(CHATBOX)
    assert len(pairs_of(found.messages)) == sum(len(message.calls) for message in found.messages)
    assert chatbox.render_body(found) == CHATBOX


SUMMARIES: dict[str, JsonObject] = {
    "in nanobot's own place": {
        "metadata": {"_last_summary": {"text": "之前的对话摘要", "last_active": "2026-03-01T09:00:00"}}
    },
    "in the metadata": {"metadata": {"summary": "之前的对话摘要"}},
    "at the top of the line, as the document has it": {"summary": "之前的对话摘要"},
    "the one that nanobot keeps wins": {"metadata": {"_last_summary": {"text": "之前的对话摘要"}}, "summary": "older"},
}


@pytest.mark.parametrize("fields", SUMMARIES.values(), ids=SUMMARIES)
def test_SB_4_the_summary_is_restored_on_load(fields: JsonObject) -> None:
    lines = [{**NANOBOT[0], "last_consolidated": 4, **fields}, *NANOBOT[1:], {"role": "user", "content": "接着说"}]
    found = read(nanobot, lines)
    assert nanobot.summary_of(found.records) == "之前的对话摘要"
    summary, after = found.messages[found.boundaries[-1] :]
    assert summary.text.endswith("之前的对话摘要")
    assert after.text == "接着说"


def test_SB_4_evicted_messages_stay_in_the_file() -> None:
    found = read(nanobot, NANOBOT_NEWER)
    assert found.boundaries == (4,)
    assert [message.role.value for message in found.messages[:4]] == ["user", "assistant", "tool", "assistant"]
    assert written(nanobot, found) == NANOBOT_NEWER


def test_SB_4_a_session_without_a_summary_has_none() -> None:
    assert nanobot.summary_of(read(nanobot, NANOBOT).records) == ""


def test_SB_4_a_summary_of_what_is_no_longer_in_the_file_comes_first() -> None:
    lines = [{**NANOBOT[0], "summary": "before"}, *NANOBOT[1:]]
    found = read(nanobot, lines)
    assert found.boundaries == (0,)
    assert found.messages[0].text.endswith("before")


Edit = Callable[[Document], Document]
EDITS: dict[str, Edit] = {
    "the first message gone": lambda found: replace(found, messages=found.messages[1:]),
    "one message more": lambda found: replace(found, messages=(*found.messages, Message(Role.USER, (Text("more"),)))),
    "the last message shorter": lambda found: replace(
        found, messages=(*found.messages[:-1], found.messages[-1].with_parts((Text("short"),)))
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("sample", LINE_SESSIONS, ids=lambda sample: sample.name)
def test_CS_2_a_changed_conversation_is_written_in_its_own_format(sample: Sample, edit: Edit) -> None:
    changed = edit(read(sample.module, sample.lines))
    again = read(sample.module, written(sample.module, changed))
    expected = changed.messages
    if sample.module is codex and expected[0].role is not Role.SYSTEM and again.messages[0].role is Role.SYSTEM:
        expected = (again.messages[0], *expected)  # the instructions stand in the header, which is kept
    assert flat(again.messages) == flat(expected)
