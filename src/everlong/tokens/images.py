"""The tokens of an image, from its dimensions and the provider's rule, never from its encoded bytes.

The dimensions are read from the first bytes of the file (PNG, JPEG, GIF, WebP). If the dimensions or the rule are
unknown, a flat figure is used. A rule is a row: the beginning of the model's name, and a function from width and height
to tokens.
"""

import base64
import binascii
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from everlong.core import Image
from everlong.tokens.exact import name_segments

__all__ = ["FLAT_IMAGE", "ImageRule", "dimensions", "image_rule", "image_tokens"]

#: Tokens of an image if the model's rule is unknown, as estimated in the documents about nanobot.
FLAT_IMAGE = 300

HEADER_CHARACTERS = 87_380  # base64 of 64 kB: a JPEG may have much metadata before its size

ByDimensions = Callable[[int, int], int]


@dataclass(frozen=True, slots=True)
class ImageRule:
    """How a family of models charges for images; `low` is the price of OpenAI's detail "low"."""

    tokens: ByDimensions
    unknown: int
    low: int | None = None


def _tiles(width: int, height: int, *, base: int, tile: int) -> int:
    """OpenAI: scale to fit 2048 x 2048, then the shortest side to 768, then count 512-pixel tiles."""
    scale = min(1.0, 2_048 / max(width, height))
    scale = min(scale, 768 / min(width, height)) if min(width, height) * scale > 768 else scale
    return base + tile * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


def _patches(width: int, height: int, *, side: int, most: int, factor: float) -> int:
    """Count square patches, at most `most` of them."""
    count = math.ceil(width / side) * math.ceil(height / side)
    return math.ceil(min(count, most) * factor)


def _area(width: int, height: int, *, edge: int = 1_568, most: int = 1_640) -> int:
    """Anthropic: scale the longest edge to `edge`, then pixels / 750, at most `most`."""
    scale = min(1.0, edge / max(width, height))
    return min(most, math.ceil(width * scale * height * scale / 750))


#: Claude models that see images at a higher resolution.
SHARP = partial(_area, edge=2_576, most=4_784)


def _crops(width: int, height: int) -> int:
    """Gemini: 258 for a small image, otherwise 258 for each crop of 768 pixels."""
    if max(width, height) <= 384:
        return 258
    return 258 * math.ceil(width / 768) * math.ceil(height / 768)


RULES: tuple[tuple[str, ImageRule], ...] = (
    ("gpt-4o-mini", ImageRule(partial(_tiles, base=2_833, tile=5_667), unknown=25_501, low=2_833)),
    ("gpt-4.1-mini", ImageRule(partial(_patches, side=32, most=1_536, factor=1.62), unknown=2_489)),
    ("gpt-4.1-nano", ImageRule(partial(_patches, side=32, most=1_536, factor=2.46), unknown=3_779)),
    ("gpt-5-mini", ImageRule(partial(_patches, side=32, most=1_536, factor=1.62), unknown=2_489)),
    ("gpt-5-nano", ImageRule(partial(_patches, side=32, most=1_536, factor=2.46), unknown=3_779)),
    ("o4-mini", ImageRule(partial(_patches, side=32, most=1_536, factor=1.72), unknown=2_642)),
    ("gpt-5", ImageRule(partial(_tiles, base=70, tile=140), unknown=630, low=70)),
    ("gpt-4", ImageRule(partial(_tiles, base=85, tile=170), unknown=765, low=85)),
    ("chatgpt-4o", ImageRule(partial(_tiles, base=85, tile=170), unknown=765, low=85)),
    ("o1", ImageRule(partial(_tiles, base=75, tile=150), unknown=675, low=75)),
    ("o3", ImageRule(partial(_tiles, base=75, tile=150), unknown=675, low=75)),
    ("claude", ImageRule(_area, unknown=1_600)),
    *((name, ImageRule(SHARP, unknown=4_784)) for name in ("claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-5")),
    ("gemini-3", ImageRule(lambda _width, _height: 1_120, unknown=1_120)),
    ("gemini", ImageRule(_crops, unknown=1_290)),
    ("gemma", ImageRule(lambda _width, _height: 258, unknown=258)),
    ("qwen", ImageRule(partial(_patches, side=28, most=16_384, factor=1.0), unknown=1_370)),
)


def image_rule(model: str) -> ImageRule | None:
    """Return the rule of a model's family, or None."""
    names = name_segments(model)
    rules = [(len(start), rule) for start, rule in RULES for name in names if name.startswith(start)]
    return max(rules, key=lambda row: row[0])[1] if rules else None


def image_tokens(image: Image, rule: ImageRule | None) -> int:
    """Return the tokens of an image. Example: 1024 x 1024 for gpt-4o -> 765; unknown model -> 300"""
    if rule is None:
        return FLAT_IMAGE
    if image.detail == "low" and rule.low is not None:
        return rule.low
    size = dimensions(image.data)
    return rule.unknown if size is None else rule.tokens(*size)


def dimensions(data: str) -> tuple[int, int] | None:
    """Return the width and height of a base64-encoded image from its first bytes; None if they are not there."""
    head = data[:HEADER_CHARACTERS]
    try:
        raw = base64.b64decode(head[: len(head) // 4 * 4], validate=False)
        size = _png(raw) or _gif(raw) or _webp(raw) or _jpeg(raw)
    except (binascii.Error, struct.error, ValueError):
        return None
    return size if size and min(size) > 0 else None


def _png(raw: bytes) -> tuple[int, int] | None:
    return struct.unpack(">II", raw[16:24]) if raw.startswith(b"\x89PNG\r\n\x1a\n") else None


def _gif(raw: bytes) -> tuple[int, int] | None:
    return struct.unpack("<HH", raw[6:10]) if raw[:4] == b"GIF8" else None


def _webp(raw: bytes) -> tuple[int, int] | None:
    if raw[:4] != b"RIFF" or raw[8:12] != b"WEBP":
        return None
    if raw[12:16] == b"VP8X":
        return int.from_bytes(raw[24:27], "little") + 1, int.from_bytes(raw[27:30], "little") + 1
    if raw[12:16] == b"VP8L":
        bits = int.from_bytes(raw[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", raw[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _jpeg(raw: bytes) -> tuple[int, int] | None:
    if raw[:2] != b"\xff\xd8":
        return None
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", raw[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
    return None
