"""What a message carries besides its text: files that it names with @, pictures, and the output of typed commands.

Files are read within the boundary of the agent's tools: a pasted text with @~/.ssh/id_rsa attaches nothing.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from everlong.agent import AgentConfig, read_named
from everlong.cli.terminal.text import clean, one_line
from everlong.cli.words.wording import Words
from everlong.core import Image, Text, nearest
from everlong.errors import InputError
from everlong.store import read_input

__all__ = ["Attached", "command_output", "files_named", "picture_in"]

MEGABYTE = 1024 * 1024
MOST_BYTES = 10 * MEGABYTE  # of a picture
MOST_TEXT = 4_000_000  # bytes of a file that is attached
MOST_NAMED = 20  # files of one message
LONGEST_NAME = 300  # characters of a path
SHORT = 80
ALIKE = 0.75  # share of letters that a misspelt name has in common with a file name
#: A file that a message names: @src/app.py, or @"my notes.txt". An address such as me@example.com does not count.
NAMED = re.compile(r'(?<![^\s(\[{"\'])@(?:"([^"\n]+)"|([^\s"]+))')
AFTER = ".,;:!?)]}'\"。，；：！？）】》」"  # signs that may follow a path without being part of it
FILE = '<file name="{name}">\n{text}\n</file>'
COMMAND = '<command line="{line}">\n{text}\n</command>'
#: How picture files of each kind begin; the file name does not matter.
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@dataclass(frozen=True, slots=True)
class Attached:
    """A file that is attached to a message, or the line that says why it is not (`part` is None)."""

    name: str
    part: Text | Image | None
    lines: int = 0
    problem: str = ""


def files_named(text: str, config: AgentConfig, say: Words) -> Iterator[Attached]:
    """Yield the files that a message names with @, each once. Words that are neither paths nor files are skipped.

    Example: "Explain @src/app.py, please" -> the text of src/app.py
    """
    seen: set[str] = set()
    for match in NAMED.finditer(text):
        quoted, plain = match.groups()
        name = quoted or _path_in(plain, config)
        if not name or name in seen or len(name) > LONGEST_NAME:
            continue
        seen.add(name)
        if len(seen) > MOST_NAMED:
            yield Attached(name, None, problem=say("attach_many", most=str(MOST_NAMED)))
            return
        attached = _file(name, config, say, certain=bool(quoted) or "/" in name)
        if attached is not None:
            yield attached


def _path_in(word: str, config: AgentConfig) -> str:
    """Return the path in a word, without punctuation after it."""
    if not (config.workspace / word).exists():
        word = word.rstrip(AFTER)
    return word


def _file(name: str, config: AgentConfig, say: Words, *, certain: bool) -> Attached | None:
    """Return a file of the workspace; None for a word such as @property. `certain` means that a file is meant."""
    path, shown = config.workspace / name, one_line(name)[:SHORT]
    try:
        exists = path.exists()
    except (OSError, ValueError):  # ValueError: a NUL byte
        exists = False
    if not exists:
        near = nearest(path.name, (each.name for each in _beside(path)), near=ALIKE)
        if not near and not certain:
            return None
        key = "attach_missing_near" if near else "attach_missing"
        return Attached(shown, None, problem=say(key, name=shown, nearest=one_line(near)))
    try:
        data = read_named(config.workspace, config.allowed, name, max(MOST_TEXT, MOST_BYTES))
        kind = _media_type(data)
        if kind:
            return Attached(shown, _image(data, kind, shown, say))
        if b"\0" in data or len(data) > MOST_TEXT:
            return Attached(shown, None, problem=say("attach_not_text", name=shown))
    except InputError as error:
        return Attached(shown, None, problem=one_line(str(error)))
    content = data.decode("utf-8", "replace").rstrip("\n")
    quoted = " ".join(name.split()).replace('"', "'")
    return Attached(shown, Text(FILE.format(name=quoted, text=content)), lines=content.count("\n") + 1)


def _beside(path: Path) -> Iterator[Path]:
    try:
        yield from path.parent.iterdir()
    except (OSError, ValueError):
        return


def command_output(command: str, text: str) -> Text:
    """Return the output of a typed command as the model reads it with the next message."""
    line = " ".join(command.split()).replace('"', "'")
    return Text(COMMAND.format(line=line, text=clean(text)))


# --- pictures -------------------------------------------------------------------------------------


def picture_in(path: Path, say: Words) -> tuple[Image, int]:
    """Return the picture in a file and its size in bytes. Raises InputError for a file that no model accepts."""
    try:
        if not path.is_file() and path.exists():  # reading a device or a pipe may never end
            raise InputError(say("image_wrong", name=path.name))
        size = path.stat().st_size
        if size > MOST_BYTES:
            figures = {"n": str(size // MEGABYTE), "most": str(MOST_BYTES // MEGABYTE)}
            raise InputError(say("image_large", name=path.name, **figures))
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        raise InputError(f"{path.name}: {getattr(error, 'strerror', None) or error}") from None
    data = read_input(path, MOST_BYTES)
    return _image(data, _media_type(data), path.name, say), len(data)


def _image(data: bytes, kind: str, name: str, say: Words) -> Image:
    if not kind:
        raise InputError(say("image_wrong", name=name))
    if len(data) > MOST_BYTES:
        raise InputError(say("image_large", name=name, n=str(len(data) // MEGABYTE), most=str(MOST_BYTES // MEGABYTE)))
    return Image(data=base64.b64encode(data).decode("ascii"), media_type=kind)


def _media_type(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in SIGNATURES if data.startswith(signature)), "")
