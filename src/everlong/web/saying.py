"""What a person sends, as one message: words, pictures and text files. Checked before anything is kept."""

import base64
import binascii

from everlong.core import Image, JsonObject, Message, Part, Role, Text
from everlong.errors import Refused
from everlong.web.fields import needed_text, optional_text, rows_of, wrong

__all__ = ["said_message"]

MOST_WORDS = 4_000_000  # characters of one text
MOST_PICTURES, MOST_FILES = 20, 20
LARGEST_PICTURE = 10 * 1024 * 1024  # bytes
#: Pictures that models take, and how their bytes begin.
PICTURES: dict[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
FILE = '<file name="{name}">\n{text}\n</file>'


def said_message(said: JsonObject) -> Message:
    """The message. Raises Refused where something cannot be sent, or nothing is said.

    Example: {"text": "look", "images": [{"media_type": "image/png", "data": "iVBO…"}]} -> words and a picture
    """
    words = optional_text(said, "text", most=MOST_WORDS) or ""
    parts: list[Part] = [Text(words)] if words.strip() else []
    for row in rows_of(said, "files", most=MOST_FILES):
        name = " ".join((optional_text(row, "name") or "file").split()).replace('"', "'")
        text = optional_text(row, "text", most=MOST_WORDS) or ""
        if "\0" in text:
            raise wrong(f"{name[:80]!r} is no text")
        parts.append(Text(FILE.format(name=name, text=text.rstrip("\n"))))
    parts += [_picture(row) for row in rows_of(said, "images", most=MOST_PICTURES)]
    if not parts:
        raise wrong("nothing is said")
    return Message(Role.USER, tuple(parts))


def _picture(row: JsonObject) -> Image:
    kind = needed_text(row, "media_type").lower()
    data = needed_text(row, "data", most=2 * LARGEST_PICTURE)
    if kind not in PICTURES:
        raise Refused(f"pictures are {', '.join(sorted(PICTURES))}", status=415, kind="picture")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise wrong("the picture is not base64") from None
    if len(content) > LARGEST_PICTURE:
        raise Refused(f"a picture has at most {LARGEST_PICTURE:,} bytes", status=413, kind="too_large")
    if not content.startswith(PICTURES[kind]):
        raise Refused(f"the picture is no {kind}", status=415, kind="picture")
    return Image(data=data, media_type=kind)
