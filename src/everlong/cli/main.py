"""The program: the table of its commands, and the one place where an error becomes a line on the terminal."""

import re
import sys
from collections.abc import Sequence

import click

from everlong import __version__
from everlong.cli.groups import COMPLETING, CommandGroup, CommandRow
from everlong.cli.terminal.streams import tolerate_encodings
from everlong.cli.terminal.text import one_line
from everlong.core import did_you_mean
from everlong.errors import EverlongError

__all__ = ["main", "program", "usage_line"]

SHELLS = ("bash", "zsh", "fish")
#: How click says what a number is, and how people do.
PLAIN = (
    (re.compile(r"is not a valid integer(?: range)?"), "is not a whole number"),
    (re.compile(r"is not in the range x>=(\S+?)\.?$"), r"is less than \1"),
    (re.compile(r"is not in the range (\S+?)<=x<=(\S+?)\.?$"), r"is not between \1 and \2"),
)
NO_CHOICE = re.compile(r"'([^']*)' is not one of ")

#: Every command: its name, where it is defined, and its line in `everlong --help`.
COMMANDS = (
    CommandRow("chat", "everlong.cli.commands.chat:chat_command", "Talk to the agent in the terminal.", reads=True),
    CommandRow("count", "everlong.cli.commands.count:count_command", "Count the tokens of a conversation."),
    CommandRow(
        "demo", "everlong.cli.commands.demo:demo_command", "Watch a conversation outgrow its window, and what is kept."
    ),
    CommandRow(
        "doctor",
        "everlong.cli.commands.doctor:doctor_command",
        "Show what is there for a client, and what is missing.",
        reads=True,
    ),
    CommandRow("fit", "everlong.cli.commands.fit:fit_command", "Bring a conversation under a budget of tokens."),
    CommandRow(
        "inspect", "everlong.cli.commands.inspect:inspect_command", "Show where the window of a conversation goes."
    ),
    CommandRow("lab", "everlong.cli.commands.lab:lab_command", "Measure what survives a cut.", reads=True),
    CommandRow(
        "mcp",
        "everlong.cli.commands.mcp:mcp_command",
        "Give your sessions to any MCP client: recall, search.",
        reads=True,
    ),
    CommandRow(
        "models", "everlong.cli.commands.models:models_command", "Show the window and prices of models.", reads=True
    ),
    CommandRow(
        "serve",
        "everlong.cli.commands.serve:serve_command",
        "Serve the gateway: any client, one changed base URL.",
        reads=True,
    ),
    CommandRow(
        "sessions", "everlong.cli.commands.sessions:sessions_command", "Keep, find and mend conversations.", reads=True
    ),
    CommandRow(
        "wrap",
        "everlong.cli.commands.wrap:wrap_command",
        "Start a client behind the gateway: claude, codex and others.",
        reads=True,
    ),
)


def _print_completion(ctx: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is not None and not ctx.resilient_parsing:
        from everlong.cli.completion import completion_script  # noqa: PLC0415 - once in the life of a shell

        click.echo(completion_script(ctx.command, shell, COMPLETING))
        ctx.exit()


@click.group(cls=CommandGroup, rows=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="everlong")
@click.option(
    "--completion",
    type=click.Choice(SHELLS),
    callback=_print_completion,
    is_eager=True,
    expose_value=False,
    help='Print what completes names in this shell; eval "$(everlong --completion bash)" in its start-up file uses it.',
)
def program() -> None:
    """Keep conversations with language models inside their windows."""


def usage_line(error: click.ClickException) -> str:
    """Return what is wrong with the words of a command in one line, with what may have been meant.

    Example: everlong count: no such option '--modle'; did you mean --model? (everlong count --help)
    """
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "everlong"
    near = getattr(error, "possibilities", None)
    text = f"{error.message.rstrip('.')}; did you mean {near[0]}?" if near else error.format_message().rstrip(".")
    for pattern, plain in PLAIN:
        text = pattern.sub(plain, text)
    choice, kind = NO_CHOICE.search(text), getattr(getattr(error, "param", None), "type", None)
    meant = did_you_mean(choice[1], map(str, getattr(kind, "choices", ()))) if choice is not None else ""
    return one_line(f"{path}: {text[:1].lower()}{text[1:]}{meant} ({path} --help)")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. Exit with 0 on success, 1 and one clear line on bad input, 2 on wrong usage."""
    tolerate_encodings()
    try:
        program.main(
            args=list(arguments) if arguments is not None else None, prog_name="everlong", standalone_mode=False
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(2)
    except click.ClickException as error:
        click.echo(usage_line(error), err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(130)
    except EverlongError as error:
        click.echo(f"everlong: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        # The reader (head, less) is gone; Python would complain when it flushes at exit.
        sys.stderr.close()
        sys.exit(141)
