"""Contract: whatever left the window comes back by its reference, to the byte."""

from collections.abc import Callable

import pytest

from everlong.core import CallId, Message, Role, Text, ToolResult, bytes_of, encode, message_ref, ref_of
from everlong.engine import Threads
from tests.core.build import assistant, calls, result, user
from tests.store.contract.entries import EVERYTHING, HOSTILE_TEXTS, point, talk

Reopen = Callable[[], Threads]


@pytest.fixture
def thread(store: Threads) -> str:
    return store.create("t").id


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_the_original_of_a_text_a_result_and_a_message(store: Threads, thread: str, reopen: Reopen, text: str) -> None:
    said = (user(text), result("1", text), user(f"{text} and more"))
    store.append(thread, said)
    again = reopen()
    assert again.original(thread, ref_of(text)) == bytes_of(text)
    for message in said:
        assert again.original(thread, message_ref(message)) == bytes_of(encode(message))


PARTS = {
    "text": "words",
    "image data": "aGVsbG8=",
    "image address": "https://example.com/a.png",
    "arguments": '{"path": "a.py"}',
    "a whole result": "inner words",
    "thoughts": "thinking",
    "opaque": '{"type": "future"}',
    "an image in a result": "d29ybGQ=",
    "opaque in a result": '{"a": 1}',
}


@pytest.mark.parametrize("content", PARTS.values(), ids=PARTS)
def test_the_original_of_every_kind_of_part(store: Threads, thread: str, content: str) -> None:
    store.append(thread, [user("first"), EVERYTHING, user("last")])
    assert store.original(thread, ref_of(content)) == bytes_of(content)


def test_the_original_of_a_text_among_several_in_a_result(store: Threads, thread: str) -> None:
    blocks = ("one " * 900, "two " * 900, "three")
    message = Message(Role.TOOL, (ToolResult(CallId("1"), tuple(map(Text, blocks))),))
    store.append(thread, [calls("1"), message])
    for content in (*blocks, "\n".join(blocks)):
        assert store.original(thread, ref_of(content)) == bytes_of(content)


def test_covered_messages_keep_their_originals(store: Threads, thread: str) -> None:
    said = [user("the secret is 42"), assistant("noted"), point(2)]
    store.append(thread, said)
    store.append(thread, [user("next"), point(4)])
    assert store.original(thread, ref_of("the secret is 42")) == b"the secret is 42"


def test_what_the_thread_does_not_hold_it_does_not_give(store: Threads, thread: str) -> None:
    store.create("other")
    store.append("other", [user("private")])
    store.append(thread, talk(3))
    store.branch("other", 0, "empty branch")
    for name in (thread, "empty branch"):
        assert store.original(name, ref_of("private")) is None
    for ref in ("0" * 16, "", "not a reference", "' OR 1=1 --", "\x00"):
        assert store.original(thread, ref) is None


def test_the_same_large_text_in_two_threads_belongs_to_both(store: Threads, thread: str) -> None:
    text = "a large result\n" * 500
    store.create("other")
    store.create("third")
    store.append(thread, [result("1", text)])
    store.append("other", [result("2", text)])
    store.append("third", [user("nothing")])
    assert store.original(thread, ref_of(text)) == store.original("other", ref_of(text)) == bytes_of(text)
    assert store.original("third", ref_of(text)) is None


def test_a_branch_gives_the_originals_of_its_rows_alone(store: Threads, thread: str) -> None:
    store.append(thread, [user("early"), user("late")])
    store.branch(thread, 1, "b")
    assert store.original("b", ref_of("early")) == b"early"
    assert store.original("b", ref_of("late")) is None
