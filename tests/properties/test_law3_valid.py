"""Law 3: it is valid. Each provider accepts what is sent, whatever was stored.

Checked on the payload that would be sent, by validators that know nothing of our parsers.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from everlong.core import History, Json, JsonObject, Message, Reasoning, Role, Text, encode_all, message_ref
from everlong.wire import format_named, problems, repair_history, valid
from everlong.wire.repair.shapes import NOT_ITS_OWN
from tests.properties.histories import FORMATS, conversations, histories

every_format = pytest.mark.parametrize("fmt", FORMATS)
often = settings(max_examples=150, deadline=None)


def payload(fmt: str, messages: History) -> JsonObject:
    return format_named(fmt).write_history(messages)


@every_format
@often
@given(histories())
def test_law3_any_history_becomes_valid(fmt: str, history: History) -> None:
    repaired = repair_history(history, fmt)
    assert problems(fmt, payload(fmt, repaired.messages)) == []
    assert all(edit.reason != NOT_ITS_OWN for edit in repaired.edits), "the last resort is for what nobody foresaw"


@every_format
@settings(max_examples=20, deadline=None)
@given(histories(max_messages=80))
def test_law3_also_long_ones(fmt: str, history: History) -> None:
    assert problems(fmt, payload(fmt, repair_history(history, fmt).messages)) == []


@every_format
@often
@given(histories(max_messages=5))
def test_law3_what_is_valid_is_not_touched(fmt: str, history: History) -> None:
    repaired = repair_history(history, fmt)
    if valid(fmt, history):
        assert (repaired.messages, repaired.edits) == (history, ())
    else:
        assert repaired.edits, "what was refused before must have been changed, and reported"


@every_format
@often
@given(conversations())
def test_law3_a_well_formed_conversation_is_only_ever_trimmed_at_its_end(fmt: str, history: History) -> None:
    repaired = repair_history(history, fmt)
    assert repaired.messages[:-1] == history[:-1]
    assert {edit.at for edit in repaired.edits} <= {len(history) - 1}


@every_format
@often
@given(histories())
def test_law3_repair_is_done_once(fmt: str, history: History) -> None:
    once = repair_history(history, fmt).messages
    assert repair_history(once, fmt).messages == once


@every_format
@often
@given(histories())
def test_law3_the_stored_history_is_not_changed(fmt: str, history: History) -> None:
    stored = encode_all(history)
    repair_history(history, fmt)
    assert encode_all(history) == stored


@every_format
@often
@given(histories())
def test_law3_every_change_names_its_message(fmt: str, history: History) -> None:
    repaired = repair_history(history, fmt)
    for edit in repaired.edits:
        assert edit.reason
        assert edit.ref == (message_ref(history[edit.at]) if history else None)
    changed = {message for message in history if message not in repaired.messages}
    assert changed <= {history[edit.at] for edit in repaired.edits if history}


@every_format
@often
@given(histories())
def test_law3_the_users_words_are_kept(fmt: str, history: History) -> None:
    sent = "\n".join(strings(payload(fmt, repair_history(history, fmt).messages)))
    for words in user_words(history):
        assert words in sent


@every_format
@often
@given(histories())
def test_law3_thinking_is_whole_or_absent(fmt: str, history: History) -> None:
    signed = {part for message in history for part in thoughts(message) if part.signature}
    sent = {part for message in repair_history(history, fmt).messages for part in thoughts(message) if part.signature}
    assert sent <= signed


@pytest.mark.parametrize("fmt", ["openai-chat", "openai-responses"])
@often
@given(conversations(max_rounds=3), histories(max_messages=4))
def test_law3_a_broken_tail_leaves_the_prefix_as_it_was(fmt: str, history: History, tail: History) -> None:
    key = {"openai-chat": "messages", "openai-responses": "input"}[fmt]
    before, after = (payload(fmt, repair_history(each, fmt).messages)[key] for each in (history, history + tail))
    assert isinstance(before, list)
    assert isinstance(after, list)
    assert after[: len(before)] == before


def thoughts(message: Message) -> list[Reasoning]:
    return [part for part in message.parts if isinstance(part, Reasoning)]


def user_words(history: History) -> list[str]:
    """What the user said, as far as it can be written at all."""
    texts = [part.text for m in history if m.role is Role.USER for part in m.parts if isinstance(part, Text)]
    return [text for text in texts if text.strip() and text.encode(errors="replace").decode() == text]


def strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
