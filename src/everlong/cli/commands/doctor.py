"""`everlong doctor`: what a client behind the gateway has, and what is missing."""

from typing import Any

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.terminal.options import TokenCount
from everlong.cli.words.wording import language_option

__all__ = ["doctor_command"]


@click.command(
    "doctor",
    cls=ExampleCommand,
    examples=(
        "everlong doctor",
        "everlong doctor claude",
        "everlong doctor codex --online",
        "everlong doctor opencode --upstream http://127.0.0.1:11434/v1",
    ),
)
@click.argument("name", required=False, metavar="[CLIENT]")
@click.option(
    "--upstream",
    default="",
    metavar="URL|NAME",
    help="Check this server instead of the providers, as in everlong wrap --upstream.",
)
@click.option(
    "--model",
    default="",
    metavar="NAME",
    help="Show the window of this model (default: the model the client is set to).",
)
@click.option(
    "--window",
    type=TokenCount(min=1),
    metavar="N",
    help="The model's context window in tokens, such as 200k, if the registry is wrong.",
)
@click.option("--online", is_flag=True, help="Also check whether servers on other machines answer.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@language_option
def doctor_command(**given: Any) -> None:
    """Check what CLIENT needs to run behind the gateway, and say what is missing.

    Without CLIENT the command lists all known clients. It shows what is installed, which key or login the client
    uses, where requests go, and the context window. The exit code is 1 if something is missing. Without --online no
    other machine is contacted.
    """
    from everlong.cli.runs.doctor import run  # noqa: PLC0415 - help needs none of it

    run(**given)
