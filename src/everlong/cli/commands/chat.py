"""`everlong chat`: the agent in the terminal, in one shot, or for programs."""

from typing import Any

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.local import extras_for, local_option
from everlong.cli.permissions import permission_options
from everlong.cli.words.wording import language_option
from everlong.extras import expect_extras, expect_posix

__all__ = ["chat_command"]


@click.command(
    "chat",
    cls=ExampleCommand,
    examples=(
        "everlong chat  # with the key in OPENAI_API_KEY, ANTHROPIC_API_KEY, …",
        "everlong chat --local",
        "everlong chat --upstream http://127.0.0.1:11434/v1 --model llama3.1",
        'git diff | everlong chat -m "Review this change." --no-tools',
        "everlong chat --continue",
    ),
)
@click.option(
    "--message",
    "-m",
    metavar="TEXT",
    help="Send this message, print the answer and exit. Text on standard input is attached.",
)
@click.option("--json", "json_wanted", is_flag=True, help="Print events as lines of JSON; only with one message.")
@click.option(
    "--model", metavar="NAME", help="The model to use (default: EVERLONG_MODEL, else one that the server offers)."
)
@click.option(
    "--upstream",
    metavar="URL|NAME",
    help="The server with the model: a URL ending in /v1, a provider's name, or witness (quotes the conversation, "
    "needs no key).",
)
@local_option
@click.option("--sample", is_flag=True, help="Start with a sample conversation in a small context window.")
@click.option("--continue", "latest", is_flag=True, help="Continue the most recent thread.")
@click.option("--thread", metavar="ID", help="Continue this thread; the beginning of its id is enough.")
@click.option(
    "--store", metavar="URL", help="Where threads are stored (default: EVERLONG_STORE, else your own SQLite file)."
)
@click.option("--workspace", metavar="FOLDER", help="The folder that tools may use (default: the current folder).")
@permission_options
@click.option("--no-tools", is_flag=True, help="Chat without tools.")
@click.option("--system", metavar="TEXT", help="The system prompt of new threads.")
@click.option(
    "--preset",
    metavar="NAME|MODULE:NAME",
    help="The preset that decides what to keep, or your own as module:NAME (default: auto).",
)
@language_option
def chat_command(**given: Any) -> None:
    """Chat with an agent in the terminal; the conversation may grow past the context window.

    The model runs on this machine (--local), on a server (--upstream), or at the provider whose key is in the
    environment. In the chat, /help lists the commands and Ctrl-C stops an answer or a tool. Threads are saved, and you
    can continue them at any time.
    """
    expect_posix("everlong chat", "everlong serve --no-app and wrap run here")
    expect_extras("chatting", "llm", *extras_for(given["local"], given["store"]))
    from everlong.cli.chat.program import run  # noqa: PLC0415
    from everlong.cli.chat.setup import ChatOptions  # noqa: PLC0415 - needs an extra

    run(ChatOptions(**given))
