"""Environment variables: the settings that commands read from them, and those that are set but not read."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

import click

from everlong.core import nearest
from everlong.errors import InputError

if TYPE_CHECKING:
    from everlong.engine import Settings

__all__ = ["engine_budget", "engine_settings", "report_ignored", "report_misspelt", "unknown_variables"]

PREFIX = "EVERLONG_"
GATEWAY = "GATEWAY_"
#: Commands that start a gateway, which has its own variables: the engine's names with GATEWAY_.
GATEWAY_COMMANDS = ("serve", "wrap")
#: Variables that are in no table of settings, and what they set. Those without a text are for our own processes and
#: tests.
OTHERS: Mapping[str, str] = {
    "CACHE": "The folder for fetched tables of models and for the local model.",
    "CONFIG": "The configuration file.",
    "DATA": "The folder with conversations for `everlong lab`.",
    "FORMAT": "The format that EVERLONG_UPSTREAM takes, such as anthropic.",
    "GATEWAY": "The address of the gateway that `everlong wrap` uses.",
    "KEY": "The key for EVERLONG_UPSTREAM.",
    "LAB": "The folder where `everlong lab` installs clients, frameworks and peers.",
    "OFFLINE": "1 fetches no tables of models.",
    "OIDC_SECRET": "The app's secret at the OpenID provider, unless users.client_secret_env names another variable.",
    "PASSWORD": "The password of the chat app; it prints a random one if other machines can reach it and none is set.",
    "REFRESH_DAYS": "Days between two refreshes of the tables of models; 0 for never. The default is 7.",
    "SECRET": "The secret that encrypts provider keys which users of the chat app add; at least 16 characters.",
    "STORE": "The URL of the store; a SQLite file in your data folder if not set.",
    "UPSTREAM": "The server that answers: an address or the name of a provider.",
    "SERVING": "",
    "SERVING_LOCAL": "",
    "SERVING_SAMPLE": "",
    "SERVING_TOOLS": "",
    "POSTGRES_BIN": "",
    "SOAK": "",
}
#: Variables with which Kubernetes tells every pod where a service named everlong-gateway is.
KUBERNETES = re.compile(r"(?:GATEWAY_)?(?:SERVICE_(?:HOST|PORT)|PORT)(?:_|$)")


def report_misspelt(environment: Mapping[str, str] = os.environ) -> None:
    """Report on standard error, in one line, the variables that nothing reads and what may have been meant."""
    found = list(unknown_variables(environment))
    if not found:
        return
    from everlong.cli.words.wording import Words, language_from  # noqa: PLC0415 - only where something is wrong

    say = Words(language_from(environment), "general")
    names = [say("variable_meant", name=name, meant=meant) if meant else name for name, meant in found]
    click.echo(f"everlong: {say.many('variables', len(names), list=say('list_comma').join(names))}", err=True)


def report_ignored(command: str, environment: Mapping[str, str] = os.environ) -> None:
    """Report on standard error each variable of the engine that is set but that this command's gateway ignores."""
    prefixed = [name for name, value in environment.items() if name.startswith(PREFIX) and value.strip()]
    if command not in GATEWAY_COMMANDS or not prefixed:
        return
    from everlong.cli.words.wording import Words, language_from  # noqa: PLC0415 - only where a variable is set
    from everlong.engine import variables_of  # noqa: PLC0415

    say = Words(language_from(environment), "general")
    for name in variables_of(environment):
        meant = PREFIX + GATEWAY + name.upper()
        if not environment.get(meant, "").strip():
            click.echo(f"everlong: {say('variable_ignored', name=PREFIX + name.upper(), meant=meant)}", err=True)


def engine_settings(preset: str | None = None, environment: Mapping[str, str] = os.environ) -> "Settings":
    """Return the engine's settings in EVERLONG_… variables; a `preset` from an option replaces the one there.

    Raises InputError for a value that is not valid, and for an option that the preset does not use.
    """
    from everlong.engine import (  # noqa: PLC0415 - not for every command
        read_settings,
        read_variables,
        unused_settings,
        variable_named,
        variables_of,
    )

    settings = read_variables(environment)
    if preset:
        settings = read_settings({"preset": preset}, base=settings, where="--preset", modules=True)
    for name, line in unused_settings(variables_of(environment), settings).items():
        raise InputError(f"{variable_named(name)}: {line}")
    return settings


def engine_budget(model: str, settings: "Settings") -> int | None:
    """Return the budget that the window and the reserve in the settings leave; None if neither is set."""
    if settings.window is None and settings.reserve is None:
        return None
    from everlong.core import Budget  # noqa: PLC0415 - see engine_settings
    from everlong.engine import counter_for  # noqa: PLC0415
    from everlong.windows import window  # noqa: PLC0415

    known = window(counter_for(model).model, override=settings.window)
    return min(known.prompt, Budget.of(known.context, requested=settings.reserve, max_output=known.output).available)


def unknown_variables(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each variable with our prefix that nothing reads, and the one that was probably meant; "" if there is none.

    Example: {"EVERLONG_TRESHOLD": "0.8"} -> ("EVERLONG_TRESHOLD", "EVERLONG_THRESHOLD")
    """
    given = [name.removeprefix(PREFIX) for name, value in environment.items() if name.startswith(PREFIX) and value]
    unclear = [name for name in sorted(given) if name and name not in OTHERS and not KUBERNETES.match(name)]
    if not unclear:
        return
    known = _known()
    for name in unclear:
        if name not in known:
            near = nearest(name, sorted(known))
            yield PREFIX + name, near and PREFIX + near


def _known() -> frozenset[str]:
    """Return the names of all variables that are read, without the prefix."""
    from everlong.agent import AgentConfig  # noqa: PLC0415 - only where a variable is set
    from everlong.engine import SETTINGS  # noqa: PLC0415
    from everlong.gateway import GatewayConfig  # noqa: PLC0415

    engine = {option.name.upper() for option in SETTINGS}
    agent = {each.name.upper() for each in fields(AgentConfig) if each.metadata.get("variable")}
    gateway = {each.name.upper() for each in fields(GatewayConfig) if each.name != "engine"}
    return frozenset(OTHERS) | engine | agent | {GATEWAY + name for name in (*engine, *gateway)}
