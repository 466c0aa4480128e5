"""The lines of a session file, one at a time, good and bad.

Reads bytes and splits at line feeds only; holds one line. A line that nanobot could not load either is a `Fault` to
be taken out; what is JSON but no record of any known shape is a fault that stays where it is.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import BinaryIO, TypeAlias

from everlong.core import JsonObject

__all__ = ["Fault", "Line", "Scanned", "fingerprint", "scan"]

BLANK = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Line:
    """A JSON object. `raw` are its bytes with the line end, `number` counts from 1."""

    number: int
    offset: int
    raw: bytes
    fields: JsonObject

    @property
    def whole(self) -> bool:
        """Whether it is ended by a line feed."""
        return self.raw.endswith(b"\n")


@dataclass(frozen=True, slots=True)
class Fault:
    """Bytes that are no record, and why. `torn`: the file ends in them. `stays`: nanobot can load them."""

    number: int
    offset: int
    raw: bytes
    why: str
    torn: bool = False
    stays: bool = False


Scanned: TypeAlias = Line | Fault


def fingerprint(raw: bytes) -> bytes:
    """What a line is recognised by when the file was written anew."""
    return blake2b(raw.strip(BLANK), digest_size=12).digest()


def scan(file: BinaryIO, offset: int, number: int) -> Iterator[Scanned]:
    """The lines from `offset` on; `number` lines stand before it."""
    file.seek(offset)
    for raw in file:
        number += 1
        if raw.strip(BLANK):
            yield _line(number, offset, raw)
        offset += len(raw)


def _line(number: int, offset: int, raw: bytes) -> Scanned:
    torn = not raw.endswith(b"\n")
    filled = raw.strip(b"\0" + BLANK)
    if not filled:
        return Fault(number, offset, raw, "NUL bytes", torn)
    if b"\0" in raw:
        return _after_nul(number, offset, raw, torn)
    why = ""
    try:
        fields = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        why = "not UTF-8"
    except (ValueError, RecursionError):
        why = "cut off" if torn else "not JSON"
    else:
        if isinstance(fields, dict):
            return Line(number, offset, raw, fields)
        why = f"not an object but {type(fields).__name__}"
    return Fault(number, offset, raw, why, torn)


def _after_nul(number: int, offset: int, raw: bytes, torn: bool) -> Scanned:
    """A record behind a block of NULs is still good; the block before it is what a lost page left."""
    start = len(raw) - len(raw.lstrip(b"\0" + BLANK))
    rest = _line(number, offset + start, raw[start:]) if b"\0" not in raw[start:] else None
    if isinstance(rest, Line):
        return Line(number, offset, raw, rest.fields)
    return Fault(number, offset, raw, "NUL bytes", torn)
