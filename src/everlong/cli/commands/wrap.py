"""`everlong wrap`: a client behind the gateway, in one command."""

from typing import Any

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.terminal.options import TokenCount
from everlong.cli.words.wording import language_option

__all__ = ["wrap_command"]

#: Stands for the "--" before a command that is not a known client.
ANY = "\0any"


class _WrapCommand(ExampleCommand):
    """A command that runs another one: only the options before that command's name are ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args = [*args[: at + 1], ANY, *args[at + 1 :]]
        return super().parse_args(ctx, args)


@click.command(
    "wrap",
    cls=_WrapCommand,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    examples=(
        "everlong wrap claude",
        'everlong wrap codex exec "fix the tests"',
        "everlong wrap --upstream http://127.0.0.1:11434/v1 opencode",
        "everlong wrap --print claude",
        "everlong wrap -- python my_agent.py",
    ),
)
@click.option(
    "--upstream",
    default="",
    metavar="URL|NAME",
    help="Send all requests to this server: a URL ending in /v1, or a provider's name (default: each provider).",
)
@click.option(
    "--window",
    type=TokenCount(min=1),
    metavar="N",
    help="The model's context window in tokens, such as 200k, if the registry is wrong.",
)
@click.option(
    "--preset",
    default="",
    metavar="NAME|MODULE:NAME",
    help="The preset that decides what to keep, or your own as module:NAME (default: auto).",
)
@click.option(
    "--mode",
    default="",
    metavar="MODE",
    help="off forwards requests unchanged, trim compacts without summaries, auto also writes summaries "
    "(default: auto).",
)
@click.option(
    "--store",
    default="",
    metavar="URL",
    help="Where compactions and summaries are stored; memory: keeps nothing (default: your own SQLite file).",
)
@click.option("--print", "printed", is_flag=True, help="Print the shell commands instead of running them.")
@click.option("--list", "listed", is_flag=True, help="List the known clients and whether they are installed.")
@click.option("--json", "as_json", is_flag=True, help="Print the list, the commands or the closing report as JSON.")
@click.option("--quiet", is_flag=True, help="Do not print the closing report.")
@language_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="CLIENT [ARGS]...")
def wrap_command(command: tuple[str, ...], **given: Any) -> None:
    """Start CLIENT behind the gateway: claude, codex, opencode, pi, gemini, qwen, aider, openclaw or llm.

    All arguments after CLIENT go to the client. If no gateway is running, one starts; several clients share it, and
    it stops with the last of them. Your configuration files stay as they are. To run any other command, put -- before
    it: it gets OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL and OLLAMA_HOST.
    """
    from everlong.cli.runs.wrap import run  # noqa: PLC0415 - help needs none of it

    run(command=tuple(part for part in command if part != ANY), anything=command[:1] == (ANY,), **given)
