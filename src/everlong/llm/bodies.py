"""Bodies of answers, decompressed in bounded pieces: a small body may be huge unpacked and must not block others.

Requests are made with `auto_decompress=False`, so that the bytes come here as they were sent.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import aiohttp

__all__ = ["PACKED", "UnreadableBody", "encoding_of", "pieces_of", "read_whole"]

#: A header for requests: the encodings that are read here.
PACKED = {"accept-encoding": "gzip, deflate"}
PIECE = 64 * 1024  # bytes that are unpacked at once, in less than a millisecond
MOST_PARTS = 100  # of a body of gzip; most have one
ZLIB_OR_GZIP = zlib.MAX_WBITS | 32
PLAIN_DEFLATE = -zlib.MAX_WBITS
#: The servers' names of the encodings that are read here.
GZIP, DEFLATE, NONE = frozenset({"gzip", "x-gzip"}), frozenset({"deflate"}), frozenset({"", "identity"})


class UnreadableBody(aiohttp.ClientPayloadError):
    """A body that cannot be unpacked, or is too large when unpacked. The error's text is ours and may be shown."""


def encoding_of(response: aiohttp.ClientResponse) -> str:
    """Return the encoding of a packed body, "" if it is not packed. Raises UnreadableBody for an unknown encoding.

    A body that is packed twice is refused too: nobody asked for it, and it could grow without bound.
    """
    listed = ",".join(response.headers.getall("content-encoding", ())).lower()
    named = [name for part in listed.split(",") if (name := part.strip()) not in NONE]
    if not named:
        return ""
    if len(named) > 1 or named[0] not in GZIP | DEFLATE:
        raise UnreadableBody("the answer has a content encoding that was not requested")
    return "gzip" if named[0] in GZIP else "deflate"


async def pieces_of(response: aiohttp.ClientResponse, *, most: int | None = None) -> AsyncGenerator[bytes, None]:
    """Yield the unpacked body as it arrives. Other tasks get their turn after each piece.

    Raises UnreadableBody if it cannot be unpacked, or if more than `most` bytes were packed in it.
    """
    encoding = encoding_of(response)
    if not encoding:
        async for chunk in response.content.iter_any():
            yield chunk
        return
    unpacking, size = _Unpacking(encoding), 0
    async for chunk in response.content.iter_any():
        unpacking.feed(chunk)
        while piece := unpacking.piece():
            size += len(piece)
            if most is not None and size > most:
                raise UnreadableBody(f"the decompressed answer is larger than {most:,} bytes")
            yield piece
            await asyncio.sleep(0)
    if not unpacking.whole:
        raise UnreadableBody("the compressed answer is incomplete")


class _Unpacking:
    """Unpacks a body piece by piece. Besides the received bytes, at most one piece is in memory."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._unpacker: Any = None
        self._rest = b""
        self._parts = 0
        self._more = False  # whether the unpacker may hold bytes that did not fit into a piece

    @property
    def whole(self) -> bool:
        """Whether the body was unpacked to its end, or there was none."""
        return self._unpacker is None or self._unpacker.eof

    def feed(self, chunk: bytes) -> None:
        """Take the next received bytes."""
        self._rest += chunk

    def piece(self) -> bytes:
        """Return the next bytes, b"" if more must come first."""
        while True:
            if self._unpacker is not None and self._unpacker.eof:
                if self._encoding != "gzip":
                    self._rest = b""  # what follows the end of a body is not part of it
                    return b""
                self._unpacker = None  # gzip may have several parts
            if self._parts and self._unpacker is None:
                self._rest = self._rest.lstrip(b"\0")  # with zeros between them
            if not self._rest and not self._more:
                return b""
            if self._unpacker is None:
                self._parts += 1
                if self._parts > MOST_PARTS:
                    raise UnreadableBody(f"the compressed answer has more than {MOST_PARTS} parts")
                self._unpacker = zlib.decompressobj(self._form())
            try:
                piece: bytes = self._unpacker.decompress(self._rest, PIECE)
            except zlib.error:
                raise UnreadableBody("the answer cannot be decompressed") from None
            self._rest = self._unpacker.unconsumed_tail or self._unpacker.unused_data
            self._more = len(piece) == PIECE and not self._unpacker.eof
            if piece:
                return piece

    def _form(self) -> int:
        """Return the form of the packed bytes: some servers leave out the header of zlib."""
        headless = self._encoding == "deflate" and self._rest[0] & 0x0F != 8
        return PLAIN_DEFLATE if headless else ZLIB_OR_GZIP


async def read_whole(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Return the body, or its first `most` bytes."""
    body = bytearray()
    async with aclosing(pieces_of(response)) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) >= most:
                break
    return bytes(body[:most])
