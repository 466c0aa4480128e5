"""`everlong demo`: a long conversation played live in a small window, with no key and no network."""

import click

from everlong.cli.demo.stage import show
from everlong.cli.words.language import Language
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
@click.option("--store", default="", metavar="URL", help="Keep the conversation here, to look at it afterwards.")
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
@language_option
def demo_command(window: int, store: str, json_wanted: bool, language: Language) -> None:
    """Watch a conversation outgrow its window, and what is kept.

    The sample conversation is held again through the engine: 28 turns with tools, three times as long as the window.
    A scripted model answers, so no key and no network are needed; requests, cuts and figures are real.
    """
    show(window, store, json_wanted=json_wanted, language=language)
