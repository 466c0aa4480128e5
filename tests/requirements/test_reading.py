"""CS-2: our own message type; whatever file or body comes in, adapters convert both ways."""

import pytest

from everlong.core import Message, Role, Text, decode, encode
from everlong.wire import FORMATS, SESSION_FORMATS, Document, read, with_messages, write
from tests.wire.payloads import BODIES, SESSIONS, Payload
from tests.wire.sessions.reading import said

FILES = [*BODIES, *SESSIONS]
FORMATS = [*FORMATS, *SESSION_FORMATS]


@pytest.mark.parametrize("payload", FILES, ids=lambda payload: payload.name)
def test_CS_2_every_file_becomes_messages_of_our_own_type(payload: Payload) -> None:
    for message in read(payload.data).messages:
        assert isinstance(message, Message)
        assert decode(encode(message)) == message


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("payload", FILES, ids=lambda payload: payload.name)
def test_CS_2_a_conversation_from_any_file_can_be_written_as_any_other(payload: Payload, fmt: str) -> None:
    """Words, in order; session formats keep no system text, and neighbours of one side may become one message."""
    given = tuple(message for message in read(payload.data).messages if message.role is not Role.SYSTEM)
    if not given:
        given = (Message(Role.USER, (Text("hi"),)),)
    again = read(write(Document(fmt=fmt, messages=given))).messages
    assert "\n".join(message.text for message in again if message.text) == "\n".join(
        message.text for message in given if message.text
    )
    assert len([call for message in again for call in message.calls]) == len(
        [call for message in given for call in message.calls]
    )


@pytest.mark.parametrize("payload", FILES, ids=lambda payload: payload.name)
def test_CS_2_what_we_add_comes_back_in_the_files_own_format(payload: Payload) -> None:
    document = read(payload.data)
    added = (
        Message(Role.ASSISTANT, (Text("一句话"),)),
        Message(Role.USER, (Text("one more question"),)),
        Message(Role.ASSISTANT, (Text("one more answer"),)),
    )
    again = read(write(with_messages(document, (*document.messages, *added))))
    assert again.fmt == document.fmt
    assert said(again.messages)[-2:] == said(added)[-2:]
    assert again.messages[-3].text.endswith("一句话")
