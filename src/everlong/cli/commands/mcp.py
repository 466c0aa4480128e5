"""`everlong mcp`: the user's own sessions for any MCP client, over standard input and output."""

import os
import sys

import click

from everlong.cli.groups import ExampleCommand
from everlong.extras import expect_extras

__all__ = ["mcp_command"]


@click.command(
    "mcp",
    cls=ExampleCommand,
    examples=(
        "claude mcp add everlong -- everlong mcp",
        "codex mcp add everlong -- everlong mcp",
        "everlong mcp --program codex --program claude-code",
    ),
)
@click.option(
    "--store",
    metavar="URL",
    help="The store with your everlong threads (default: EVERLONG_STORE, else your own SQLite file).",
)
@click.option(
    "--program",
    "programs",
    multiple=True,
    metavar="NAME",
    help="Offer only the sessions of this program; may be repeated (default: all).",
)
def mcp_command(store: str | None, programs: tuple[str, ...]) -> None:
    """Let an MCP client search and read your sessions from Claude Code, Codex, pi, nanobot and everlong.

    The client starts this command and talks to it over standard input and output. The command only reads, and it
    removes known secrets from what it returns.
    """
    expect_extras("an MCP server", "mcp")
    from everlong.cli.mcp.server import server_of  # noqa: PLC0415 - needs an extra
    from everlong.cli.mcp.shelf import OWN, PROGRAMS, Shelf, places_of  # noqa: PLC0415
    from everlong.folders import home_folder  # noqa: PLC0415
    from everlong.store import default_store, open_store, store_path  # noqa: PLC0415

    unknown = [name for name in programs if name not in PROGRAMS]
    if unknown:
        raise click.UsageError(f"--program: {unknown[0]!r} is not one of {', '.join(PROGRAMS)}")
    chosen = programs or PROGRAMS
    url = store or default_store(os.environ, sys.platform)
    path = store_path(url)
    own = open_store(url) if OWN in chosen and (path is None or path.exists()) else None
    shelf = Shelf(places_of(home_folder(os.environ), os.environ, chosen), own)
    server_of(shelf).run("stdio")
