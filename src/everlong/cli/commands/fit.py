"""`everlong fit`: a conversation brought under a budget, in the format it came in."""

from typing import Any

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.terminal.options import TokenCount, model_option, pick_option, preset_option, sample_option
from everlong.cli.words.wording import language_option

__all__ = ["fit_command"]


@click.command(
    "fit",
    cls=ExampleCommand,
    examples=(
        "everlong fit chat.json --budget 50000 -o shorter.json",
        "cat chat.json | everlong fit - --budget 8000 -o - > shorter.json",
        "everlong fit --sample --budget 16000",
    ),
)
@click.argument("file", required=False, metavar="FILE")
@click.option(
    "--budget",
    "-b",
    type=TokenCount(min=1),
    metavar="N",
    help="Tokens that messages and tool schemas may take, such as 50k (default: the model's context window).",
)
@click.option(
    "--output",
    "-o",
    "output",
    metavar="OUT",
    help="Write the result to this file; - writes to standard output (default: report only).",
)
@model_option
@preset_option
@pick_option
@sample_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@language_option
def fit_command(**given: Any) -> None:
    """Fit the conversation in FILE into a token budget and report what changed.

    FILE is a request body or a list of messages in OpenAI, Anthropic or Gemini format, or a session file; - reads
    standard input. The result has the same format. The report goes to standard output, or to standard error if the
    result goes there.
    """
    from everlong.cli.runs.fit import run  # noqa: PLC0415 - help needs none of it

    run(**given)
