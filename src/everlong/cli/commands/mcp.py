"""`everlong mcp`: the user's own sessions for any MCP client, over standard input and output."""

import os
import sys

import click

from everlong.extras import expect_extras

__all__ = ["mcp_command"]


@click.command("mcp")
@click.option("--store", metavar="URL", help="Your own threads (default: EVERLONG_STORE, else your own file).")
@click.option("--program", "programs", multiple=True, metavar="NAME", help="Only sessions of this program; repeatable.")
def mcp_command(store: str | None, programs: tuple[str, ...]) -> None:
    """Give an MCP client your sessions: Claude Code's, Codex's, pi's, nanobot's and your own.

    The client starts this program and talks to it over standard input and output. It reads and never writes; known
    secrets are taken out of what it shows. docs/mcp.md has the lines for each client.

    \b
    claude mcp add everlong -- everlong mcp
    codex mcp add everlong -- everlong mcp
    """
    expect_extras("an MCP server", "mcp")
    from everlong.cli.mcp.server import server_of  # noqa: PLC0415 - needs an extra
    from everlong.cli.mcp.shelf import OWN, PROGRAMS, Shelf, places_of  # noqa: PLC0415
    from everlong.folders import home_folder  # noqa: PLC0415
    from everlong.store import default_store, open_store, store_path  # noqa: PLC0415

    unknown = [name for name in programs if name not in PROGRAMS]
    if unknown:
        raise click.UsageError(f"--program is one of {', '.join(PROGRAMS)}, not {unknown[0]!r}")
    chosen = programs or PROGRAMS
    url = store or default_store(os.environ, sys.platform)
    path = store_path(url)
    own = open_store(url) if OWN in chosen and (path is None or path.exists()) else None
    shelf = Shelf(places_of(home_folder(os.environ), os.environ, chosen), own)
    server_of(shelf).run("stdio")
