"""Writing an HTML page to where it was asked for: a file, or standard output."""

from pathlib import Path

import click

from everlong.errors import InputError

__all__ = ["check_place", "write_page"]

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
