"""Variables of the environment that look like ours and are not: a misspelt one would count for nothing, in silence."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields

import click

from everlong.core import nearest

__all__ = ["tell_misspelt", "unknown_variables"]

PREFIX = "EVERLONG_"
GATEWAY = "GATEWAY_"
#: Variables that no table of settings has: of endpoints, stores, caches, the lab, the server process and our own tests.
OTHERS = frozenset(
    {"CACHE", "CONFIG", "DATA", "FORMAT", "GATEWAY", "KEY", "LAB", "OFFLINE", "PASSWORD", "REFRESH_DAYS", "STORE"}
    | {"UPSTREAM", "SERVING", "SERVING_LOCAL", "SERVING_SAMPLE", "SERVING_TOOLS", "POSTGRES_BIN", "SOAK"}
)
#: Kubernetes tells every pod where a service named everlong-gateway is.
KUBERNETES = re.compile(r"(?:GATEWAY_)?(?:SERVICE_(?:HOST|PORT)|PORT)(?:_|$)")


def tell_misspelt(environment: Mapping[str, str] = os.environ) -> None:
    """Name on standard error, in one line, the variables that nothing reads and what may have been meant."""
    found = list(unknown_variables(environment))
    if not found:
        return
    from everlong.cli.words.wording import Words, language_from  # noqa: PLC0415 - only where something is wrong

    say = Words(language_from(environment), "general")
    told = [say("variable_meant", name=name, meant=meant) if meant else name for name, meant in found]
    click.echo(f"everlong: {say('variables', list=say('list_comma').join(told))}", err=True)


def unknown_variables(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each variable with our prefix that nothing reads, and the one that was probably meant; "" if none is near.

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
    return OTHERS | engine | agent | {GATEWAY + name for name in (*engine, *gateway)}
