"""What a shell completes when Tab is pressed: models, presets, sessions, providers, clients and policies.

The shell asks the program itself (`everlong --completion bash` prints how). Errors are silent: a person who presses Tab
wants names, and an error message inside a line helps nobody.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem, get_completion_class

from everlong.errors import EverlongError

__all__ = ["completion_script", "teach"]

MOST = 200  # names that a shell gets; nobody reads more
#: Metavars of paths, which the shell completes itself.
_PATHS = {"FILE": "file", "OUT": "file", "PATH": "file", "DIR": "dir", "FOLDER": "dir"}
TITLE = 60  # characters of a session's title next to its id

#: Yields names, each with a description.
Names: TypeAlias = Callable[[click.Context], Iterator[tuple[str, str]]]


def completion_script(program: click.Command, shell: str, variable: str) -> str:
    """Return the script that a shell reads once to complete the program's names; the variable asks the program."""
    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - the option takes none but these
        raise click.UsageError(f"no shell {shell!r}")
    source = kind(program, {}, "everlong", variable)
    return source.source_template % source.source_vars()


def teach(command: click.Command, name: str) -> None:
    """Let the parameters of a command complete their values; click asks each of them when Tab is pressed."""
    for parameter in command.params:
        spelt = next((one for one in (*parameter.opts, f"{name} {parameter.name}") if one in _NAMES), "")
        kind = _PATHS.get((parameter.metavar or "").strip("[]….").upper())
        if spelt:
            parameter.shell_complete = partial(_complete, _NAMES[spelt])  # type: ignore[method-assign]
        elif kind:
            parameter.shell_complete = partial(_complete_path, kind)  # type: ignore[method-assign]


def _complete(names: Names, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    with suppress(EverlongError, OSError, ImportError):
        fitting = ((name, beside) for name, beside in names(ctx) if name.startswith(incomplete))
        return [CompletionItem(name, help=beside or None) for name, beside in islice(fitting, MOST)]
    return []


def _complete_path(kind: str, _: click.Context, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type=kind)]


def _models(_: click.Context) -> Iterator[tuple[str, str]]:
    from everlong.llm import cache_folder, registry_now  # noqa: PLC0415 - only when Tab is pressed

    seen: set[str] = set()
    for entry in registry_now(cache_folder(os.environ)).find(""):
        if entry.id not in seen:
            seen.add(entry.id)
            yield entry.id, f"{entry.provider}, window {entry.window:,}" if entry.window else entry.provider


def _presets(_: click.Context) -> Iterator[tuple[str, str]]:
    from everlong.compress import PRESET_NAMES  # noqa: PLC0415

    return ((name, "") for name in PRESET_NAMES)


def _threads(ctx: click.Context) -> Iterator[tuple[str, str]]:
    from everlong.store import default_store, open_store, store_path  # noqa: PLC0415

    url = ctx.params.get("store") or default_store(os.environ, sys.platform)
    path = store_path(url)
    if path is not None and not path.exists():
        return  # pressing Tab must not create a file
    with open_store(url) as store:
        for thread in store.threads(archived=None, limit=MOST):
            yield thread.id, thread.title[:TITLE]


def _providers(_: click.Context) -> Iterator[tuple[str, str]]:
    from everlong.llm import KNOWN  # noqa: PLC0415

    return ((name, url) for name, (url, _, _) in KNOWN.items())


def _clients(_: click.Context) -> Iterator[tuple[str, str]]:
    from everlong.cli.wrap.clients import CLIENTS  # noqa: PLC0415

    return ((client.name, client.title) for client in CLIENTS)


def _policies(_: click.Context) -> Iterator[tuple[str, str]]:
    from everlong.lab import policy_names as names  # noqa: PLC0415

    return ((name, "") for name in names())


def _strategies(_: click.Context) -> Iterator[tuple[str, str]]:
    from everlong.lab import strategy_names as names  # noqa: PLC0415

    return ((name, "") for name in names())


def _tariffs(_: click.Context) -> Iterator[tuple[str, str]]:
    from everlong.lab import TARIFFS  # noqa: PLC0415

    return ((name, "") for name in TARIFFS)


#: By the spelling of an option, the name of an argument, or the names of a command and its parameter.
_NAMES: Mapping[str, Names] = {
    "--model": _models,
    "models name": _models,
    "--preset": _presets,
    "--upstream": _providers,
    "--provider": _providers,
    "--thread": _threads,
    "--in": _threads,
    "session": _threads,
    "remove names": _threads,
    "wrap command": _clients,
    "doctor name": _clients,
    "replay policies": _policies,
    "--strategy": _strategies,
    "--prices": _tariffs,
}
