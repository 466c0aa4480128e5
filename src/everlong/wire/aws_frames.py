"""Frames of AWS event streams, read and written: a length, headers, a payload and two checksums.

A frame has, in big-endian order: its whole length, the length of its headers, the checksum of these eight bytes, the
headers, the payload, and the checksum of everything before. A header has a name, the number of a type, and a value.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

from everlong.errors import ProviderError

__all__ = ["Frame", "FrameReader", "frame_bytes"]

PRELUDE = struct.Struct(">III")
SUM = struct.Struct(">I")
LENGTH = struct.Struct(">H")
AROUND = PRELUDE.size + SUM.size  # bytes of a frame that are neither headers nor payload
#: The bytes of a value, by the number of its type. Values of other types begin with their length.
SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
TEXT, BYTES = 7, 6
LONGEST = 64 * 1024 * 1024  # bytes of one frame; AWS allows a quarter of it


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame, with only those of its headers that are text."""

    headers: Mapping[str, str]
    payload: bytes


class FrameReader:
    """Splits a stream, in chunks of any size, into frames. Raises ProviderError for bytes that are not a frame."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._held = bytearray()

    @property
    def between(self) -> bool:
        """Whether no frame is incomplete."""
        return not self._held

    def feed(self, chunk: bytes) -> list[Frame]:
        """Return the frames that are complete now."""
        self._held += chunk
        frames, at = [], 0
        while len(self._held) - at >= PRELUDE.size:
            length, headers, checked = PRELUDE.unpack_from(self._held, at)
            if crc32(self._held[at : at + 8]) != checked or not AROUND + headers <= length <= self._longest:
                raise _unreadable("it does not begin like a frame")
            if len(self._held) - at < length:
                break
            frames.append(_frame(bytes(self._held[at : at + length]), headers))
            at += length
        del self._held[:at]
        return frames


def _frame(raw: bytes, headers: int) -> Frame:
    if crc32(raw[: -SUM.size]) != SUM.unpack(raw[-SUM.size :])[0]:
        raise _unreadable("its checksum is wrong")
    end = PRELUDE.size + headers
    return Frame(_headers(raw[PRELUDE.size : end]), raw[end : -SUM.size])


def _headers(raw: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(raw):
            name = raw[at + 1 : at + 1 + raw[at]].decode()
            at += 1 + raw[at]
            kind = raw[at]
            at += 1
            if kind in (TEXT, BYTES):
                size = LENGTH.unpack_from(raw, at)[0]
                at += LENGTH.size
            else:
                size = SIZES[kind]
            if at + size > len(raw):
                raise _unreadable("a header is longer than the block of headers")
            if kind == TEXT:
                found[name] = raw[at : at + size].decode()
            at += size
    except (IndexError, KeyError, struct.error, UnicodeDecodeError):
        raise _unreadable("its headers cannot be read") from None
    return found


def _unreadable(reason: str) -> ProviderError:
    return ProviderError(f"the stream has a frame that cannot be read: {reason}", status=502)


def frame_bytes(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return the bytes of a frame."""
    written = b"".join(_header(name.encode(), value.encode()) for name, value in headers.items())
    start = struct.pack(">II", AROUND + len(written) + len(payload), len(written))
    whole = start + SUM.pack(crc32(start)) + written + payload
    return whole + SUM.pack(crc32(whole))


def _header(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + bytes([TEXT]) + LENGTH.pack(len(value)) + value
