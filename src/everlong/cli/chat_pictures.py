"""Pictures from files, as messages carry them. The kind is told by the first bytes, never by the name."""

import base64
from pathlib import Path

from everlong.cli.chat_wording import ChatWording
from everlong.core import Image
from everlong.errors import InputError

__all__ = ["SIGNS", "picture"]

MOST_BYTES = 10 * 1024 * 1024
MEGABYTE = 1024 * 1024
#: How files of each kind begin.
SIGNS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def picture(path: Path, say: ChatWording) -> tuple[Image, int]:
    """The picture in a file and its bytes. Raises InputError for what no model takes."""
    try:
        if not path.is_file() and path.exists():  # a device or a pipe has no end
            raise InputError(say("image_wrong", name=path.name))
        size = path.stat().st_size
        if size > MOST_BYTES:
            figures = {"n": str(size // MEGABYTE), "most": str(MOST_BYTES // MEGABYTE)}
            raise InputError(say("image_large", name=path.name, **figures))
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # no file has a NUL in its name
        raise InputError(f"{path.name}: {getattr(error, 'strerror', None) or error}") from None
    kind = _kind(data)
    if not kind:
        raise InputError(say("image_wrong", name=path.name))
    return Image(data=base64.b64encode(data).decode("ascii"), media_type=kind), len(data)


def _kind(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for sign, kind in SIGNS if data.startswith(sign)), "")
