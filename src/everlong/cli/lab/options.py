"""Options that several commands of the lab take, and the lists in them."""

import click

from everlong.lab import HALVES

__all__ = ["DATA", "HALF", "HTML", "JOBS", "JSON", "WORK_FILES", "names_listed", "tokens_listed"]

WORK_FILES = "claude_code,misc"

DATA = click.option("--data", metavar="DIR", help="The data folder (default: EVERLONG_DATA).")
HALF = click.option("--half", type=click.Choice(HALVES), default="all", help="Which conversations (default: all).")
JOBS = click.option("--jobs", "processes", type=click.IntRange(min=1), default=1, metavar="N", help="Processes.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
HTML = click.option("--html", metavar="FILE", help="Write a page with plots (- for standard output).")


def tokens_listed(_: click.Context, __: click.Parameter, value: str) -> tuple[int, ...]:
    """Read numbers of tokens, each once, the smallest first. Example: "16000,8000" -> (8000, 16000)"""
    try:
        numbers = tuple(sorted({int(piece) for piece in value.split(",") if piece.strip()}))
    except ValueError:
        raise click.BadParameter("numbers with commas between them, such as 8000,16000") from None
    if any(number < 1 for number in numbers):
        raise click.BadParameter("at least one token")
    return numbers


def names_listed(listed: str) -> tuple[str, ...]:
    """Read names. Example: "claude_code, misc" -> ("claude_code", "misc")"""
    return tuple(name.strip() for name in listed.split(",") if name.strip())
