"""Every record of every format comes back as the same JSON, and each file is known by its own format only."""

from types import ModuleType

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Json, JsonObject, Message
from everlong.wire.document import Aside
from everlong.wire.sessions.agents import claude_code, codex, nanobot, pi
from everlong.wire.sessions.chats import chatbox
from everlong.wire.sessions.records import records_of
from tests.wire.sessions.reading import read, written
from tests.wire.sessions.samples import CHATBOX, LINE_SESSIONS, TIME, Sample, claude_line, codex_line, pi_entry

FORMATS = (pi, claude_code, codex, nanobot)


@pytest.mark.parametrize("sample", LINE_SESSIONS, ids=lambda sample: sample.name)
def test_every_line_comes_back_equal(sample: Sample) -> None:
    for line in sample.lines:
        assert sample.module.render_record(sample.module.parse_record(line)) == line


@pytest.mark.parametrize("sample", LINE_SESSIONS, ids=lambda sample: sample.name)
def test_an_untouched_session_is_written_as_it_was(sample: Sample) -> None:
    assert written(sample.module, read(sample.module, sample.lines)) == sample.lines


@pytest.mark.parametrize("sample", LINE_SESSIONS, ids=lambda sample: sample.name)
def test_a_session_is_known_by_its_own_format_only(sample: Sample) -> None:
    knowing = [module.NAME for module in (*FORMATS, chatbox) if module.recognises(sample.lines[:5])]
    assert knowing == [sample.module.NAME]


@pytest.mark.parametrize("sample", LINE_SESSIONS, ids=lambda sample: sample.name)
def test_a_session_that_lost_its_first_line_is_still_known(sample: Sample) -> None:
    if sample.module is nanobot or sample.name == "Codex, items bare":
        assert not pi.recognises(sample.lines[2:])  # nothing but the first lines tells these from other chats
    else:
        assert sample.module.recognises(sample.lines[1:])


BODIES: dict[str, JsonObject] = {
    "OpenAI chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "a data set's row": {"id": "row-1", "messages": [{"role": "user", "content": "hi"}]},
    "Anthropic": {"system": "s", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
    "a Responses item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    "nothing": {},
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_request_bodies_are_nobodys_session(body: JsonObject) -> None:
    assert [module.NAME for module in (*FORMATS, chatbox) if module.recognises([body])] == []


def block_entry(block: Json) -> JsonObject:
    return pi_entry({"role": "assistant", "content": [block], "model": "m"})


def claude_content(content: Json) -> JsonObject:
    return claude_line("u", None, "user", {"role": "user", "content": content})


#: Shapes off the beaten track: (format, record, what becomes of it).
SHAPES = {
    "pi: content as text": (pi, pi_entry({"role": "user", "content": "words"}), Message),
    "pi: no content": (pi, pi_entry({"role": "assistant", "stopReason": "error"}), Message),
    "pi: an image": (pi, block_entry({"type": "image", "data": "aGk=", "mimeType": "image/png", "more": 1}), Message),
    "pi: an unknown block": (pi, block_entry({"type": "hologram", "text": 3}), Message),
    "pi: a block that is text": (pi, block_entry("words"), Message),
    "pi: a call without arguments": (pi, block_entry({"type": "toolCall", "id": "c", "name": "f"}), Message),
    "pi: arguments that are a list": (
        pi,
        block_entry({"type": "toolCall", "id": "c", "name": "f", "arguments": [1]}),
        Message,
    ),
    "pi: redacted thinking": (
        pi,
        block_entry({"type": "thinking", "thinking": "", "thinkingSignature": "x", "redacted": True}),
        Message,
    ),
    "pi: a result without names": (pi, pi_entry({"role": "toolResult", "content": [], "isError": True}), Message),
    "pi: a summary as a message": (pi, pi_entry({"role": "branchSummary", "summary": "s", "fromId": "x"}), Message),
    "pi: a command kept from the model": (
        pi,
        pi_entry({"role": "bashExecution", "command": "ls", "output": "", "excludeFromContext": True}),
        Aside,
    ),
    "pi: an unknown role": (pi, pi_entry({"role": "oracle", "content": "?"}), Aside),
    "pi: a summary that is no text": (pi, {"type": "compaction", "summary": None, "timestamp": TIME}, Aside),
    "pi: an unknown entry": (pi, {"type": "future", "id": "f", "parentId": None}, Aside),
    "Claude Code: empty content": (claude_code, claude_content([]), Message),
    "Claude Code: a document": (claude_code, claude_content([{"type": "document", "source": {"a": 1}}]), Message),
    "Claude Code: a result of blocks": (
        claude_code,
        claude_content([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference"}]}]),
        Message,
    ),
    "Claude Code: an error of the API": (
        claude_code,
        claude_line("u", None, "assistant", {"role": "assistant", "content": []}, isApiErrorMessage=True),
        Aside,
    ),
    "Claude Code: an attachment": (claude_code, {"type": "attachment", "uuid": "u", "parentUuid": None}, Aside),
    "Codex: a search": (codex, codex_line("response_item", {"type": "web_search_call", "action": {}}), Message),
    "Codex: metadata beside the item": (
        codex,
        {**codex_line("response_item", {"type": "reasoning", "summary": []}), "ordinal": 4, "metadata": {"a": 1}},
        Message,
    ),
    "Codex: an unknown line": (codex, codex_line("world_state", {"full": True}), Aside),
    "nanobot: content as blocks": (
        nanobot,
        {"role": "user", "content": [{"type": "text", "text": "hi"}], "media": ["/a.png"], "timestamp": 3},
        Message,
    ),
    "nanobot: a note to itself": (nanobot, {"role": "assistant", "content": "help", "_command": True}, Aside),
}


@pytest.mark.parametrize(("module", "record", "kind"), SHAPES.values(), ids=SHAPES)
def test_odd_shapes_come_back_equal(module: ModuleType, record: JsonObject, kind: type) -> None:
    read_record = module.parse_record(record)
    assert isinstance(read_record, kind)
    assert module.render_record(read_record) == record


CHATBOX_SHAPES: dict[str, JsonObject] = {
    "words and parts": {"id": "a", "role": "user", "content": "old", "contentParts": [{"type": "text", "text": "new"}]},
    "words and no parts": {"id": "a", "role": "user", "content": "old", "contentParts": []},
    "nothing": {"id": "a", "role": "assistant", "error": "no key", "errorCode": 401},
    "an image with an address": {
        "id": "a",
        "role": "user",
        "contentParts": [{"type": "image", "url": "https://x/y.png"}],
    },
    "a call under way": {
        "id": "a",
        "role": "assistant",
        "contentParts": [{"type": "tool-call", "state": "call", "toolCallId": "c", "toolName": "f", "args": None}],
    },
    "a call without arguments or result": {
        "id": "a",
        "role": "assistant",
        "contentParts": [{"type": "tool-call", "state": "result", "toolCallId": "c", "toolName": "f"}],
    },
    "the same id for two calls": {
        "id": "a",
        "role": "assistant",
        "contentParts": [
            {"type": "tool-call", "state": "result", "toolCallId": "0", "toolName": "f", "args": {}, "result": None},
            {"type": "tool-call", "state": "result", "toolCallId": "0", "toolName": "f", "args": {}, "result": [1]},
        ],
    },
    "parts of an unknown kind": {"id": "a", "role": "user", "contentParts": [{"type": "sound"}, 5]},
}


@pytest.mark.parametrize("message", CHATBOX_SHAPES.values(), ids=CHATBOX_SHAPES)
def test_odd_chatbox_messages_come_back_equal(message: JsonObject) -> None:
    session: JsonObject = {"id": "s", "name": "n", "messages": [message]}
    assert chatbox.render_body(chatbox.parse_body(session)) == session


VALUES: st.SearchStrategy[Json] = st.recursive(
    st.sampled_from([None, True, False, 0, -3, 2.5, "", "x", "text", "message", "user", "assistant", "空"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
#: Every name that means something in one of the formats, so that odd values land where they matter.
KEYS = (
    *("type", "_type", "message", "role", "content", "contentParts", "payload", "summary", "uuid", "parentUuid"),
    *("id", "parentId", "timestamp", "toolCallId", "toolName", "isError", "stopReason", "text", "thinking"),
    *("arguments", "name", "tool_calls", "tool_call_id", "media", "state", "args", "result"),
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6)
NESTED = st.builds(
    lambda outer, inner, blocks, role: {
        **outer,
        "type": role if outer.get("type") == "text" else outer.get("type", "message"),
        "message": {"role": role, **inner, "content": blocks},
        "payload": {"type": "message", "role": role, "content": blocks},
        "role": role,
    },
    OBJECTS,
    OBJECTS,
    st.lists(OBJECTS, max_size=3),
    st.sampled_from(["user", "assistant", "toolResult", "custom", "tool", "bashExecution"]),
)


@pytest.mark.parametrize("module", FORMATS, ids=lambda module: module.NAME)
@given(record=OBJECTS | NESTED)
@settings(max_examples=100, deadline=None)
def test_any_record_comes_back_equal_and_a_refused_one_is_named(module: ModuleType, record: JsonObject) -> None:
    ((kept,), warnings) = records_of([("line 7", record)], module.parse_record)
    assert module.render_record(kept) == record
    assert all("line 7" in warning for warning in warnings)


@pytest.mark.parametrize("module", FORMATS, ids=lambda module: module.NAME)
@given(lines=st.lists(OBJECTS | NESTED, max_size=6))
@settings(max_examples=40, deadline=None)
def test_any_file_is_written_as_it_was(module: ModuleType, lines: list[JsonObject]) -> None:
    assert written(module, read(module, lines)) == lines


@given(messages=st.lists(OBJECTS | NESTED, max_size=4), points=st.lists(OBJECTS, max_size=2))
@settings(max_examples=60, deadline=None)
def test_any_chatbox_session_is_written_as_it_was(messages: list[JsonObject], points: list[JsonObject]) -> None:
    session: JsonObject = {**CHATBOX, "messages": [*messages], "compactionPoints": [*points]}
    assert chatbox.render_body(chatbox.parse_body(session)) == session
