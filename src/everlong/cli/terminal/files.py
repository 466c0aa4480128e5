"""The files of a command: what FILE names, and where the output goes. `-` is standard input or output.

A file may contain many conversations; one of them is picked by its number or id.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import click

from everlong.core import did_you_mean
from everlong.errors import InputError
from everlong.store import LARGEST_INPUT, open_private, read_input
from everlong.wire import Document, marks_of, read_all, unpack

__all__ = [
    "Picked",
    "check_output",
    "pick_document",
    "read_picked",
    "sample_document",
    "source_bytes",
    "write_output",
    "write_page",
]

STANDARD = "-"
FEW = 5  # conversations that an error names


@dataclass(frozen=True, slots=True)
class Picked:
    """A conversation of a file: its number, and how many there are."""

    document: Document
    number: int
    of: int


def source_bytes(path: str | None, *, sample: bool = False) -> bytes:
    """Return the bytes of FILE, or of the sample conversation that ships with the package."""
    if sample:
        return files("everlong.engine").joinpath("sample.json").read_bytes()
    if path is None:
        raise click.UsageError("name a FILE (or - for standard input), or use --sample")
    if path != STANDARD:
        return read_input(Path(path))
    data = sys.stdin.buffer.read(LARGEST_INPUT + 1)
    if len(data) > LARGEST_INPUT:
        raise InputError(f"standard input is larger than {LARGEST_INPUT // 1_000_000:,} MB: split it")
    return data


def sample_document() -> Document:
    """Return the sample conversation that ships with the package."""
    return read_picked(None, sample=True).document


def read_picked(path: str | None, *, sample: bool = False, pick: str = "1") -> Picked:
    """Return the picked conversation in FILE."""
    name = "the sample" if sample else "standard input" if path == STANDARD else str(path)
    return pick_document(source_bytes(path, sample=sample), pick, name)


def pick_document(data: bytes, pick: str, name: str) -> Picked:
    """Return the conversation with that number or id in the bytes of a file. An error names the file."""
    try:
        documents = read_all(data)
    except InputError as error:
        if str(error).startswith(f"{name}:"):
            raise
        raise InputError(f"{name}: {error}") from error
    if pick.isdecimal() and 1 <= int(pick[:9]) <= len(documents):
        number = int(pick)
    else:
        number = _with_id(pick, [_id_of(document) for document in documents], name)
    return Picked(documents[number - 1], number, len(documents))


def _id_of(document: Document) -> str:
    """Return the id of a conversation: its session's, or the field of a request body; "" if it has none."""
    own, _ = unpack(document.extra)
    named = own.get("id") if isinstance(own, dict) else None
    return marks_of(document).session_id(document) or (str(named) if isinstance(named, str | int) else "")


def _with_id(pick: str, ids: Sequence[str], name: str) -> int:
    """Return the number of the only conversation with this id, or whose id begins with it. Raises InputError."""
    whole = [at for at, each in enumerate(ids, start=1) if each == pick]
    found = whole or [at for at, each in enumerate(ids, start=1) if pick and each.startswith(pick)]
    if len(found) == 1:
        return found[0]
    named = [each for each in ids if each]
    if found:
        few = ", ".join(f"{at} ({ids[at - 1]})" for at in found[:FEW]) + (" …" if len(found) > FEW else "")
        raise InputError(f"{name}: {pick!r} matches {len(found)} conversations: {few}; give more of the id")
    few = f" ({', '.join(named[:FEW])}{' …' if len(named) > FEW else ''})" if named else ""
    raise InputError(f"{name}: no conversation {pick!r}: the file holds {len(ids)}{few}{did_you_mean(pick, named)}")


def check_output(path: str) -> None:
    """Raise InputError if no file can be written there: before hours of work, not after."""
    if path != STANDARD and Path(path).is_dir():
        raise InputError(f"{path} is a folder, not a file")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: no such folder")


def write_output(data: bytes, path: str) -> None:
    """Write to a file that only its owner can read, or to standard output. Raises InputError."""
    if path == STANDARD:
        click.echo(data, nl=False)
        return
    try:
        with os.fdopen(open_private(Path(path), os.O_WRONLY | os.O_TRUNC, special=True), "wb") as file:
            file.write(data)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def write_page(page: str, path: str) -> None:
    """Write an HTML page as UTF-8, as its head says, whatever the terminal's encoding is. Raises InputError."""
    write_output(page.encode("utf-8", "replace"), path)
