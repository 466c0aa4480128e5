"""`everlong serve`: the gateway on one port."""

import os
import re
import webbrowser
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.local import extras_for, local_option
from everlong.cli.permissions import permission_options
from everlong.cli.wrap.lease import Lease, end_this_process
from everlong.extras import expect_extras, expect_posix

__all__ = ["serve_command"]

BROWSE_AFTER = 0.3  # seconds; a browser that is faster than the server would have to wait for an answer
SAMPLE_PLACE = "#/sample"  # here the page opens the sample thread in its own language


@click.command(
    "serve",
    cls=ExampleCommand,
    examples=(
        "everlong serve  # gateway and chat app at http://127.0.0.1:8333",
        "everlong serve --local --sample --browse  # try the app without a key",
        "everlong serve --upstream http://127.0.0.1:11434/v1 --port 8000",
        "everlong serve --config everlong.toml --no-app",
    ),
)
@click.option("--config", "file", metavar="FILE", help="Read the settings from this TOML file.")
@click.option("--host", metavar="ADDRESS", help="The address to listen on (default: 127.0.0.1).")
@click.option("--port", type=int, metavar="N", help="The port to listen on; 0 picks a free one (default: 8333).")
@click.option(
    "--upstream",
    metavar="URL|NAME",
    help="Send all requests to this server: a URL ending in /v1, a provider's name, or witness (quotes the "
    "conversation, needs no key).",
)
@local_option
@click.option(
    "--store",
    metavar="URL",
    help="Where compactions, summaries and threads are stored; memory: keeps nothing (default: your own SQLite file).",
)
@click.option(
    "--mode",
    metavar="MODE",
    help="off forwards requests unchanged, trim compacts without summaries, auto also writes summaries "
    "(default: auto).",
)
@click.option(
    "--preset",
    metavar="NAME|MODULE:NAME",
    help="The preset that decides what to keep, or your own as module:NAME (default: auto).",
)
@click.option(
    "--keep", metavar="WHAT", help="What to store of a conversation: nothing, edits or text (default: edits)."
)
@click.option(
    "--usage",
    metavar="WHICH",
    help="The token usage to report to clients: sent (what the provider got) or original (default: sent).",
)
@click.option(
    "--recall-tool/--no-recall-tool",
    default=None,
    help="Give the model a tool that recalls compacted messages (default: no).",
)
@click.option("--open", is_flag=True, default=None, help="Serve other machines without asking for a key.")
@click.option("--workers", type=int, metavar="N", help="Number of server processes, sharing one store (default: 1).")
@click.option(
    "--access-log/--no-access-log", default=None, help="Log one line per request, without its content (default: yes)."
)
@click.option("--app/--no-app", default=None, help="Serve the chat app at / (default: yes).")
@click.option("--sample", is_flag=True, help="Open the app with a sample thread in the browser's language.")
@click.option("--browse", is_flag=True, help="Open the app in your browser.")
@permission_options
@click.option("--while-used", "lease", hidden=True, help="Exit when no process holds a lock on this file any more.")
@click.option(
    "--new-key",
    is_flag=True,
    help="Print a new key and its entry for the TOML file, then exit. (everlong keys create adds one to the store.)",
)
def serve_command(
    file: str | None, local: str | None, new_key: bool, sample: bool, browse: bool, lease: str | None, **given: Any
) -> None:
    """Run the gateway and the chat app on one port.

    Set the base URL of an OpenAI or Anthropic client to http://127.0.0.1:8333/v1; nothing else changes. The chat app
    is at http://127.0.0.1:8333.

    Requests go to the servers in the configuration, to the providers whose keys are in the environment, or to the
    client's own provider with the client's own key.
    """
    expect_extras("serving", "server", *extras_for(local, given["store"]))
    from everlong.gateway import hashed, new_key as fresh_key, serve, settings_here  # noqa: PLC0415

    tools = {name: given.pop(name) for name in ("allow", "deny", "policy", "yes", "sandbox", "no_sandbox", "network")}
    options = given
    if new_key:
        key = fresh_key()
        click.echo(f'{key}\n\n[[keys]]\nname = "…"\nhash = "{hashed(key)}"')
        return
    if lease:
        Lease(Path(lease)).keep(end_this_process)
    if options["app"] is False:
        serve(file, options, local=local, report=partial(click.echo, err=True))
        return
    expect_posix("the chat app", "everlong serve --no-app serves the gateway alone")
    from everlong.cli.app import (  # noqa: PLC0415 - needs an extra
        FACTORY,
        planned_local,
        reason_not_served,
        serving_options,
        share_password,
    )

    def report(line: str) -> None:
        address = re.search(r"https?://[^/\s]+", line)
        config = settings_here(options, {**os.environ, **({"EVERLONG_CONFIG": file} if file else {})})
        if address is None or not config.app:
            click.echo(line, err=True)
            return
        reason = reason_not_served(config)
        status = f"not served: {reason}" if reason else f"at {address[0]}"
        click.echo(f"{line}\nThe chat app is {status}", err=True)
        password = "" if reason else share_password(config)
        if password:
            click.echo(f"The app's password is {password}", err=True)
        if browse and not reason:
            Timer(BROWSE_AFTER, webbrowser.open, [f"{address[0]}/{SAMPLE_PLACE if sample else ''}"]).start()

    with serving_options(local=local, sample=sample, tools=tools):
        if local == "" and options["workers"] in (None, 1):
            options["upstream"], local = planned_local(), None  # downloaded and started after the first screen
        serve(file, options, local=local, report=report, factory=FACTORY)
