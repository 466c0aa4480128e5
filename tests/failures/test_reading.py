"""G1 and J5 as far as they concern whole files: damage costs its line, and no field is dropped on the way."""

import json

import pytest

from everlong.core import Json, JsonObject
from everlong.wire import FORMATS, read, with_messages, write
from tests.wire import payloads
from tests.wire.payloads import BODIES, CHAT, Payload, lines
from tests.wire.sessions.reading import said
from tests.wire.sessions.samples import CLAUDE, CODEX, NANOBOT, PI_3

FILES: dict[str, list[Json]] = {
    "chat": CHAT,
    "Anthropic": payloads.ANTHROPIC,
    "Responses": payloads.RESPONSES,
    "Gemini": payloads.GEMINI,
    "pi": [*PI_3],
    "Claude Code": [*CLAUDE],
    "Codex": [*CODEX],
    "nanobot": [*NANOBOT],
}
#: What a line may have become, and how it is named.
DAMAGE = {
    "torn": (b'{"role": "user", "conte', "not JSON"),
    "NUL bytes": (b"\x00" * 64, "64 NUL bytes"),
    "not UTF-8": (b'{"role": "user", "content": "\xff\xfe"}', "not UTF-8"),
    "a list": (b"[1, 2]", "a record must be an object, not list"),
    "half of two lines": (b'{"role": "us{"role": "user", "content": "hi"}', "not JSON"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("records", FILES.values(), ids=FILES)
def test_G1_a_malformed_line_costs_itself_alone(records: list[Json], damage: bytes, reason: str) -> None:
    whole = lines(records)
    for at in (1, len(records) - 1, len(records)):
        broken = lines(records[:at]) + damage + b"\n" + lines(records[at:])
        document = read(broken)
        assert document.messages == read(whole).messages
        assert [warning.split(reason)[0] for warning in document.warnings] == [f"line {at + 1}: "]


@pytest.mark.parametrize("records", FILES.values(), ids=FILES)
def test_G1_after_a_torn_tail_the_rest_is_read_and_can_be_appended_to(records: list[Json]) -> None:
    torn = lines(records)[:-7]
    document = read(torn)
    assert document.messages == read(lines(records[:-1])).messages
    data = write(document)
    assert data.endswith(b"\n")
    assert read(data + lines(records[-1:])).messages == read(lines(records)).messages


def test_G1_a_raw_line_separator_is_text_when_read_and_an_escape_when_written() -> None:
    data = '{"role": "user", "content": "a\u2028b"}\n{"role": "user", "content": "c"}\n'.encode()
    document = read(data)
    assert [message.text for message in document.messages] == ["a\u2028b", "c"]
    assert len(write(document).decode().splitlines()) == 2


def test_G1_many_bad_lines_are_counted_and_a_few_named() -> None:
    document = read(lines(CHAT) + b"{\n" * 1_000)
    assert document.messages == read(lines(CHAT)).messages
    assert document.warnings[-1].endswith("more lines")
    assert len(document.warnings) < 30


#: Fields that no format of ours models, in every place where a client may put one.
UNKNOWN: JsonObject = {"x_future": {"nested": [1, None, {"deep": True}]}, "x_null": None, "x_text": "值"}


def with_unknown(value: Json, depth: int = 0) -> Json:
    """The same JSON with fields of the future in every object of a message, whatever the format."""
    if isinstance(value, list):
        return [with_unknown(item, depth) for item in value]
    if isinstance(value, dict) and depth < 2:
        inner = {key: with_unknown(item, depth + 1) for key, item in value.items()}
        return {**inner, **UNKNOWN}
    return value


@pytest.mark.parametrize("payload", BODIES, ids=lambda payload: payload.name)
def test_J5_fields_of_the_future_come_back(payload: Payload) -> None:
    single = len(payload.data.splitlines()) == 1
    value: Json = json.loads(payload.data) if single else [json.loads(line) for line in payload.data.splitlines()]
    changed = with_unknown(value)
    assert json.loads(write(read(json.dumps(changed).encode()))) == changed


TALKS = [payload for payload in BODIES if len(read(payload.data).messages) > 1]


@pytest.mark.parametrize("payload", TALKS, ids=lambda payload: payload.name)
def test_J5_a_changed_conversation_drops_no_field_of_what_stays(payload: Payload) -> None:
    """The last message goes; every other one is written byte for byte as before."""
    document = read(payload.data)
    again = read(write(with_messages(document, document.messages[:-1])))
    assert again.messages == document.messages[:-1]


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("payload", BODIES, ids=lambda payload: payload.name)
def test_J5_no_words_call_or_result_is_lost_between_providers(payload: Payload, target: str) -> None:
    document = read(payload.data)
    rendered = FORMATS[target].write_history(document.messages)
    again = FORMATS[target].read_body(rendered).messages
    assert [(told.role, told.words) for told in said(again)] == [
        (told.role, told.words) for told in said(document.messages)
    ]
    assert [arguments for told in said(again) for _, _, arguments in told.calls] == [
        arguments for told in said(document.messages) for _, _, arguments in told.calls
    ]
    assert len([result for told in said(again) for result in told.results]) == len(
        [result for told in said(document.messages) for result in told.results]
    )
