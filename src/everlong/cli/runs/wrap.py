"""`everlong wrap`: a client behind the gateway, in one command."""

import os
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import console, table
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.cli.wrap.client import Client, Situation
from everlong.cli.wrap.clients import ANY_COMMAND, CLIENTS, client_named
from everlong.cli.wrap.figures import closing_lines
from everlong.cli.wrap.gateway import Wanted, state_folder
from everlong.cli.wrap.process import end_like
from everlong.cli.wrap.run import Outcome, launch_of, models_of, run_behind_gateway, wanted_for
from everlong.errors import InputError

__all__ = ["run"]


def run(language: Language, command: tuple[str, ...], *, anything: bool, **given: Any) -> None:
    """Run a client behind the gateway, or print how. `anything` means that the command is not a known client."""
    say, as_json = Words(language, "wrap"), given["as_json"]
    if given["listed"]:
        _list(say, as_json=as_json)
        return
    client, program, arguments = _chosen(command, say, anything=anything)
    said = Wanted(**{name: given[name] for name in ("upstream", "window", "preset", "mode", "store")})
    known = Situation(environment=dict(os.environ), arguments=arguments, upstream=said.upstream, window=said.window)
    if given["printed"]:
        by_hand = replace(known, folder=state_folder(known.environment).with_name("by-hand"))
        if client.listed and "://" in said.upstream:
            by_hand = replace(by_hand, models=models_of(said.upstream.rstrip("/"), known))
        _print(client, program or [client.program], by_hand, said, say, as_json=as_json)
        return
    if not program:
        raise InputError(say("not_installed", title=client.title, program=client.program, install=client.install))
    outcome = run_behind_gateway(client, program, known, said)
    if not given["quiet"]:
        _close(outcome, say, as_json=as_json)
    end_like(outcome.code)


def _chosen(command: tuple[str, ...], say: Words, *, anything: bool) -> tuple[Client, list[str], tuple[str, ...]]:
    """Return the client, its program (empty if it is not installed) and its own arguments."""
    name, *rest = command or ("",)
    if not name:
        raise click.UsageError(say("no_client"))
    if anything:
        found = shutil.which(name)
        if not found:
            raise InputError(say("not_found", program=name))
        return ANY_COMMAND, [found], tuple(rest)
    client = client_named(name)
    if client is None:
        known = say("list_comma").join(one.name for one in CLIENTS)
        raise InputError(say("unknown_client", name=name, known=known))
    found = client.found(os.environ.get("PATH"))
    return client, [found] if found else [], tuple(rest)


def _list(say: Words, *, as_json: bool) -> None:
    rows = [(client, client.found(os.environ.get("PATH"))) for client in CLIENTS]
    if as_json:
        print_json(
            [
                {"name": client.name, "aliases": client.aliases, "title": client.title, "program": client.program}
                | {"path": found, "install": client.install}
                for client, found in rows
            ]
        )
        return
    head = (say("column_client"), say("column_program"), say("column_installed"))
    lines = (
        (client.title, client.name, found or say("installed_not", install=client.install)) for client, found in rows
    )
    console().print(table(head, lines))


def _print(client: Client, program: list[str], given: Situation, said: Wanted, say: Words, *, as_json: bool) -> None:
    """Print what a person types to do the same: one line for the gateway, the rest for the client."""
    launch = launch_of(client, given)
    wanted = wanted_for(client, given, said)
    serve = ["everlong", "serve", *wanted.options()]
    settings = {name: value for name, value in wanted.variables().items() if name != "EVERLONG_GATEWAY_KEYS"}
    if wanted.plain:
        settings.pop("EVERLONG_GATEWAY_UPSTREAMS", None)
    line = " ".join([*(f"{name}={shlex.quote(value)}" for name, value in settings.items()), shlex.join(serve)])
    if as_json:
        fields = {"serve": serve, "serve_variables": settings, "variables": launch.variables, "files": launch.files}
        print_json(fields | {"command": [*program, *launch.arguments]})
        return
    shown = [Path(program[0]).name, *program[1:]]
    lines = [f"# {say('print_serve')}", line, "", f"# {say('print_client')}", *launch.shown(shown, given.folder)]
    click.echo("\n".join(lines))


def _close(outcome: Outcome, say: Words, *, as_json: bool) -> None:
    """Print the result of the run on standard error: standard output belongs to the client."""
    if as_json:
        import json  # noqa: PLC0415 - the one line for programs

        report = None if outcome.came is None else outcome.came.as_json()
        click.echo(json.dumps({"everlong": report, "shared": outcome.shared, "log": outcome.gateway.log}), err=True)
        return
    lines = [say("closing_ended")] if outcome.died else closing_lines(outcome.came, say, shared=outcome.shared)
    if outcome.gateway.log:
        lines.append(say("log", file=outcome.gateway.log))
    for line in lines:
        click.echo(f"everlong: {line}", err=True)
    sys.stderr.flush()
