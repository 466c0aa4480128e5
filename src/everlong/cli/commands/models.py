"""`everlong models`: windows, output limits and prices, each with its source; what a window costs and keeps."""

from typing import Any

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.words.wording import language_option

__all__ = ["models_command"]


@click.command(
    "models",
    cls=ExampleCommand,
    examples=(
        "everlong models gpt-4o",
        "everlong models deepseek-chat --provider openrouter",
        "everlong models --find sonnet",
        "everlong models --refresh",
    ),
)
@click.argument("name", required=False)
@click.option(
    "--provider", default="", metavar="NAME", help="The provider that serves the model; its figures are preferred."
)
@click.option(
    "--find", "text", default="", metavar="TEXT", help="List the models whose name or provider contains this text."
)
@click.option("--all", "everything", is_flag=True, help="List every match (default: the first 40).")
@click.option("--refresh", "fetch", is_flag=True, help="Download the newest tables first and keep them.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@language_option
def models_command(**given: Any) -> None:
    """Show the context window, output limit and prices of the model NAME.

    Every figure comes with its source. Without NAME the command lists the models in the registry.
    """
    from everlong.cli.runs.models import run  # noqa: PLC0415 - help needs none of it

    run(**given)
