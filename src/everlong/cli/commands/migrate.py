"""`everlong migrate`: creates the tables of the store, or updates them before anyone serves."""

import os
import sys

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.errors import StoreError
from everlong.extras import expect_extras

__all__ = ["migrate_command"]


@click.command(
    "migrate",
    cls=ExampleCommand,
    examples=(
        "everlong migrate --store postgresql://everlong@db/everlong",
        "everlong migrate --config everlong.toml",
    ),
)
@click.option("--config", "file", metavar="FILE", help="The gateway's TOML file, which names the store.")
@click.option("--store", metavar="URL", help="The store (default: the one in the configuration, else your own file).")
@language_option
def migrate_command(file: str | None, store: str | None, language: Language) -> None:
    """Create the tables of the store or bring them up to date, then exit.

    Run it as a job before new replicas start. Migrations only add to the schema, so replicas of the previous version
    keep working. Running it twice changes nothing.
    """
    expect_extras("the gateway's settings", "server")
    from everlong.gateway import settings_here  # noqa: PLC0415 - help needs none of it
    from everlong.store import default_store, is_remote, open_store  # noqa: PLC0415

    environment = {**os.environ, **({"EVERLONG_CONFIG": file} if file else {})}
    url = settings_here({"store": store}, environment).store or default_store(environment, sys.platform)
    if is_remote(url):
        expect_extras("a store in Postgres", "postgres")
    open_store(url).close()
    if is_remote(url):
        _make_tables_of_jobs(url)
    click.echo(Words(language, "migrate")("migrated"))


def _make_tables_of_jobs(url: str) -> None:
    import psycopg  # noqa: PLC0415 - an extra

    from everlong.jobs import make_tables  # noqa: PLC0415 - an extra

    try:
        with psycopg.connect(url, autocommit=True) as connection:
            make_tables(connection)
    except psycopg.Error as error:
        raise StoreError(f"cannot create the job tables: {' '.join(str(error).split())}") from error
