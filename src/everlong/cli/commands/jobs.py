"""`everlong jobs`: the background work that waits, runs or has failed on a Postgres store."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from everlong.cli.groups import ExampleCommand, ExampleGroup
from everlong.cli.terminal.streams import print_json
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.errors import InputError
from everlong.extras import expect_extras

__all__ = ["jobs_command"]

STATES = ("waiting", "running", "failed")


def _shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every command of the group takes."""
    for option in (
        language_option,
        click.option("--config", "file", metavar="FILE", help="The gateways' TOML file."),
        click.option("--store", metavar="URL", help="The gateways' Postgres store (default: from the settings)."),
    ):
        command = option(command)
    return command


@click.group("jobs", cls=ExampleGroup, examples=("everlong jobs list --state failed", "everlong jobs retry 42"))
def jobs_command() -> None:
    """List, retry and cancel the background jobs of gateways that share a Postgres store."""


@jobs_command.command(
    "list",
    short_help="List the jobs in the order in which they will run.",
    cls=ExampleCommand,
    examples=(
        "everlong jobs list --config everlong.toml",
        "everlong jobs list --store postgresql://everlong@db/everlong --state failed",
    ),
)
@click.option("--state", type=click.Choice(STATES), help="List only the jobs in this state (default: all).")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@_shared
def list_command(state: str | None, as_json: bool, file: str | None, store: str | None, language: Language) -> None:
    """List the jobs in the order in which they will run, without their content."""
    from everlong.cli.terminal.tables import console, table  # noqa: PLC0415 - loads rich

    found = _desk(file, store).listed(state or "")
    if as_json:
        print_json([asdict(job) for job in found])
        return
    say = Words(language, "worker")
    if not found:
        click.echo(say("no_jobs"))
        return
    shown = table(*(say(f"column_{name}") for name in ("number", "kind", "state", "need", "attempts", "about")))
    for job in found:
        kind, status = say.name(job.kind), say(f"state_{job.state}")
        shown.add_row(str(job.number), kind, status, str(job.need), str(job.attempts), job.key)
    console().print(shown)


@jobs_command.command(
    "retry",
    short_help="Put a failed job back in the queue.",
    cls=ExampleCommand,
    examples=("everlong jobs retry 42 --config everlong.toml",),
)
@click.argument("number", type=int)
@_shared
def retry_command(number: int, file: str | None, store: str | None, language: Language) -> None:
    """Put the failed job NUMBER back in the queue, with as many attempts as a new job."""
    say = Words(language, "worker")
    if not _desk(file, store).retry(number):
        raise InputError(say("not_failed", n=str(number)))
    click.echo(say("waits_again", n=str(number)))


@jobs_command.command(
    "cancel",
    short_help="Cancel a job.",
    cls=ExampleCommand,
    examples=("everlong jobs cancel 42 --config everlong.toml",),
)
@click.argument("number", type=int)
@_shared
def cancel_command(number: int, file: str | None, store: str | None, language: Language) -> None:
    """Cancel the job NUMBER. If its summary is still needed, the next turn of the conversation asks for it again."""
    say = Words(language, "worker")
    if not _desk(file, store).cancel(number):
        raise InputError(say("no_such_job", n=str(number)))
    click.echo(say("given_up", n=str(number)))


def _desk(file: str | None, store: str | None) -> Any:
    expect_extras("jobs", "server", "postgres")
    from everlong.gateway import JobDesk  # noqa: PLC0415

    return JobDesk(file, {"store": store})
