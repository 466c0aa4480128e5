"""`everlong demo`: a long conversation played live in a small window, with no key and no network.

The sample conversation is replayed: its people and tools speak, a scripted model answers, and the engine keeps it
within the window. Every figure comes from the requests that the model really received and the events that are really in
the store.
"""

from typing import Any

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.terminal.options import TokenCount, preset_option
from everlong.cli.words.wording import language_option

__all__ = ["demo_command"]

WINDOW = 16_000
SMALLEST = 4_000  # tokens; in less, the tools and the longest result leave no space for a conversation


@click.command(
    "demo",
    cls=ExampleCommand,
    examples=(
        "everlong demo",
        "everlong demo --window 8000",
        "everlong demo --preset chatbox",
    ),
)
@click.option(
    "--window",
    "-w",
    type=TokenCount(min=SMALLEST),
    metavar="N",
    help=f"The model's context window in tokens, such as 32k; at least {SMALLEST} (default: {WINDOW}).",
)
@preset_option
@click.option(
    "--store",
    default="",
    metavar="URL",
    help="Store the conversation here so that you can look at it later (default: memory only).",
)
@click.option("--json", "json_wanted", is_flag=True, help="Print the figures as JSON.")
@language_option
def demo_command(**given: Any) -> None:
    """Watch a conversation outgrow its context window and continue.

    The engine replays a sample conversation of 28 turns with tools, about three times as long as the window. A
    scripted model answers, so you need no key and no network. Requests, compactions and figures are real. There are
    no summaries, because a scripted model cannot write one.
    """
    from everlong.cli.runs.demo import run  # noqa: PLC0415 - help needs none of it

    run(**given, sizes=(SMALLEST, WINDOW))
