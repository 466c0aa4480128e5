"""Entries as stored text: exact both ways, large texts apart, every reference found."""

import json

import pytest
from hypothesis import given, strategies as st

from everlong.core import (
    Action,
    CallId,
    Edit,
    Entry,
    Image,
    Message,
    Opaque,
    Point,
    Reasoning,
    Recalled,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Withdrawal,
    bytes_of,
    encode,
    ref_of,
)
from everlong.errors import StoreError
from everlong.relevance import terms_of
from everlong.store.bodies import (
    LARGE,
    EntryKind,
    body_of,
    decode_entry,
    encode_entry,
    entry_of,
    kind_of,
    large_texts_in,
    original_of,
    refs_of,
)
from everlong.store.terms import found_by, query_terms
from tests.core.build import assistant, calls, result, user

LONG = '一段很长的结果 \u2028 \ud800 \x00 " \\ {"@text":"' + "0" * 64 + '"} ' + "x" * LARGE
EDIT = Edit(at=3, step="soft_trim", action=Action.SHORTEN, reason="long", before=900, after=30, part=0, ref=ref_of("a"))

ENTRIES: dict[str, Entry] = {
    "words": user("hello"),
    "a large result": result("c", LONG),
    "a large result beside others": Message(
        Role.TOOL, (ToolResult(CallId("c"), (Text(LONG), Image(data="A" * 5_000, media_type="image/png"))), Text("so"))
    ),
    "every kind of part": Message(
        Role.ASSISTANT,
        (
            *(Reasoning(LONG, "sig"), Text("t", '{"a":1}'), ToolCall(CallId("1"), "run", json.dumps({"code": LONG}))),
            Opaque("new", json.dumps({"x": [LONG]})),
        ),
    ),
    "a text that looks like a mark": user('{"@text":"' + "0" * 64 + '"}'),
    "a point": Point(boundary=4, summary=(user(LONG), assistant("short")), reason="threshold", model="m", limit=9),
    "a point with edits": Point(boundary=1, summary=(), edits=(EDIT,) * 40, tokens_before=5, focus="tests"),
    "a withdrawal": Withdrawal(7),
    "a recalled message": Recalled(3, user(LONG)),
    "nothing said": Message(Role.ASSISTANT, ()),
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_an_entry_reads_back_equal(entry: Entry) -> None:
    body = body_of(entry)
    assert entry_of(body.kind, body.text, body.large) == entry
    assert decode_entry(kind_of(entry), encode_entry(entry)) == entry
    assert sorted(set(large_texts_in(body.text))) == sorted(body.large)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_large_texts_do_not_stay_in_the_body(entry: Entry) -> None:
    body = body_of(entry)
    assert all(len(text) >= LARGE for text in body.large.values())
    assert "x" * LARGE not in body.text


@given(st.text(max_size=30), st.integers(0, 2 * LARGE), st.integers(1, 3))
def test_any_text_of_any_length_reads_back(start: str, length: int, parts: int) -> None:
    message = Message(Role.USER, (Text(start + "y" * length),) * parts)
    body = body_of(message)
    assert entry_of(body.kind, body.text, body.large) == message
    assert len(body.large) <= 1


def test_equal_texts_have_one_name_whoever_says_them() -> None:
    said, returned = body_of(user(LONG)), body_of(result("c", LONG))
    assert said.large == returned.large


@pytest.mark.parametrize(
    ("kind", "text"),
    [(0, "{}"), (0, "no"), (1, '{"boundary":1}'), (2, "[]"), (3, '{"before":1}'), (9, "{}")],
    ids=["no message", "no JSON", "no point", "no withdrawal", "nothing recalled", "an unknown kind"],
)
def test_what_is_no_entry_is_one_clear_error(kind: int, text: str) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        decode_entry(kind, text)


def test_a_missing_large_text_is_an_error_not_a_shorter_message() -> None:
    body = body_of(user(LONG))
    with pytest.raises(StoreError, match="missing"):
        entry_of(body.kind, body.text, {})


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_H7_every_reference_of_an_entry_returns_bytes_of_that_name(entry: Entry) -> None:
    for ref in refs_of(entry):
        found = original_of(entry, ref)
        assert found is not None
        assert ref_of(found) == ref


def test_H7_messages_parts_and_parts_of_results_have_references() -> None:
    message = Message(Role.TOOL, (ToolResult(CallId("c"), (Text("one"), Text("two"))), Text("three")))
    wanted = [encode(message), "one", "two", "one\ntwo", "three"]
    assert refs_of(message) == {ref_of(content) for content in wanted}
    assert [original_of(message, ref_of(content)) for content in wanted] == [bytes_of(content) for content in wanted]
    assert original_of(message, ref_of("four")) is None


#: message -> words it is found by
FOUND = {
    "words": (user("Retries of sessions"), "retries sessions"),
    "Chinese by characters and pairs": (user("上下文"), "上下 下文 上 下 文"),
    "identifiers": (user("see read_file"), "see read_file"),
    "thoughts": (assistant("", reasoning="perhaps"), "perhaps"),
    "names and arguments of calls, escapes undone": (
        calls("1", name="run", arguments='{"code":"\\n\\u4e2d\\u6587", "n": [12, true, null]}'),
        "run code 中文 中 文 12",
    ),
    "arguments that are no JSON": (calls("1", name="run", arguments='{"code": "broken'), "run code broken"),
    "results": (result("1", "walrus"), "walrus"),
}


@pytest.mark.parametrize(("message", "words"), FOUND.values(), ids=FOUND)
def test_a_message_is_found_by(message: Message, words: str) -> None:
    assert found_by(message).keys() == {term for word in words.split() for term, _ in terms_of(word)}


def test_a_query_is_bounded() -> None:
    assert len(query_terms(" ".join(f"word{number}" for number in range(5_000)))) <= 32
    assert query_terms("the of 的") == {}


def test_the_stored_numbers_of_entry_kinds_never_change() -> None:
    assert {kind.name: kind.value for kind in EntryKind} == {
        "MESSAGE": 0,
        "POINT": 1,
        "WITHDRAWAL": 2,
        "RECALLED": 3,
        "REMOVAL": 4,
        "RESTORATION": 5,
        "GONE": 6,
    }


def test_rows_that_were_stored_long_ago_read_back() -> None:
    message = '{"role":"user","parts":[{"type":"text","text":"hi"}]}'
    stored = {
        0: (message, user("hi")),
        1: (
            f'{{"boundary":2,"summary":[{message}],"account":"{{}}"}}',
            Point(boundary=2, summary=(user("hi"),), account="{}"),
        ),
        2: ('{"point":1}', Withdrawal(1)),
        3: (f'{{"before":4,"message":{message}}}', Recalled(4, user("hi"))),
    }
    for kind, (text, entry) in stored.items():
        assert decode_entry(kind, text) == entry
        assert (kind_of(entry), encode_entry(entry)) == (kind, text)


@pytest.mark.parametrize(("length", "apart"), [(LARGE - 1, False), (LARGE, True)])
def test_a_text_is_stored_apart_from_a_fixed_length_on(length: int, apart: bool) -> None:
    body = body_of(Message(Role.USER, (Text("a"), Text("x" * length))))
    assert list(body.large.values()) == (["x" * length] if apart else [])
