"""`everlong chat`: the agent in the terminal, in one shot, or for programs."""

from typing import Any

import click

from everlong.cli.local import extras_for, local_option
from everlong.cli.permissions import permission_options
from everlong.cli.words.wording import language_option
from everlong.extras import expect_extras, expect_posix

__all__ = ["chat_command"]


@click.command("chat")
@click.option("--message", "-m", help="Say this, print the answer and end. Text on standard input is attached.")
@click.option("--json", "json_wanted", is_flag=True, help="Print events as lines of JSON; for one message.")
@click.option("--model", help="The model's name (default: EVERLONG_MODEL, else one that the upstream has).")
@click.option("--upstream", help="Where the model is: an address with its /v1, a gateway's too, or a provider's name.")
@local_option
@click.option("--sample", is_flag=True, help="Begin with a sample conversation in a small window.")
@click.option("--continue", "latest", is_flag=True, help="Go on with the latest thread.")
@click.option("--thread", metavar="ID", help="Go on with this thread; the beginning of its id is enough.")
@click.option("--store", metavar="URL", help="Where threads are kept (default: EVERLONG_STORE, else your own file).")
@click.option("--workspace", metavar="FOLDER", help="The folder that tools may use (default: this one).")
@permission_options
@click.option("--no-tools", is_flag=True, help="Only talk.")
@click.option("--system", metavar="TEXT", help="The system text of new threads.")
@click.option("--preset", help="How a history is cut.")
@language_option
def chat_command(**given: Any) -> None:
    """Talk to a model that never runs out of window.

    The model is the local one (--local), one behind --upstream, or the one whose key is in the environment. Inside,
    /help lists the commands. Ctrl-C stops an answer or a tool; the thread can always be gone on with.
    """
    expect_posix("everlong chat", "everlong serve --no-app and wrap run here")
    expect_extras("chatting", "llm", *extras_for(given["local"], given["store"]))
    from everlong.cli.chat.program import run  # noqa: PLC0415
    from everlong.cli.chat.setup import ChatOptions  # noqa: PLC0415 - needs an extra

    run(ChatOptions(**given))
