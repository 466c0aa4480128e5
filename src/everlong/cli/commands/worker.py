"""`everlong worker`: a process that runs the background jobs of gateways on the same Postgres."""

from functools import partial
from typing import Any

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.extras import expect_extras

__all__ = ["worker_command"]


@click.command(
    "worker",
    cls=ExampleCommand,
    examples=(
        "everlong worker --config everlong.toml",
        "everlong worker --store postgresql://everlong@db/everlong --at-once 8",
        "everlong worker --config everlong.toml --drain",
    ),
)
@click.option("--config", "file", metavar="FILE", help="The gateways' TOML file.")
@click.option(
    "--store", metavar="URL", help="The gateways' Postgres store: postgresql://… (default: from the settings)."
)
@click.option(
    "--upstream", metavar="URL|NAME", help="Send all requests to this server, as in everlong serve --upstream."
)
@click.option(
    "--at-once", "jobs_at_once", type=click.IntRange(min=1), metavar="N", help="Jobs to run at a time (default: 4)."
)
@click.option("--app/--no-app", default=None, help="Also run the jobs of the chat app's threads (default: yes).")
@click.option("--drain", "until_done", is_flag=True, help="Exit when no job is left (default: keep waiting for jobs).")
@language_option
def worker_command(file: str | None, until_done: bool, language: Language, **options: Any) -> None:
    """Run the background jobs of gateways that share a Postgres store: summaries, titles, retention.

    Gateways run these jobs themselves unless their configuration says jobs = "apart". You can start any number of
    workers. If one dies, another takes over its jobs within half a minute. A worker reads the same configuration and
    keys as the gateways.
    """
    expect_extras("working", "server", "postgres")
    from everlong.gateway import GatewayConfig, work  # noqa: PLC0415

    say = Words(language, "worker")

    def began(config: GatewayConfig) -> None:
        click.echo(say("working", n=str(config.jobs_at_once)), err=True)

    if options["app"] is False:
        work(file, options, began=began, until_done=until_done)
        return
    from everlong.cli.app import chat_app  # noqa: PLC0415 - needs an extra

    work(file, options, began=began, until_done=until_done, beside=lambda config: partial(chat_app, config))
