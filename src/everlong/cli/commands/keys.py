"""`everlong keys`: keys of the gateway's clients, their limits and budgets, and what each spent."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from everlong.cli.groups import ExampleCommand, ExampleGroup
from everlong.cli.words.language import Language
from everlong.cli.words.wording import language_option

__all__ = ["keys_command"]

Command = Callable[..., Any]

STORE_HELP = "The gateway's store (default: the one in its configuration, else your own SQLite file)."
#: Limits as options; "none" removes one.
LIMITS: Mapping[str, str] = {
    "requests_per_minute": "At most N requests in any 60 seconds",
    "tokens_per_minute": "At most N prompt tokens (such as 200k) in any 60 seconds",
    "at_once": "At most N requests at the same time",
    "requests_per_day": "At most N requests a day (UTC)",
    "tokens_per_day": "At most N tokens (such as 5M) a day (UTC), answers included",
    "dollars_per_day": "At most N US dollars a day (UTC)",
    "dollars_per_month": "At most N US dollars a month (UTC)",
}


def _shared(command: Command) -> Command:
    """Add the options that every command of the group takes."""
    for option in (
        language_option,
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
        click.option("--config", "file", metavar="FILE", help="The gateway's TOML file, which names the store."),
        click.option("--store", metavar="URL", help=STORE_HELP),
    ):
        command = option(command)
    return command


def _settings(command: Command) -> Command:
    """Add the options that set a key's permissions and limits."""
    for name, line in reversed(list(LIMITS.items())):
        command = click.option(
            f"--{name.replace('_', '-')}", name, metavar="N", help=f"{line}; none removes the limit."
        )(command)
    for option in (
        click.option("--operator/--no-operator", default=None, help="Let the key manage keys over HTTP (default: no)."),
        click.option(
            "--recall/--no-recall", default=None, help="Offer the recall tool (default: the gateway's setting)."
        ),
        click.option(
            "--mode", type=click.Choice(["off", "trim", "auto"]), help="The key's mode (default: the gateway's)."
        ),
    ):
        command = option(command)
    return command


@click.group(
    "keys",
    cls=ExampleGroup,
    examples=(
        "everlong keys create team-a --requests-per-minute 60 --dollars-per-day 5",
        "everlong keys list",
        "everlong keys spend --days 30",
    ),
)
def keys_command() -> None:
    """Create, change, limit and revoke gateway keys, and see what each key spent.

    The store holds only hashes of the keys. A change takes effect within three seconds on every gateway that uses the
    store. As soon as one key exists, the gateway asks every client for a key.
    """


@keys_command.command(
    "create",
    short_help="Create a key and print it.",
    cls=ExampleCommand,
    examples=(
        "everlong keys create team-a",
        "everlong keys create team-a --requests-per-minute 60 --dollars-per-day 5",
        "everlong keys create admin --operator --config everlong.toml",
    ),
)
@click.argument("name")
@_settings
@_shared
def create_command(
    name: str, store: str | None, file: str | None, as_json: bool, language: Language, **given: Any
) -> None:
    """Create the key NAME and print it. It is shown only once: the store holds its hash."""
    from everlong.cli.runs.keys import Desk  # noqa: PLC0415 - the store and the settings, only where they are used

    with Desk(store, file, language, as_json=as_json, new=True) as desk:
        desk.create(name, given)


@keys_command.command(
    "list",
    short_help="List all keys with their limits and spending.",
    cls=ExampleCommand,
    examples=("everlong keys list", "everlong keys list --json"),
)
@_shared
def list_command(store: str | None, file: str | None, as_json: bool, language: Language) -> None:
    """List all keys, also those in the configuration file, with their limits and what they spent today."""
    from everlong.cli.runs.keys import Desk  # noqa: PLC0415 - see create

    with Desk(store, file, language, as_json=as_json) as desk:
        desk.list()


@keys_command.command(
    "show",
    short_help="Show the limits and spending of one key.",
    cls=ExampleCommand,
    examples=("everlong keys show team-a",),
)
@click.argument("name")
@_shared
def show_command(name: str, store: str | None, file: str | None, as_json: bool, language: Language) -> None:
    """Show the limits of the key NAME, when it was created and last used, and what it spent."""
    from everlong.cli.runs.keys import Desk  # noqa: PLC0415 - see create

    with Desk(store, file, language, as_json=as_json) as desk:
        desk.show(name)


@keys_command.command(
    "set",
    short_help="Change the permissions and limits of a key.",
    cls=ExampleCommand,
    examples=(
        "everlong keys set team-a --dollars-per-month 100",
        "everlong keys set team-a --requests-per-minute none --mode trim",
    ),
)
@click.argument("name")
@_settings
@_shared
def set_command(
    name: str, store: str | None, file: str | None, as_json: bool, language: Language, **given: Any
) -> None:
    """Change the permissions and limits of the key NAME. Options that you leave out stay as they are."""
    from everlong.cli.runs.keys import Desk  # noqa: PLC0415 - see create

    with Desk(store, file, language, as_json=as_json) as desk:
        desk.set(name, given)


@keys_command.command(
    "rotate", short_help="Replace a key with a new one.", cls=ExampleCommand, examples=("everlong keys rotate team-a",)
)
@click.argument("name")
@_shared
def rotate_command(name: str, store: str | None, file: str | None, as_json: bool, language: Language) -> None:
    """Replace the key NAME with a new one. Name, limits and spending stay; the old key stops working."""
    from everlong.cli.runs.keys import Desk  # noqa: PLC0415 - see create

    with Desk(store, file, language, as_json=as_json) as desk:
        desk.rotate(name)


@keys_command.command(
    "revoke", short_help="Revoke a key permanently.", cls=ExampleCommand, examples=("everlong keys revoke team-a",)
)
@click.argument("name")
@_shared
def revoke_command(name: str, store: str | None, file: str | None, as_json: bool, language: Language) -> None:
    """Revoke the key NAME permanently. Every gateway that uses the store refuses it within three seconds."""
    from everlong.cli.runs.keys import Desk  # noqa: PLC0415 - see create

    with Desk(store, file, language, as_json=as_json) as desk:
        desk.revoke(name)


@keys_command.command(
    "spend",
    short_help="Show what the keys spent.",
    cls=ExampleCommand,
    examples=("everlong keys spend", "everlong keys spend team-a --days 30"),
)
@click.argument("name", required=False, default="")
@click.option(
    "--days",
    type=click.IntRange(1, 366),
    default=14,
    metavar="N",
    help="Number of days to show, including today (default: 14).",
)
@_shared
def spend_command(name: str, days: int, store: str | None, file: str | None, as_json: bool, language: Language) -> None:
    """Show what each key spent, or what the key NAME spent each day: requests, tokens and US dollars."""
    from everlong.cli.runs.keys import Desk  # noqa: PLC0415 - see create

    with Desk(store, file, language, as_json=as_json) as desk:
        desk.spend(name, days)
