"""The files of a command: what FILE names, and where the output goes. `-` is standard input or output."""

import os
import sys
from importlib.resources import files
from pathlib import Path

import click

from everlong.errors import InputError
from everlong.store import LARGEST_INPUT, open_private, read_input
from everlong.wire import Document, read

__all__ = ["check_output", "print_warnings", "read_document", "source_bytes", "write_output", "write_page"]

STANDARD = "-"


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
        raise InputError(f"standard input: larger than {LARGEST_INPUT // 1_000_000:,} MB; split it")
    return data


def read_document(path: str | None, *, sample: bool = False) -> Document:
    """Return the conversation in FILE. An error names the file."""
    try:
        return read(source_bytes(path, sample=sample))
    except InputError as error:
        name = "the sample" if sample else "standard input" if path == STANDARD else path
        if str(error).startswith(f"{name}:"):
            raise
        raise InputError(f"{name}: {error}") from error


def print_warnings(document: Document) -> None:
    """Print what could not be read on standard error, so that the output stays clean."""
    for warning in document.warnings:
        click.echo(f"skipped {warning}", err=True)


def check_output(path: str) -> None:
    """Raise InputError if no file can be written there: before hours of work, not after."""
    if path != STANDARD and Path(path).is_dir():
        raise InputError(f"{path}: a folder, not a file")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: no such folder")


def write_output(data: bytes, path: str) -> None:
    """Write to a file that its owner alone can read, or to standard output. Raises InputError."""
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
