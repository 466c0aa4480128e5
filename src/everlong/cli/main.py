"""The program: the table of its commands, and the one place where an error becomes a line on the terminal."""

import os
import re
import sys
from collections.abc import Mapping, Sequence

import click

from everlong import __version__
from everlong.cli.groups import COMPLETING, CommandRow
from everlong.cli.overview import Program
from everlong.cli.terminal.streams import tolerate_encodings
from everlong.cli.terminal.text import one_line
from everlong.cli.words.english import ENGLISH
from everlong.cli.words.language import Language
from everlong.cli.words.wording import LANGUAGES, Words, language_from
from everlong.core import did_you_mean
from everlong.errors import EverlongError

__all__ = ["main", "program", "usage_line"]

SHELLS = ("bash", "zsh", "fish")
#: Click's wording for a wrong number, and a plainer one.
PLAIN = (
    (re.compile(r"is not a valid integer(?: range)?"), "is not a whole number"),
    (re.compile(r"is not in the range x>=(\S+?)\.?$"), r"is less than \1"),
    (re.compile(r"is not in the range (\S+?)<=x<=(\S+?)\.?$"), r"is not between \1 and \2"),
)
NO_CHOICE = re.compile(r"'([^']*)' is not one of ")

#: Every command by purpose, in the order of `everlong --help`. Those in `SILENT` read none of our variables.
PURPOSES: Mapping[str, tuple[str, ...]] = {
    "conversation": ("count", "inspect", "fit", "models"),
    "talk": ("demo", "chat"),
    "clients": ("wrap", "doctor", "serve"),
    "sessions": ("sessions", "mcp"),
    "measures": ("lab",),
    "operation": ("keys", "worker", "jobs", "migrate"),
}
TEXTS = ENGLISH.texts["program"]
SILENT = ("count",)
COMMANDS = tuple(
    CommandRow(
        name,
        f"everlong.cli.commands.{name}:{name}_command",
        TEXTS[f"command_{name}"],
        reads=name not in SILENT,
        purpose=purpose,
    )
    for purpose, names in PURPOSES.items()
    for name in names
)


def _print_completion(ctx: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is not None and not ctx.resilient_parsing:
        from everlong.cli.completion import completion_script  # noqa: PLC0415 - once in the life of a shell

        click.echo(completion_script(ctx.command, shell, COMPLETING))
        ctx.exit()


@click.group(
    cls=Program,
    rows=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="everlong")
@click.option(
    "--lang",
    "language",
    type=click.Choice([language.code for language in LANGUAGES]),
    expose_value=False,
    help=TEXTS["option_lang"],
)
@click.option(
    "--completion",
    type=click.Choice(SHELLS),
    callback=_print_completion,
    is_eager=True,
    expose_value=False,
    help=TEXTS["option_completion"],
)
@click.pass_context
def program(ctx: click.Context) -> None:
    """Keep conversations with language models going past the context window."""
    if ctx.invoked_subcommand is None and isinstance(ctx.command, Program):
        click.echo(ctx.command.start(ctx))


def usage_line(error: click.ClickException, language: Language = ENGLISH) -> str:
    """Return what is wrong with a command line in one line, with a suggestion if there is one.

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
    text = Words(language, "general").reason(f"{text[:1].lower()}{text[1:]}{meant}")
    return one_line(f"{path}: {text} ({path} --help)")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. Exit with 0 on success, 1 and one clear line on bad input, 2 on wrong usage."""
    tolerate_encodings()
    chosen: dict[str, Language] = {}  # the command writes its language into it
    try:
        program.main(
            args=list(arguments) if arguments is not None else None,
            prog_name="everlong",
            standalone_mode=False,
            obj=chosen,
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(2)
    except click.ClickException as error:
        click.echo(usage_line(error, _language(chosen)), err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo(Words(_language(chosen), "general")("stopped"), err=True)
        sys.exit(130)
    except EverlongError as error:
        click.echo(f"everlong: {Words(_language(chosen), 'general').reason(str(error))}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        # The reader (head, less) is gone; Python would complain when it flushes at exit.
        sys.stderr.close()
        sys.exit(141)


def _language(chosen: Mapping[str, Language]) -> Language:
    """Return the language that the command was given, else that of the locale."""
    return chosen.get(Language.__name__) or language_from(os.environ)
