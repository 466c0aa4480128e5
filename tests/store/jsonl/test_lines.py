"""Entries as lines of a session file: every entry comes back, large texts stand once, and nanobot can save them."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from everlong.core import (
    CallId,
    Entry,
    Image,
    Message,
    Opaque,
    Reasoning,
    Recalled,
    Role,
    Row,
    Text,
    ToolCall,
    ToolResult,
    Withdrawal,
)
from everlong.store.jsonl.lines import MARK, as_bytes, lines_of, mark_of, parse_entry
from everlong.wire import ANTHROPIC, OPENAI_CHAT
from tests.core.build import assistant, calls, result, system, user
from tests.store.contract.entries import EVERYTHING, HOSTILE_TEXTS, full_point

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
LARGE = "a long result, line after line\n" * 200

ENTRIES: dict[str, Entry] = {
    "system": system("be kind"),
    "user": user("hello"),
    "assistant": assistant("yes", reasoning="hm"),
    "calls": calls("1", "2"),
    "result": result("1", LARGE),
    "nothing": Message(Role.ASSISTANT, ()),
    "thoughts only": Message(Role.ASSISTANT, (Reasoning("hm", "sig"),), origin="anthropic"),
    "everything": EVERYTHING,
    "two results": Message(
        Role.TOOL, (ToolResult(CallId("1"), (Text(LARGE),)), ToolResult(CallId("2"), (Text(LARGE + "2"),), failed=True))
    ),
    "a picture in a result": Message(Role.TOOL, (ToolResult(CallId("1"), (Image("aGk=", "image/png"),)),)),
    "opaque": Message(Role.USER, (Opaque("future", '{"type": "future"}'),), origin="anthropic"),
    "with its own time": replace(user("hello"), time=datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=8)))),
    "time without a zone": replace(user("hello"), time=datetime(2020, 1, 1)),
    "the first day": replace(user("hello"), time=datetime(1, 1, 1, tzinfo=UTC)),
    "point": full_point(0),
    "withdrawal": Withdrawal(0),
    "recalled": Recalled(0, user("as you said")),
}


def again(entry: Entry) -> Entry | None:
    """Through the file and once more through nanobot's hands."""
    lines = [json.loads(as_bytes(line)) for line in lines_of(Row(0, "r", NOW, entry))]
    saved = [json.dumps(line, ensure_ascii=False).encode() for line in lines]
    return parse_entry([json.loads(line) for line in saved])


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_every_entry_comes_back(entry: Entry) -> None:
    assert again(entry) == entry


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
@pytest.mark.parametrize("kind", ["user", "call", "result", "name", "extra"])
def test_every_text_comes_back(text: str, kind: str) -> None:
    messages = {
        "user": user(text),
        "call": Message(Role.ASSISTANT, (ToolCall(CallId(text), text, text),)),
        "result": result(text, text),
        "name": replace(user("x"), name=text),
        "extra": replace(user("x"), extra=json.dumps({"field": text}), origin=OPENAI_CHAT.name),
    }
    assert again(messages[kind]) == messages[kind]


PARTS = st.one_of(
    st.builds(Text, st.text(max_size=8), st.sampled_from(["", '{"a":1}', "not JSON"])),
    st.builds(Reasoning, st.text(max_size=4), st.sampled_from(["", "sig", "[]"])),
    st.builds(ToolCall, st.text(max_size=3).map(CallId), st.text(max_size=3), st.sampled_from(["{}", "", "broken"])),
    st.builds(ToolResult, st.text(max_size=3).map(CallId), st.lists(st.builds(Text, st.text(max_size=4))).map(tuple)),
    st.builds(Image, st.just("aGk="), st.sampled_from(["image/png", ""])),
)
ORIGINS = st.sampled_from(["", "openai-chat", "anthropic", "nanobot", "gemini"])


@given(st.builds(Message, st.sampled_from(Role), st.lists(PARTS, max_size=3).map(tuple), origin=ORIGINS))
def test_any_message_comes_back(message: Message) -> None:
    assert again(message) == message


@pytest.mark.parametrize("origin", ["", OPENAI_CHAT.name, ANTHROPIC.name, "nanobot"])
@pytest.mark.parametrize("name", ["user", "result", "two results"])
def test_a_large_text_stands_in_the_file_once(origin: str, name: str) -> None:
    entry = user(LARGE) if name == "user" else ENTRIES[name]
    assert isinstance(entry, Message)
    written = b"".join(map(as_bytes, lines_of(Row(0, "r", NOW, replace(entry, origin=origin)))))
    assert written.count(json.dumps(LARGE)[1:-1].encode()) == (2 if name == "two results" else 1)


def test_plain_messages_are_plain_lines_with_a_small_mark() -> None:
    (line,) = lines_of(Row(0, "r", NOW, user("hello")))
    assert {key: line[key] for key in ("role", "content")} == {"role": "user", "content": "hello"}
    assert line[MARK] == {"id": "r", "time": NOW.isoformat(), "origin": "", "stamped": True}
    assert len(str(line["timestamp"])) == 26


@pytest.mark.parametrize("name", ["system", "point", "withdrawal", "recalled"])
def test_what_nanobot_must_not_send_looks_like_a_command_without_words(name: str) -> None:
    (line,) = lines_of(Row(0, "r", NOW, ENTRIES[name]))
    assert (line["content"], line["_command"], line["_hidden_history"]) == ("", True, True)


def test_the_mark_says_what_the_index_needs() -> None:
    (line,) = lines_of(Row(5, "r", NOW, Withdrawal(3)), anchor="p")
    mark = mark_of(line)
    assert mark is not None
    assert (mark.id, mark.time, mark.anchor, int(mark.kind)) == ("r", NOW, "p", 2)
    assert mark_of({"role": "user"}) is None
