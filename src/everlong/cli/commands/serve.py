"""`everlong serve`: the gateway on one port."""

import re
import webbrowser
from pathlib import Path
from threading import Timer
from typing import Any

import click

from everlong.cli.local import extras_for, local_option
from everlong.cli.permissions import permission_options
from everlong.cli.wrap.lease import Lease, end_this_process
from everlong.extras import expect_extras, expect_posix

__all__ = ["serve_command"]

BROWSE_AFTER = 1.5  # seconds, until the server answers


@click.command("serve")
@click.option("--config", "file", help="A TOML file with the settings.")
@click.option("--host", help="The address to listen at; 127.0.0.1 if not given.")
@click.option("--port", type=int, help="The port to listen at; 8333 if not given, 0 takes a free one.")
@click.option("--upstream", help="One server for everything: an address with its /v1, or a provider's name.")
@local_option
@click.option("--store", help="Where cuts and summaries are kept: a store's URL, memory: for nowhere.")
@click.option("--mode", help="off changes nothing, trim cuts, auto also summarises.")
@click.option("--preset", help="How a history is cut.")
@click.option("--keep", help="What is stored of a conversation: nothing, edits or text.")
@click.option("--usage", help="The usage that clients are told: sent or original.")
@click.option("--recall-tool/--no-recall-tool", default=None, help="Offer a recall tool, answered in the gateway.")
@click.option("--open", is_flag=True, default=None, help="Serve everyone who reaches this address, without keys.")
@click.option("--workers", type=int, help="Processes that serve, on one store.")
@click.option("--access-log/--no-access-log", default=None, help="Write one line a request, without contents.")
@click.option("--app/--no-app", default=None, help="Serve the chat app at / as well; it is, in one process.")
@click.option("--sample", is_flag=True, help="Put a sample thread into the app, if it has none yet.")
@click.option("--browse", is_flag=True, help="Open the app in the browser.")
@permission_options
@click.option("--while-used", "lease", hidden=True, help="End when nobody holds a lock on this file any more.")
@click.option("--new-key", is_flag=True, help="Make a key for a client, print it and its table for the file, and end.")
def serve_command(
    file: str | None, local: str | None, new_key: bool, sample: bool, browse: bool, lease: str | None, **given: Any
) -> None:
    """Serve OpenAI and Anthropic clients: set their base URL to http://127.0.0.1:8333/v1 and change nothing else.

    The chat app is at http://127.0.0.1:8333, for people.

    Upstreams come from the configuration, from keys in the environment, or are the providers themselves with the
    client's own key.
    """
    expect_extras("serving", "server", *extras_for(local, given["store"]))
    from everlong.gateway import hashed, new_key as fresh_key, serve  # noqa: PLC0415

    tools = {name: given.pop(name) for name in ("allow", "deny", "policy", "yes", "sandbox", "no_sandbox", "network")}
    options = given
    if new_key:
        key = fresh_key()
        click.echo(f'{key}\n\n[[keys]]\nname = "…"\nhash = "{hashed(key)}"')
        return
    if lease:
        Lease(Path(lease)).keep(end_this_process)

    def report(line: str) -> None:
        click.echo(line, err=True)
        address = re.search(r"https?://[^/\s]+", line)
        if address is not None and options["app"] is not False:
            click.echo(f"The chat app is at {address[0]}", err=True)
            if browse:
                Timer(BROWSE_AFTER, webbrowser.open, [address[0]]).start()

    if options["app"] is False:
        serve(file, options, local=local, report=report)
        return
    expect_posix("the chat app", "everlong serve --no-app serves the gateway alone")
    from everlong.cli.app import FACTORY, serving_options  # noqa: PLC0415 - needs an extra

    with serving_options(local=local, sample=sample, tools=tools):
        serve(file, options, local=local, report=report, factory=FACTORY)
