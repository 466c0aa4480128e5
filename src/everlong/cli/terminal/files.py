"""Reading what a command was pointed at: a file, standard input, or the sample that ships with us."""

import sys
from importlib.resources import files
from pathlib import Path

import click

from everlong.errors import InputError
from everlong.wire import Document, read

__all__ = ["check_place", "read_document", "sample_bytes", "source_bytes", "tell_warnings", "write_page"]


def sample_bytes() -> bytes:
    """The conversation that ships with the package."""
    return files("everlong.engine").joinpath("sample.json").read_bytes()


def source_bytes(path: str | None, *, sample: bool = False) -> bytes:
    """The bytes behind FILE; `-` is standard input."""
    if sample:
        return sample_bytes()
    if path is None:
        raise click.UsageError("name a FILE (or - for standard input), or use --sample")
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except IsADirectoryError:
        raise InputError(f"{path}: a folder, not a file") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def read_document(path: str | None, *, sample: bool = False) -> Document:
    """The conversation in FILE; an error names the file."""
    try:
        return read(source_bytes(path, sample=sample))
    except InputError as error:
        named = "the sample" if sample else "standard input" if path == "-" else path
        if str(error).startswith(f"{named}:"):
            raise
        raise InputError(f"{named}: {error}") from error


def tell_warnings(document: Document) -> None:
    """What could not be read, on standard error, so that the output stays clean."""
    for warning in document.warnings:
        click.echo(f"skipped {warning}", err=True)


STANDARD_OUTPUT = "-"


def check_place(where: str) -> None:
    """Raises InputError if no page can be written there: told before hours of work, not after."""
    if where != STANDARD_OUTPUT and Path(where).is_dir():
        raise InputError(f"{where}: a folder, not a file")
    if not Path(where).parent.is_dir():
        raise InputError(f"{where}: no such folder")


def write_page(text: str, where: str) -> None:
    """The page as UTF-8. Raises InputError."""
    if where == STANDARD_OUTPUT:
        click.echo(text.encode("utf-8", "replace"))  # as its head says, not as the terminal would
        return
    try:
        Path(where).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{where}: {error.strerror or error}") from error
