"""The argument tree, and the one place where an error becomes a line on the terminal."""

import sys
from collections.abc import Sequence

import click

from everlong import __version__
from everlong.cli.commands.chat import chat_command
from everlong.cli.commands.count import count_command
from everlong.cli.commands.demo import demo_command
from everlong.cli.commands.fit import fit_command
from everlong.cli.commands.inspect import inspect_command
from everlong.cli.commands.lab import lab_command
from everlong.cli.commands.models import models_command
from everlong.cli.commands.serve import serve_command
from everlong.cli.commands.sessions import sessions_command
from everlong.cli.terminal.streams import say_what_can_be_said
from everlong.errors import EverlongError

__all__ = ["main", "program"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="everlong")
def program() -> None:
    """Keep conversations with language models inside their windows."""


program.add_command(chat_command)
program.add_command(count_command)
program.add_command(demo_command)
program.add_command(fit_command)
program.add_command(inspect_command)
program.add_command(lab_command)
program.add_command(models_command)
program.add_command(serve_command)
program.add_command(sessions_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. Exit code 0 if all went well, 1 with one clear line on bad input, 2 on wrong usage."""
    say_what_can_be_said()
    try:
        program.main(
            args=list(arguments) if arguments is not None else None, prog_name="everlong", standalone_mode=False
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(130)
    except EverlongError as error:
        click.echo(f"everlong: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        # The reader (head, less) has gone; Python would complain about it when it flushes at exit.
        sys.stderr.close()
        sys.exit(141)
