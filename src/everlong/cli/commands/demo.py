"""`everlong demo`: a long conversation played live in a small window, with no key and no network.

The sample conversation is played again: its people and tools speak, a scripted model answers, the engine keeps it.
Every figure comes from the requests that the model really got and the events that the store really has.
"""

from typing import Any

import click

from everlong.cli.terminal.options import preset_option
from everlong.cli.words.wording import language_option

__all__ = ["demo_command"]

WINDOW = 16_000
SMALLEST = 4_000  # tokens; in less, the tools and the longest result leave no room for a conversation


@click.command("demo")
@click.option(
    "--window",
    "-w",
    default=WINDOW,
    type=click.IntRange(min=SMALLEST),
    help=f"The window of the model in tokens (default {WINDOW}).",
)
@preset_option
@click.option("--store", default="", metavar="URL", help="Keep the conversation here, to look at it afterwards.")
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
@language_option
def demo_command(**given: Any) -> None:
    """Watch a conversation outgrow its window, and what is kept.

    The sample conversation is held again through the engine: 28 turns with tools, three times as long as the window.
    A scripted model answers, so no key and no network are needed; requests, cuts and figures are real. No summaries are
    written: they would need a model that can.
    """
    from everlong.cli.runs.demo import run  # noqa: PLC0415 - help needs none of it

    run(**given)
