"""`everlong inspect`: the token map of a conversation, on the terminal, as a page or as JSON."""

from typing import Any

import click

from everlong.cli.terminal.options import LateChoice, model_option, pick_option, sample_option
from everlong.cli.words.wording import language_option

__all__ = ["inspect_command"]


@click.command("inspect")
@click.argument("file", required=False, metavar="FILE")
@model_option
@sample_option
@click.option(
    "--budget", "-b", type=click.IntRange(min=1), help="Show what would be cut to fit this many tokens, and why."
)
@click.option(
    "--html",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[PATH]",
    help="Write one HTML page (default: beside FILE, ending in .map.html; - for standard output).",
)
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
@click.option("--top", default=10, type=click.IntRange(min=0), help="Rows in each list, 0 for all (default 10).")
@pick_option
@click.option(
    "--for", "target", type=LateChoice("FORMAT", "everlong.wire:FORMATS"), help="Check against this provider's rules."
)
@language_option
def inspect_command(**given: Any) -> None:
    """Show where the window goes in the conversation in FILE (- for standard input).

    What each message, round, role and tool weighs, what is protected, what repeats, and what the provider would
    reject. FILE may be a request body or message list of OpenAI, Anthropic or Gemini, or a session file.
    """
    from everlong.cli.runs.inspect import run  # noqa: PLC0415 - help needs none of it

    run(**given)
