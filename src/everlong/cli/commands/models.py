"""`everlong models`: windows, output limits and prices, each with its source; what a window costs and keeps."""

from typing import Any

import click

__all__ = ["models_command"]


@click.command("models")
@click.argument("name", required=False)
@click.option("--provider", default="", help="Where the model is used: its own figures win.")
@click.option("--find", "text", default="", help="List every entry with this text in its name or provider.")
@click.option("--all", "everything", is_flag=True, help="Do not shorten the list.")
@click.option("--refresh", "fetch", is_flag=True, help="First fetch the newest table; it is kept for later.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def models_command(**given: Any) -> None:
    """Show the window, output limit and prices of the model NAME with their source, or search the registry."""
    from everlong.cli.runs.models import run  # noqa: PLC0415 - help needs none of it

    run(**given)
