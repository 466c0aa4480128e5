"""Decode files into JSON values: one document, or one record per line, even if the file is damaged.

Damage costs only its own line: a truncated last line, NUL blocks, bytes that are not UTF-8 or not JSON. A warning names
each lost line by its number. Lines end only at LF, so a raw U+2028 in a text is text.
"""

import codecs
import json
import zlib
from dataclasses import dataclass
from typing import cast

import msgspec

from everlong.core import Json
from everlong.errors import InputError

__all__ = ["Decoded", "decode_bytes", "unpack_gzip"]

GZIP = b"\x1f\x8b"
GZIP_STREAM = 31  # zlib's number for a stream with a gzip header
MEGABYTE = 1_000_000
MOST_UNPACKED = 512 * MEGABYTE  # bytes; decoded values take several times that
SHOWN_WARNINGS = 20
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_decoder = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Decoded:
    """Either one `document`, or `lines` of (line number, value); `warnings` name the lost lines."""

    document: Json = None
    lines: tuple[tuple[int, Json], ...] = ()
    warnings: tuple[str, ...] = ()


def decode_bytes(data: bytes) -> Decoded:
    """Return the JSON in a file. Raises InputError if there is none."""
    data = _plain(data)
    if not data.strip(b" \t\r\n\x00"):
        raise InputError("the file is empty")
    try:
        return Decoded(document=_value(data))
    except ValueError as whole:
        lines, bad = _lines(data)
        if not lines:
            raise InputError(f"it contains no JSON: {_detail(whole)}") from whole
        return Decoded(lines=tuple(lines), warnings=_shortened(bad))


def _plain(data: bytes) -> bytes:
    """Return the data unpacked, in UTF-8, without a byte order mark."""
    if data.startswith(GZIP):
        data = unpack_gzip(data)
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            text = data[len(mark) :]
            return text if encoding == "utf-8" else text.decode(encoding, "replace").encode("utf-8", "replace")
    return data


def unpack_gzip(data: bytes, most: int = MOST_UNPACKED) -> bytes:
    """Return the content of a gzip file. Raises InputError if it is damaged or unpacks to more than `most` bytes.

    No more than that is ever unpacked: a small file can unpack to thousands of times its size.
    """
    unpacked = bytearray()
    while data.startswith(GZIP):  # a file may have several streams
        stream = zlib.decompressobj(GZIP_STREAM)
        try:
            unpacked += stream.decompress(data, most + 1 - len(unpacked))
        except zlib.error as error:
            raise InputError(f"damaged gzip file: {error}") from None
        if len(unpacked) > most:
            raise InputError(f"it unpacks to more than {most // MEGABYTE:,} MB: unpack it and split it")
        if not stream.eof:
            raise InputError("damaged gzip file: it ends too early")
        data = stream.unused_data.lstrip(b"\x00")  # a file may be padded
    return bytes(unpacked)


def _value(data: bytes) -> Json:
    try:
        return cast(Json, _decoder.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The standard library also accepts lone surrogates, huge integers and NaN.
        try:
            return cast(Json, json.loads(data.decode("utf-8")))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _lines(data: bytes) -> tuple[list[tuple[int, Json]], list[str]]:
    good: list[tuple[int, Json]] = []
    bad: list[str] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        text = line.strip(b" \t\r\x00")
        if not text:
            if b"\x00" in line:
                bad.append(f"line {number}: {line.count(0)} NUL bytes and nothing else")
            continue
        try:
            value = _value(text)
        except ValueError as error:
            bad.append(f"line {number}: {_reason(error)}")
            continue
        if isinstance(value, dict):
            good.append((number, value))
        else:
            bad.append(f"line {number}: a record must be an object, not {type(value).__name__}")
    return good, bad


def _reason(error: ValueError) -> str:
    """Return why a line is lost. Example: "not JSON (Expecting value at character 1)" """
    detail = _detail(error)
    return detail if isinstance(error, UnicodeDecodeError) else f"not JSON ({detail})"


def _detail(error: ValueError) -> str:
    """Return where decoding fails. Example: "Expecting value at character 1" """
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 (byte {error.object[error.start]:#04x} at {error.start})"
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1}"
    return str(error)


def _shortened(bad: list[str]) -> tuple[str, ...]:
    hidden = len(bad) - SHOWN_WARNINGS
    return (*bad[:SHOWN_WARNINGS], f"and {hidden:,} more lines") if hidden > 0 else tuple(bad)
