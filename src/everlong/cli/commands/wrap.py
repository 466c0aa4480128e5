"""`everlong wrap`: a client behind the gateway, in one command."""

from typing import Any

import click

from everlong.cli.words.wording import language_option

__all__ = ["wrap_command"]

#: Stands for the "--" before a command that is no client of the table.
ANY = "\0any"


class _WrapCommand(click.Command):
    """A command whose last arguments are another command's: only what stands before its name is ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args = [*args[: at + 1], ANY, *args[at + 1 :]]
        return super().parse_args(ctx, args)


@click.command(
    "wrap", cls=_WrapCommand, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option(
    "--upstream", default="", help="One server for everything: an address with its /v1, or a provider's name."
)
@click.option(
    "--window", type=click.IntRange(min=1), help="The window of the model, where you know better than the tables."
)
@click.option("--preset", default="", help="How a history is cut.")
@click.option("--mode", default="", help="off changes nothing, trim cuts, auto also summarises.")
@click.option("--store", default="", help="Where cuts and summaries are kept: a store's URL, memory: for nowhere.")
@click.option("--print", "printed", is_flag=True, help="Print the lines to set by hand instead, for sh.")
@click.option("--list", "listed", is_flag=True, help="List the clients that are known, and whether they are installed.")
@click.option("--json", "as_json", is_flag=True, help="Print the list, the lines or the closing figures as JSON.")
@click.option("--quiet", is_flag=True, help="Print nothing when the client has ended.")
@language_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="CLIENT [ARGS]...")
def wrap_command(command: tuple[str, ...], **given: Any) -> None:
    """Start CLIENT behind the gateway: claude, codex, opencode, pi, gemini, qwen, aider, openclaw or llm.

    Everything after CLIENT is the client's own. The gateway is started if none runs, shared by several clients, and
    ends with the last of them. Nothing of your files is changed. For any other command put -- before it: it gets
    OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL and OLLAMA_HOST.

    \b
    everlong wrap claude
    everlong wrap codex exec "mend the tests"
    everlong wrap --upstream http://127.0.0.1:11434/v1 opencode
    everlong wrap -- python my_agent.py
    """
    from everlong.cli.runs.wrap import run  # noqa: PLC0415 - help needs none of it

    run(command=tuple(part for part in command if part != ANY), anything=command[:1] == (ANY,), **given)
