"""Options that several commands of the lab share, the lists in them, and the warning about what was left out."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from everlong.cli.terminal.options import TokenCounts
from everlong.lab import HALVES, OVERHEAD_FORMS, OverheadForm

__all__ = [
    "DATA",
    "EVERY_SESSION",
    "FILES",
    "HALF",
    "HTML",
    "JOBS",
    "JSON",
    "STANDARD_INPUT",
    "WORK_FILES",
    "names_listed",
    "overhead_form",
    "overheads_option",
    "warn",
    "windows_option",
]

Command = TypeVar("Command", bound=Callable[..., Any])

WORK_FILES = "claude_code,misc"
STANDARD_INPUT = "-"

DATA = click.option("--data", metavar="DIR", help="The data folder (default: EVERLONG_DATA).")
FILES = click.option(
    "--files",
    default=WORK_FILES,
    metavar="NAME,NAME",
    help=f"The files to read from agents/ in the data folder (default: {WORK_FILES}).",
)
EVERY_SESSION = click.option(
    "--every",
    "step",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Use only every Nth session (default: 1, all of them).",
)
HALF = click.option(
    "--half", type=click.Choice(HALVES), default="all", help="The half of the conversations to use (default: all)."
)
JOBS = click.option(
    "--jobs",
    "processes",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Number of processes to use (default: 1).",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
HTML = click.option("--html", metavar="FILE", help="Also write a page with plots; - writes it to standard output.")


def windows_option(default: str) -> Callable[[Command], Command]:
    """Return the option that lists windows."""
    text = f"Context windows to measure, in tokens, such as 64k,200k (default: {default})."
    return click.option("--window", "windows", default=default, type=TokenCounts(min=1), metavar="N,N", help=text)


def overheads_option(default: str) -> Callable[[Command], Command]:
    """Return the option that lists sizes of the prompt overhead."""
    text = f"Tokens of system text and tools in every request; several are measured in turn (default: {default})."
    return click.option("--overhead", "overheads", default=default, type=TokenCounts(min=0), metavar="N,N", help=text)


def overhead_form(default: OverheadForm) -> Callable[[Command], Command]:
    """Return the option that says what the prompt overhead is made of."""
    text = f"What the prompt overhead consists of; both means half of each (default: {default})."
    return click.option("--overhead-as", "form", type=click.Choice(OVERHEAD_FORMS), default=default, help=text)


def names_listed(listed: str) -> tuple[str, ...]:
    """Read names. Example: "claude_code, misc" -> ("claude_code", "misc")"""
    return tuple(name.strip() for name in listed.split(",") if name.strip())


def warn(line: str) -> None:
    """Say what was left out, on standard error."""
    click.echo(line, err=True)
