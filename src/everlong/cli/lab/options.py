"""Options that several commands of the lab take, and the lists in them."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from everlong.lab import HALVES, OVERHEAD_FORMS, OverheadForm

__all__ = [
    "DATA",
    "HALF",
    "HTML",
    "JOBS",
    "JSON",
    "WORK_FILES",
    "names_listed",
    "overhead_form",
    "overheads_listed",
    "tokens_listed",
]

Command = TypeVar("Command", bound=Callable[..., Any])

WORK_FILES = "claude_code,misc"

DATA = click.option("--data", metavar="DIR", help="The data folder (default: EVERLONG_DATA).")
HALF = click.option("--half", type=click.Choice(HALVES), default="all", help="Which conversations (default: all).")
JOBS = click.option("--jobs", "processes", type=click.IntRange(min=1), default=1, metavar="N", help="Processes.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
HTML = click.option("--html", metavar="FILE", help="Write a page with plots (- for standard output).")


def overhead_form(default: OverheadForm) -> Callable[[Command], Command]:
    """Return the option that says what the prompt overhead is made of."""
    text = f"What the overhead is made of; both: half of each (default: {default})."
    return click.option("--overhead-as", "form", type=click.Choice(OVERHEAD_FORMS), default=default, help=text)


def tokens_listed(_: click.Context, __: click.Parameter, value: str) -> tuple[int, ...]:
    """Read numbers of tokens, each once, the smallest first. Example: "16000,8000" -> (8000, 16000)"""
    numbers = _numbers(value)
    if any(number < 1 for number in numbers):
        raise click.BadParameter("at least one token")
    return numbers


def overheads_listed(_: click.Context, __: click.Parameter, value: str) -> tuple[int, ...]:
    """Read sizes of the prompt overhead as `tokens_listed` does; none at all is a size too. Example: "0" -> (0,)"""
    numbers = _numbers(value)
    if not numbers or numbers[0] < 0:
        raise click.BadParameter("numbers of tokens from 0 on, such as 12000,30000")
    return numbers


def _numbers(value: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(piece) for piece in value.split(",") if piece.strip()}))
    except ValueError:
        raise click.BadParameter("numbers with commas between them, such as 8000,16000") from None


def names_listed(listed: str) -> tuple[str, ...]:
    """Read names. Example: "claude_code, misc" -> ("claude_code", "misc")"""
    return tuple(name.strip() for name in listed.split(",") if name.strip())
