"""`everlong fit`: a conversation brought under a budget, in the format it came in."""

from typing import Any

import click

from everlong.cli.terminal.options import model_option, pick_option, preset_option, sample_option
from everlong.cli.words.wording import language_option

__all__ = ["fit_command"]


@click.command("fit")
@click.argument("file", required=False, metavar="FILE")
@click.option(
    "--budget", "-b", type=click.IntRange(min=1), help="Tokens for messages and tool schemas (default: the window)."
)
@click.option("--output", "-o", "output", metavar="OUT", help="Write the conversation here (- for standard output).")
@model_option
@preset_option
@pick_option
@sample_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@language_option
def fit_command(**given: Any) -> None:
    """Bring the conversation in FILE (- for standard input) under a budget; same format out, with a report.

    The report goes to standard output, or to standard error when the conversation itself goes there. Of a file with
    many conversations the first is taken, or the one that --pick names, and that one alone is written.
    """
    from everlong.cli.runs.fit import run  # noqa: PLC0415 - help needs none of it

    run(**given)
