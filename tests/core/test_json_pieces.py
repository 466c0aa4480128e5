"""JSON in bounded pieces is the JSON of the whole."""

import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from everlong.core import CallId, Message, Role, Text, ToolResult, encode, message_ref, ref_of, write_json
from everlong.core.encoding import decode
from everlong.core.messages import Json

TEXTS = st.text(st.one_of(st.sampled_from('a"\\\n\x00é日😀\ud83d\ude00'), st.characters()), max_size=60)
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


class Watched:
    """Writes what is small, and records the longest of it."""

    def __init__(self) -> None:
        self.longest = 0

    def write(self, value: Json) -> bytes:
        assert not isinstance(value, list | dict)
        written = json.dumps(value).encode()
        self.longest = max(self.longest, len(value) if isinstance(value, str) else len(written))
        return written


@given(value=VALUES, large=st.integers(1, 20), ordered=st.booleans())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_pieces_are_the_json_of_the_whole(
    value: Json, large: int, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everlong.core.json_pieces.LARGE", large)
    pieces = write_json(value, Watched().write, comma=b", ", colon=b": ", ordered=ordered)
    assert b"".join(pieces).decode() == json.dumps(value, sort_keys=ordered)


def test_no_text_is_written_in_long_pieces() -> None:
    watched = Watched()
    written = b"".join(write_json([{"text": '"\n' * 1_000_000}], watched.write))
    assert json.loads(written) == [{"text": '"\n' * 1_000_000}]
    assert watched.longest <= 262_144


@pytest.mark.parametrize(
    "message",
    [
        Message(Role.USER, (Text('a"\n' * 200_000),)),
        Message(Role.TOOL, (ToolResult(CallId("1"), (Text("\ud83d日" * 300_000),), name="read"),)),
        Message(Role.USER, tuple(Text(str(number)) for number in range(1_500))),
    ],
    ids=["a long text", "a long result", "many parts"],
)
def test_a_large_message_is_kept_and_named_as_any_other(message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    line, ref = encode(message), message_ref(message)
    assert decode(line) == message
    monkeypatch.setattr("everlong.core.encoding.LARGE", 10**9)
    monkeypatch.setattr("everlong.core.encoding.MANY", 10**9)
    assert (encode(message), message_ref(message)) == (line, ref)
    assert ref == ref_of(line)
