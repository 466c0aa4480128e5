"""What a file is, by its content and never by its name, and how large it may be. Pure."""

import io
import zipfile
from typing import Literal, TypeAlias

from everlong.errors import Refused

__all__ = ["LARGEST_FILE", "LARGEST_TEXT", "MOST_SECTIONS", "UTF16", "Kind", "kind_of", "refuse"]

LARGEST_FILE = 32 * 1024 * 1024  # bytes
LARGEST_TEXT = 4_000_000  # characters, as many as a message may have
LARGEST_UNPACKED = 400 * 1024 * 1024  # bytes of an Office file's parts together
MOST_PARTS = 20_000  # files inside an Office file
MOST_SECTIONS = 5_000  # pages, slides, sheets

Kind: TypeAlias = Literal["text", "pdf", "docx", "xlsx", "pptx"]

#: The folder inside a zip that shows what kind of Office file it is.
OFFICE: dict[str, Kind] = {"word/": "docx", "xl/": "xlsx", "ppt/": "pptx"}
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # how a text in UTF-16 begins
OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def refuse(kind: str, message: str, status: int = 415) -> Refused:
    """Return the refusal of a file."""
    return Refused(message, status=status, kind=kind)


def kind_of(data: bytes) -> Kind:
    """Return what a file is. Raises Refused if its text cannot be read."""
    if data[:1024].lstrip().startswith(b"%PDF-"):
        return "pdf"
    if data.startswith(b"PK\x03\x04"):
        return _office(data)
    if data.startswith(OLD_OFFICE):
        raise refuse("old_office", "this is an old Office file; save a copy as .docx, .xlsx or .pptx and attach that")
    if b"\0" in data[:8192] and not data.startswith(UTF16):
        raise refuse("not_text", "files of this kind contain no text")
    return "text"


def _office(data: bytes) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError):
        raise refuse("damaged", "the file is damaged") from None
    if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > LARGEST_UNPACKED:
        raise refuse("too_large", "the unpacked content of the file is too large", 413)
    for folder, kind in OFFICE.items():
        if any(part.filename.startswith(folder) for part in parts):
            return kind
    raise refuse("not_text", "files of this kind contain no text")
