"""The parts of a message: text, pictures and files, checked before anything is stored.

The endpoint returns the text of a file and its cost in tokens, before the file is sent.
"""

import asyncio
import base64
import binascii

from everlong.core import Image, Json, JsonObject, Message, Part, Role, Text
from everlong.engine import count
from everlong.errors import Refused
from everlong.web.api.endpoint import ApiRequest, read_body
from everlong.web.app import AppState
from everlong.web.documents.kinds import LARGEST_FILE, LARGEST_TEXT
from everlong.web.documents.process import read_document
from everlong.web.fields import invalid, object_list, optional_text, required_text

__all__ = ["AttachmentEndpoints", "user_message"]

AT_ONCE = 2  # files that are read at the same time
MOST_PICTURES, MOST_FILES = 20, 20
LARGEST_PICTURE = 10 * 1024 * 1024  # bytes
#: The types of pictures that models accept, and how their bytes begin.
PICTURES: dict[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
ATTACHED_FILE = '<file name="{name}">\n{text}\n</file>'


class AttachmentEndpoints:
    """Reads files; stores nothing."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def read(self, request: ApiRequest) -> Json:
        """Return the text of the file in the body, in sections with their tokens; for a picture, only its tokens."""
        data = await read_body(request.http, LARGEST_FILE)
        model = request.query("model").partition("/")[2]
        kind = _picture_type(data)
        if kind and len(data) <= LARGEST_PICTURE:
            return {"kind": "picture", "tokens": await asyncio.to_thread(_picture_tokens, data, kind, model)}
        async with self._turns:
            return (await read_document(data, model)).shown()


def _picture_tokens(data: bytes, kind: str, model: str) -> int:
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return count([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}], model=model)


def _picture_type(data: bytes) -> str:
    """Return the media type of a picture; "" if models do not accept it."""
    return next((kind for kind, starts in PICTURES.items() if data.startswith(starts)), "")


def user_message(body: JsonObject) -> Message:
    """Return the user's message. Raises Refused if a part cannot be sent or there is none.

    Example: {"text": "look", "images": [{"media_type": "image/png", "data": "iVBO…"}]} -> a text and a picture
    """
    text = optional_text(body, "text", most=LARGEST_TEXT) or ""
    parts: list[Part] = [Text(text)] if text.strip() else []
    parts += [_file(row) for row in object_list(body, "files", most=MOST_FILES)]
    parts += [_picture(row) for row in object_list(body, "images", most=MOST_PICTURES)]
    if not parts:
        raise invalid("the message is empty")
    return Message(Role.USER, tuple(parts))


def _file(row: JsonObject) -> Text:
    name = " ".join((optional_text(row, "name") or "file").split()).replace('"', "'")
    text = optional_text(row, "text", most=LARGEST_TEXT) or ""
    if "\0" in text:
        raise invalid(f"{name[:80]!r} is not a text file")
    return Text(ATTACHED_FILE.format(name=name, text=text.rstrip("\n")))


def _picture(row: JsonObject) -> Image:
    kind = required_text(row, "media_type").lower()
    data = required_text(row, "data", most=2 * LARGEST_PICTURE)
    if kind not in PICTURES:
        raise Refused(f"an image must be one of {', '.join(sorted(PICTURES))}", status=415, kind="picture")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("the image is not base64") from None
    if len(content) > LARGEST_PICTURE:
        raise Refused(f"an image can have at most {LARGEST_PICTURE:,} bytes", status=413, kind="too_large")
    if not content.startswith(PICTURES[kind]):
        raise Refused(f"the image is not {kind}", status=415, kind="picture")
    return Image(data=data, media_type=kind)
