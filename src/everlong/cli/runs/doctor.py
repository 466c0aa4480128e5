"""`everlong doctor`: what a client behind the gateway has, and what is missing."""

import os
import shlex
import sys
from typing import Any

from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import console, pairs, table
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.cli.wrap.client import Situation
from everlong.cli.wrap.clients import CLIENTS, client_named
from everlong.cli.wrap.examination import Examination, examine, version_of, with_arguments
from everlong.cli.wrap.gateway import Wanted
from everlong.errors import InputError

__all__ = ["run"]


def run(name: str | None, language: Language, as_json: bool, online: bool, **given: Any) -> None:
    """Print what a client needs and has."""
    say = Words(language, "wrap")
    known = Situation(environment=dict(os.environ), upstream=given["upstream"], window=given["window"])
    if name is None:
        _list(known, say, as_json=as_json)
        return
    client = client_named(name)
    if client is None:
        listed = say("list_comma").join(one.name for one in CLIENTS)
        raise InputError(say("unknown_client", name=name, known=listed))
    say.report_model(given["model"])
    said = Wanted(upstream=given["upstream"], window=given["window"])
    found = examine(client, with_arguments(known, given["model"]), said, say, online=online)
    options = {"--upstream": given["upstream"], "--window": given["window"]}
    named = [part for option, value in options.items() if value for part in (option, str(value))]
    own = ["--model", given["model"]] if given["model"] else []
    _print(found, ["everlong", "wrap", *named, client.name, *own], say, as_json=as_json)
    sys.exit(1 if found.missing else 0)


def _print(found: Examination, command: list[str], say: Words, *, as_json: bool) -> None:
    if as_json:
        print_json(found.as_json())
        return
    out = console()
    out.print(pairs((finding.what, finding.said) for finding in found.findings))
    if found.missing:
        out.print(say("missing", what=say("semicolon").join(dict.fromkeys(found.missing))), style="bold")
    else:
        out.print(say("fine", command=shlex.join(command)), soft_wrap=True)


def _list(known: Situation, say: Words, *, as_json: bool) -> None:
    """List every client with its version and its login; exit with 1 if none is installed."""
    rows = []
    for client in CLIENTS:
        path = client.found(known.environment.get("PATH"))
        login = client.signed_in(known)
        version = version_of(path, client) if path else ""
        rows.append({"client": client.name, "title": client.title, "path": path, "version": version})
        rows[-1] |= {"login": login.kind, "name": login.name, "install": client.install}
    if as_json:
        print_json(rows)
    else:
        head = (say("column_client"), say("column_version"), say("column_key"))
        lines = (
            (
                row["title"],
                row["version"] or row["path"] or say("installed_not", install=row["install"]),
                row["name"] or "–",
            )
            for row in rows
        )
        console().print(table(head, lines))
    if not any(row["path"] for row in rows):
        raise InputError(say("none_installed"))
