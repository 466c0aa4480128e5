"""Files in any state: what is readable is read, what is not is named."""

import gzip

import pytest

from everlong.errors import InputError
from everlong.wire.json_files import SHOWN_WARNINGS, Decoded, decode_bytes

GOOD = b'{"role": "user", "content": "hi"}'
VALUE = {"role": "user", "content": "hi"}


def test_one_document() -> None:
    assert decode_bytes(b'[1, {"a": null}]') == Decoded(document=[1, {"a": None}])


def test_one_record_a_line() -> None:
    assert decode_bytes(GOOD + b"\r\n\n" + GOOD).lines == ((1, VALUE), (3, VALUE))


DAMAGE = {
    "torn last line": (GOOD + b"\n" + GOOD + b"\n" + GOOD[:-9], "line 3: not JSON"),
    "NUL block": (GOOD + b"\n" + b"\x00" * 512 + b"\n" + GOOD, "line 2: 512 NUL bytes and nothing else"),
    "not UTF-8": (GOOD + b'\n{"a": "\xff"}\n' + GOOD, "line 2: not UTF-8 (byte 0xff at 7)"),
    "no record": (GOOD + b"\n[1]\n" + GOOD, "line 2: a record must be an object, not list"),
    "nested too deeply": (GOOD + b"\n" + b"[" * 100_000 + b"\n" + GOOD, "line 2: not JSON"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_G1_damage_costs_its_line_only(name: str) -> None:
    data, warning = DAMAGE[name]
    decoded = decode_bytes(data)
    assert [value for _, value in decoded.lines] == [VALUE, VALUE]
    assert len(decoded.warnings) == 1
    assert decoded.warnings[0].startswith(warning)


def test_G1_a_record_behind_NULs_is_kept() -> None:
    assert decode_bytes(GOOD + b"\n" + b"\x00" * 64 + GOOD + b"\n").lines == ((1, VALUE), (2, VALUE))


def test_G1_a_raw_line_separator_is_text() -> None:
    data = '{"content": "a\u2028b\u0085c"}\n'.encode() + GOOD
    assert decode_bytes(data).lines[0] == (1, {"content": "a\u2028b\u0085c"})


def test_lone_surrogates_and_large_numbers_are_read() -> None:
    assert decode_bytes(b'{"a": "\\ud83d", "b": 123456789012345678901234567890}').document == {
        "a": "\ud83d",
        "b": 123456789012345678901234567890,
    }


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks(encoding: str) -> None:
    assert decode_bytes('{"文": "字"}'.encode(encoding)).document == {"文": "字"}


def test_packed_files_are_unpacked() -> None:
    assert decode_bytes(gzip.compress(GOOD)).document == VALUE


REFUSED = {
    "empty": (b"", "the file is empty"),
    "blank": (b" \n\x00\n", "the file is empty"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "it contains no JSON: not UTF-8"),
    "prose": (b"dear diary,\ntoday", "it contains no JSON: Expecting value at character 1"),
    "nested too deeply": (b"[" * 100_000, "it contains no JSON: nested too deeply"),
    "damaged gzip": (gzip.compress(GOOD)[:-12], "damaged gzip file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_without_JSON_is_refused_in_one_line(name: str) -> None:
    data, start = REFUSED[name]
    with pytest.raises(InputError) as caught:
        decode_bytes(data)
    assert str(caught.value).startswith(start)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count("JSON") <= 1


def test_many_bad_lines_give_a_short_list() -> None:
    decoded = decode_bytes(GOOD + b"\n" + b"{\n" * 500)
    assert len(decoded.warnings) == SHOWN_WARNINGS + 1
    assert decoded.warnings[-1] == "and 480 more lines"
