"""The options by which a person says beforehand what the agent's tools may do; the same for `chat` and `serve`."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["permission_options"]

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
)


def permission_options(command: F) -> F:
    """Give a command the options --allow, --deny, --policy and --yes."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
