"""`everlong count`: how many tokens a conversation has, and where they are."""

from typing import Any

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.terminal.options import model_option, pick_option, sample_option
from everlong.cli.words.wording import language_option

__all__ = ["count_command"]


@click.command(
    "count",
    cls=ExampleCommand,
    examples=(
        "everlong count chat.json",
        "everlong count chat.json --model claude-opus-4-5",
        "cat chat.json | everlong count - --json",
        "everlong count --sample",
    ),
)
@click.argument("file", required=False, metavar="FILE")
@model_option
@pick_option
@sample_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@language_option
def count_command(**given: Any) -> None:
    """Count the tokens of the conversation in FILE, by role.

    FILE is a request body or a list of messages in OpenAI, Anthropic or Gemini format, or a session file; - reads
    standard input. The count is exact if the model's tokenizer is known. Otherwise it is an estimate with an upper
    bound.
    """
    from everlong.cli.runs.count import run  # noqa: PLC0415 - help needs none of it

    run(**given)
