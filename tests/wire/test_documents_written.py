"""What was not changed is written as it was read; what was changed is written in the same format."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import History, Json, JsonObject, Message, Role, Text
from everlong.errors import InputError
from everlong.wire.document import Document
from everlong.wire.documents import (
    SESSION_FORMATS,
    document_of,
    read,
    read_all,
    value_of,
    with_messages,
    write,
)
from everlong.wire.fields import unpack
from everlong.wire.formats import FORMATS
from tests.wire import payloads
from tests.wire.conversations import chats, objects, same, values
from tests.wire.payloads import BODIES, CHAT, PLAIN, SESSIONS, Payload, lines, one
from tests.wire.sessions.reading import said
from tests.wire.sessions.samples import PI_3

FILES = [*BODIES, *SESSIONS]


def decoded(data: bytes) -> list[Json]:
    """What a file says: its lines, or the one document in it."""
    try:
        return [json.loads(data)]
    except ValueError:
        return [json.loads(line) for line in data.split(b"\n") if line]


# --- untouched -----------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", FILES, ids=lambda payload: payload.name)
def test_an_untouched_file_is_written_back_equal(payload: Payload) -> None:
    assert decoded(write(read(payload.data))) == decoded(payload.data)


@pytest.mark.parametrize("payload", FILES, ids=lambda payload: payload.name)
def test_what_was_written_reads_the_same(payload: Payload) -> None:
    document = read(payload.data)
    assert read(write(document)) == document


@pytest.mark.parametrize("payload", FILES, ids=lambda payload: payload.name)
def test_the_value_of_a_document_is_the_same_document(payload: Payload) -> None:
    document = read(payload.data)
    again = document_of(value_of(document))
    assert (again.fmt, again.messages, again.records) == (document.fmt, document.messages, document.records)


LISTS = {
    "chat": CHAT,
    "Anthropic": payloads.ANTHROPIC,
    "Responses": payloads.RESPONSES,
    "Gemini": payloads.GEMINI,
    "empty": [],
    "records of a session": [*PI_3],
}


@pytest.mark.parametrize("messages", LISTS.values(), ids=LISTS)
def test_a_bare_list_stays_a_list(messages: list[Json]) -> None:
    document = document_of(messages)
    assert document.bare
    assert value_of(document) == messages
    assert json.loads(write(document)) == messages


def test_a_file_of_lines_stays_one() -> None:
    assert write(read(lines(CHAT))).count(b"\n") == len(CHAT)


def test_every_conversation_of_a_data_set_is_written_with_its_other_fields() -> None:
    rows: list[Json] = [{"id": "a", "messages": PLAIN, "score": 0.5}, {"id": "b", "messages": CHAT, "tags": []}]
    assert [value_of(document) for document in read_all(lines(rows))] == rows


settings_of_a_request = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["gpt-x", "", None]),
        "temperature": st.sampled_from([0, 0.5, None]),
        "tools": st.lists(objects, max_size=2),
        "metadata": values,
        "$shape": values,
    },
)


@given(chat=chats, around=settings_of_a_request)
@settings(max_examples=100, deadline=None)
def test_any_chat_body_is_written_back_equal(chat: list[JsonObject], around: JsonObject) -> None:
    body: JsonObject = {**around, "messages": [*chat]}
    assert same(json.loads(write(read(one(body)))), body)
    assert same(value_of(document_of([*chat])), chat)
    assert same(decoded(write(read(lines([*chat])))), chat if len(chat) > 1 else [chat[0]])


# --- changed -------------------------------------------------------------------------------------


def longer(document: Document) -> Document:
    """One message more, of whoever did not speak last."""
    last = document.messages[-1].role if document.messages else Role.ASSISTANT
    speaker = Role.USER if last is Role.ASSISTANT else Role.ASSISTANT
    return with_messages(document, (*document.messages, Message(speaker, (Text("and now the 测试?"),))))


@pytest.mark.parametrize("payload", FILES, ids=lambda payload: payload.name)
def test_a_longer_conversation_is_written_in_its_format(payload: Payload) -> None:
    document = read(payload.data)
    changed = longer(document)
    again = read(write(changed))
    assert again.fmt == document.fmt
    assert said(again.messages) == said(changed.messages)


#: A session that has just begun has no message to leave out.
TALKS = [payload for payload in FILES if len(read(payload.data).messages) > 1]


@pytest.mark.parametrize("payload", TALKS, ids=lambda payload: payload.name)
def test_a_shorter_conversation_is_written_in_its_format(payload: Payload) -> None:
    document = read(payload.data)
    changed = with_messages(document, document.messages[:-1])
    again = read(write(changed))
    assert (again.fmt, said(again.messages)) == (document.fmt, said(changed.messages))


@pytest.mark.parametrize("payload", BODIES, ids=lambda payload: payload.name)
def test_a_changed_body_keeps_everything_around_its_messages(payload: Payload) -> None:
    document = read(payload.data)
    again = read(write(longer(document)))
    assert (again.model, again.tools, again.bare, again.lines) == (
        document.model,
        document.tools,
        document.bare,
        document.lines,
    )
    assert unpack(again.extra)[0] == unpack(document.extra)[0]


def test_system_text_of_ours_in_a_bare_list_brings_the_body_along() -> None:
    """A bare list of Anthropic or Gemini has no place for it."""
    system = Message(Role.SYSTEM, (Text("Be kind."),))
    for messages in (payloads.ANTHROPIC, payloads.GEMINI):
        document = document_of(messages)
        changed = with_messages(document, (system, *document.messages))
        assert said(document_of(value_of(changed)).messages) == said(changed.messages)


# --- texts ---------------------------------------------------------------------------------------

TEXTS = {
    "half of a surrogate pair": "cut \ud83d here",
    "the other half": "\ude00",
    "behind a backslash": "\\\ud83d",
    "an emoji": "😀",
    "Chinese": "你好，世界",
    "line ends of other programs": "a\u2028b\u2029c\x85d\u000be",
    "quotes and NUL": '"\x00\\"',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("in_lines", [False, True], ids=["one document", "a line each"])
def test_every_text_survives_the_file(text: str, in_lines: bool) -> None:
    chat: list[Json] = [{"role": "user", "content": text}, {"role": "assistant", "content": text}]
    document = read(lines(chat) if in_lines else one(chat))
    data = write(document)
    assert read(data) == document
    assert [message.text for message in read(data).messages] == [text, text]
    assert len(data.decode().splitlines()) == data.count(b"\n")


def test_text_that_UTF_8_can_carry_is_written_as_it_is() -> None:
    assert "你好".encode() in write(document_of([{"role": "user", "content": "你好"}]))


@pytest.mark.parametrize("payload", SESSIONS, ids=lambda payload: payload.name)
def test_surrogates_in_a_session_survive(payload: Payload) -> None:
    document = read(payload.data)
    changed = with_messages(document, (*document.messages, Message(Role.USER, (Text("cut \ud83d"),))))
    assert read(write(changed)).messages[-1].text == "cut \ud83d"


@pytest.mark.parametrize("fmt", [*FORMATS, *SESSION_FORMATS])
def test_a_conversation_of_ours_can_be_a_file_of_any_format(fmt: str) -> None:
    history: History = (Message(Role.USER, (Text("hi"),)), Message(Role.ASSISTANT, (Text("hello"),)))
    again = read(write(Document(fmt=fmt, messages=history)))
    assert said(again.messages) == said(history)
    assert again.fmt == ("openai-chat" if fmt in ("anthropic", "ollama") else fmt)  # plain words are written alike


@given(depth=st.integers(600, 1_200))
@settings(max_examples=60, deadline=None)
def test_JSON_nested_as_deep_as_the_machine_can_take_is_written_or_refused(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    data = f'{{"type": "session", "id": "s"}}\n{{"type": "custom", "data": {nested}}}\n'.encode()
    with suppress(InputError):
        assert write(read(data)).startswith(b'{"type": "session", "id": "s"}\n')
