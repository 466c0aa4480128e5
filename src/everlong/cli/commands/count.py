"""`everlong count`: how many tokens a conversation has, and where they are."""

from typing import Any

import click

from everlong.cli.terminal.options import model_option, pick_option, sample_option
from everlong.cli.words.wording import language_option

__all__ = ["count_command"]


@click.command("count")
@click.argument("file", required=False, metavar="FILE")
@model_option
@pick_option
@sample_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@language_option
def count_command(**given: Any) -> None:
    """Count the tokens of the conversation in FILE (- for standard input), exactly where a tokenizer is known.

    FILE may be a request body or message list of OpenAI, Anthropic or Gemini, or a session file. Of a file with many
    conversations the first is counted, or the one that --pick names.
    """
    from everlong.cli.runs.count import run  # noqa: PLC0415 - help needs none of it

    run(**given)
