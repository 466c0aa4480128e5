"""`everlong inspect`: the token map of a conversation, on the terminal, as a page or as JSON."""

from typing import Any

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.terminal.options import (
    LateChoice,
    TokenCount,
    model_option,
    pick_option,
    preset_option,
    sample_option,
)
from everlong.cli.words.wording import language_option

__all__ = ["inspect_command"]


@click.command(
    "inspect",
    cls=ExampleCommand,
    examples=(
        "everlong inspect chat.json",
        "everlong inspect chat.json --budget 50000  # what a compaction would change",
        "everlong inspect chat.json --preset simple  # what this preset would change",
        "everlong inspect chat.json --for anthropic",
        "everlong inspect --sample --html map.html",
    ),
)
@click.argument("file", required=False, metavar="FILE")
@model_option
@sample_option
@click.option(
    "--budget",
    "-b",
    type=TokenCount(min=1),
    metavar="N",
    help="Also show what would change to fit the conversation into N tokens (such as 50k), and why. With --preset, the "
    "default is the model's context window.",
)
@preset_option
@click.option(
    "--html",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[PATH]",
    help="Write the map as one HTML page (default path: FILE with the ending .map.html; - writes to standard output).",
)
@click.option("--json", "json_wanted", is_flag=True, help="Print the map as JSON.")
@click.option(
    "--top",
    default=10,
    type=click.IntRange(min=0),
    metavar="N",
    help="Rows to show in each list; 0 shows all (default: 10).",
)
@pick_option
@click.option(
    "--for",
    "target",
    type=LateChoice("FORMAT", "everlong.wire:FORMATS"),
    help="Check the conversation against the rules of this format (default: the format of FILE).",
)
@language_option
def inspect_command(**given: Any) -> None:
    """Show what fills the context window in the conversation in FILE.

    The map shows the tokens of each role, tool, round and message, what is protected, what repeats, and what the
    provider would reject. FILE is a request body or a list of messages in OpenAI, Anthropic or Gemini format, or a
    session file; - reads standard input.
    """
    from everlong.cli.runs.inspect import run  # noqa: PLC0415 - help needs none of it

    run(**given)
