"""`everlong doctor`: what is there for a client behind the gateway, and what is missing."""

from typing import Any

import click

from everlong.cli.words.wording import language_option

__all__ = ["doctor_command"]


@click.command("doctor")
@click.argument("name", required=False, metavar="[CLIENT]")
@click.option("--upstream", default="", help="As for everlong wrap: one server for everything.")
@click.option("--model", default="", help="The model whose window is shown.")
@click.option(
    "--window", type=click.IntRange(min=1), help="The window of the model, where you know better than the tables."
)
@click.option("--online", is_flag=True, help="Also ask servers beyond this machine whether they answer.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@language_option
def doctor_command(**given: Any) -> None:
    """Show what is installed, how you are known to the provider, where requests go, the window, and what is missing.

    Without CLIENT it lists all clients. Exits with 1 if something that is needed is missing. Nothing beyond this
    machine is asked without --online.
    """
    from everlong.cli.runs.doctor import run  # noqa: PLC0415 - help needs none of it

    run(**given)
