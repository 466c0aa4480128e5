"""The content blocks of OpenAI Responses.

    {"type": "input_text", "text": "…"}    {"type": "input_image", "image_url": "data:…", "detail": "low"}

Words and pictures are read; any other block is carried along as it is.
"""

from typing import assert_never, cast

from everlong.core import Image, Json, JsonObject, Opaque, ResultPart, Text
from everlong.wire.fields import opaque, opaque_body, pack, unpack
from everlong.wire.openai.shapes import image_from, image_url, settle, take_text, text_in, text_out

__all__ = ["input_in", "input_out", "output_in", "output_out"]


def input_in(block: JsonObject) -> ResultPart:
    """A block of the user, the system or a tool."""
    return _block_in(block, "input_text")


def output_in(block: JsonObject) -> ResultPart:
    """A block of the assistant."""
    return _block_in(block, "output_text")


def _block_in(block: JsonObject, words: str) -> ResultPart:
    return text_in(block, words) or _image_in(block) or opaque(block)


def _image_in(block: JsonObject) -> Image | None:
    """A picture by address or by file id, also the screenshot that answers a computer call."""
    fields = dict(block)
    if fields.get("type") not in ("input_image", "computer_screenshot"):
        return None
    if fields["type"] == "input_image":
        del fields["type"]
    url = take_text(fields, "image_url")
    source = None if url else "file_id"
    url = url or take_text(fields, "file_id")
    detail = take_text(fields, "detail")
    return image_from(url, detail, pack(fields, source=source)) if url else None


def input_out(part: ResultPart) -> Json:
    """The block again."""
    return _block_out(part, "input_text")


def output_out(part: ResultPart) -> Json:
    """The block again."""
    return _block_out(part, "output_text")


def _block_out(part: ResultPart, words: str) -> Json:
    match part:
        case Text():
            return text_out(part, words)
        case Image(detail=detail, extra=extra):
            fields, shape = unpack(extra)
            source = cast(str, shape.get("source", "image_url"))
            out: JsonObject = {"type": "input_image", source: image_url(part)}
            return settle(out | ({"detail": detail} if detail else {}), fields, {})
        case Opaque():
            return opaque_body(part)
        case _:
            assert_never(part)
