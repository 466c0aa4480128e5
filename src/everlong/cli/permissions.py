"""The options by which a person says beforehand what the agent's tools may do; the same for `chat` and `serve`."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from everlong.errors import InputError

__all__ = ["permission_options", "sandbox_settings"]

F = TypeVar("F", bound=Callable[..., Any])
OPTIONS = (
    click.option(
        "--allow",
        multiple=True,
        metavar="PATTERN",
        help='Allow what a pattern covers: "write:src/**", "shell:pytest *", fetch:HOST, tool:NAME; repeatable.',
    ),
    click.option("--deny", multiple=True, metavar="PATTERN", help="Refuse what a pattern covers, whatever allows it."),
    click.option("--policy", metavar="FILE", help="A TOML file with lists of patterns: allow and deny."),
    click.option("--yes", is_flag=True, help="Allow everything that tools would ask for."),
    click.option(
        "--sandbox", metavar="KIND", help="Where commands run: auto, namespaces, bubblewrap, landlock; off: as you."
    ),
    click.option("--no-sandbox", is_flag=True, help="The same as --sandbox off."),
    click.option("--network", is_flag=True, help="Let commands in the sandbox use the network."),
)


def permission_options(command: F) -> F:
    """Give a command the options --allow, --deny, --policy and --yes, and those of the sandbox."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def sandbox_settings(kind: str | None, *, off: bool | None, network: bool | None) -> dict[str, Any]:
    """Return the agent's settings that the options of the sandbox mean; None is: not said."""
    if off and kind not in (None, "off"):
        raise InputError("--sandbox and --no-sandbox: which of the two?")
    return {"sandbox": "off" if off else kind, "sandbox_network": network or None}
