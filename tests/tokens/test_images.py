"""Pictures cost what the provider charges for their size, however they are encoded."""

import base64
import struct
import zlib

import pytest

from everlong.core import CallId, Image, Message, Role, ToolResult
from everlong.tokens.counter import Counter
from everlong.tokens.images import dimensions


def png(width: int, height: int, padding: int = 0) -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + head + chunk(b"tEXt", b"x" * padding)).decode()


def jpeg(width: int, height: int) -> str:
    exif = b"\xff\xe1" + struct.pack(">H", 2 + 30_000) + b"e" * 30_000
    size = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\x00" * 9
    return base64.b64encode(b"\xff\xd8" + exif + size).decode()


def gif(width: int, height: int) -> str:
    return base64.b64encode(b"GIF89a" + struct.pack("<HH", width, height) + b"\x00" * 9).decode()


def webp(width: int, height: int) -> str:
    body = b"VP8X" + struct.pack("<I", 10) + b"\x00" * 4
    body += (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return base64.b64encode(b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body).decode()


def webp_lossless(width: int, height: int) -> str:
    bits = (width - 1) | (height - 1) << 14
    body = b"VP8L" + struct.pack("<I", 5) + b"\x2f" + struct.pack("<I", bits)
    return base64.b64encode(b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body).decode()


@pytest.mark.parametrize("make", [png, jpeg, gif, webp, webp_lossless])
def test_dimensions_are_read_from_the_head(make: object) -> None:
    assert dimensions(make(1_200, 800)) == (1_200, 800)  # type: ignore[operator]


@pytest.mark.parametrize(
    "data", ["", "not base64 at all", "AAAA", base64.b64encode(b"\xff\xd8\xff").decode(), png(0, 5)]
)
def test_dimensions_that_cannot_be_told(data: str) -> None:
    assert dimensions(data) is None


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        ("gpt-4o", 1_024, 1_024, 765),
        ("gpt-4o", 2_048, 4_096, 1_105),
        ("gpt-4o", 512, 512, 255),
        ("gpt-5", 1_024, 1_024, 630),
        ("gpt-4.1-mini", 1_024, 1_024, 1_659),
        ("claude-sonnet-4-5", 1_000, 1_000, 1_334),
        ("bedrock/us.anthropic.claude-sonnet-4-5", 1_000, 1_000, 1_334),
        ("claude-sonnet-4-5", 3_136, 1_568, 1_640),
        ("claude-sonnet-4-5", 1_500, 1_500, 1_640),
        ("claude-opus-4-7", 1_000, 1_000, 1_334),
        ("claude-opus-4-7", 1_500, 1_500, 3_000),
        ("claude-opus-4-7", 4_000, 4_000, 4_784),
        ("gemini-2.5-flash", 300, 300, 258),
        ("gemini-2.5-flash", 1_000, 1_000, 1_032),
        ("unknown-model", 1_000, 1_000, 300),
    ],
)
def test_C4_a_picture_costs_by_its_dimensions(model: str, width: int, height: int, tokens: int) -> None:
    assert Counter(model).part(Image(data=png(width, height), media_type="image/png")) == tokens


def test_C4_the_size_of_the_encoding_does_not_matter() -> None:
    counter = Counter("claude-opus-4-5")
    small, large = png(1_000, 700), png(1_000, 700, padding=5_000_000)
    assert counter.part(Image(data=small)) == counter.part(Image(data=large))


def test_C4_a_picture_in_a_tool_result_costs_the_same() -> None:
    counter = Counter("gpt-4o")
    picture = Image(data=png(1_024, 1_024))
    beside = counter.message(Message(Role.USER, (picture,)))
    inside = counter.message(Message(Role.TOOL, (ToolResult(CallId("1"), (picture,)),)))
    assert inside == beside


def test_low_detail_has_its_price() -> None:
    assert Counter("gpt-4o").part(Image(url="https://example.com/a.png", detail="low")) == 85
    assert Counter("gpt-4o").part(Image(url="https://example.com/a.png")) == 765
