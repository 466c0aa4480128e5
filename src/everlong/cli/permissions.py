"""The options that say in advance what the agent's tools may do; the same for `chat` and `serve`."""

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
        help="Let tools do this without asking: 'write:src/**', 'shell:pytest *', fetch:HOST or tool:NAME; may be "
        "repeated.",
    ),
    click.option(
        "--deny",
        multiple=True,
        metavar="PATTERN",
        help="Never let tools do this, even if --allow covers it; may be repeated.",
    ),
    click.option("--policy", metavar="FILE", help="Read patterns from the lists allow and deny in this TOML file."),
    click.option("--yes", is_flag=True, help="Allow everything that tools ask for."),
    click.option(
        "--sandbox",
        metavar="KIND",
        help="The sandbox for shell commands: auto, namespaces, bubblewrap, landlock or off (default: auto).",
    ),
    click.option("--no-sandbox", is_flag=True, help="Run commands without a sandbox, as with --sandbox off."),
    click.option("--network", is_flag=True, help="Let commands in the sandbox use the network (default: no)."),
)


def permission_options(command: F) -> F:
    """Give a command the options --allow, --deny, --policy and --yes, and those of the sandbox."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def sandbox_settings(kind: str | None, *, off: bool | None, network: bool | None) -> dict[str, Any]:
    """Return the agent's settings for the sandbox options; None means that an option was not given."""
    if off and kind not in (None, "off"):
        raise InputError(f"--sandbox {kind} and --no-sandbox contradict each other: use one of them")
    return {"sandbox": "off" if off else kind, "sandbox_network": network or None}
