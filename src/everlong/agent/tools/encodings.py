"""Bytes of a file as text and back: which encoding it is in, and what is no text at all.

A byte order mark decides; else UTF-8 if it is that; else GB 18030 where that gives mostly Chinese; else Latin-1.
"""

import codecs
from dataclasses import dataclass

__all__ = ["LOOKED_AT", "Encoding", "decoded", "encoding_of", "media_type_of"]

LOOKED_AT = 65_536  # bytes from the beginning of a file decide what it is
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file is written: the name of the encoding, and the mark it begins with."""

    name: str
    mark: bytes = b""


def encoding_of(beginning: bytes) -> Encoding | None:
    """How the bytes are to be read; None if they are no text."""
    for mark, name in MARKS:
        if beginning.startswith(mark):
            return Encoding(name, mark)
    if b"\0" in beginning:
        return None
    if _reads_as(beginning, "utf-8") is not None:
        return Encoding("utf-8")
    chinese = _reads_as(beginning, "gb18030")
    if chinese is not None:
        foreign = [character for character in chinese if character > "\x7f"]
        common = sum(
            "\u4e00" <= c <= "\u9fff" or "\u3000" <= c <= "\u303f" or "\uff00" <= c <= "\uffef" for c in foreign
        )
        if common * 10 >= len(foreign) * 9:
            return Encoding("gb18030")
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in beginning)
    return None if controls * 20 > len(beginning) else Encoding("latin-1")


def decoded(content: bytes) -> tuple[str, Encoding] | None:
    """A whole file as text, without its mark, such that encoding it again gives the same bytes; None if it is none."""
    encoding = encoding_of(content[:LOOKED_AT])
    if encoding is None:
        return None
    for name in dict.fromkeys((encoding.name, "latin-1")):
        if encoding.mark and name != encoding.name:
            return None
        try:
            text = content[len(encoding.mark) :].decode(name)
        except UnicodeDecodeError:
            continue
        if text.encode(name) == content[len(encoding.mark) :]:
            return text, Encoding(name, encoding.mark)
    return None


def media_type_of(beginning: bytes) -> str:
    """The kind of picture that models can see, "" for anything else."""
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for sign, kind in PICTURES if beginning.startswith(sign)), "")


def _reads_as(content: bytes, name: str) -> str | None:
    """The text, if it is that; the last character may be cut off."""
    try:
        return codecs.getincrementaldecoder(name)().decode(content)
    except UnicodeDecodeError:
        return None
