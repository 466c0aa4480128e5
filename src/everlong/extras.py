"""The optional packages and the operating system that each part needs, with one-line errors when something is missing.

The extras are those of `[project.optional-dependencies]`; a test keeps both lists equal. `everlong.adapters` lists the
frameworks that the adapters support.
"""

import os
from collections.abc import Mapping

from everlong.errors import InputError

__all__ = ["EXTRA_OF", "PACKAGES", "command_for", "expect_extras", "expect_posix", "lacking"]

#: Whether this is Linux, macOS or WSL.
POSIX = os.name == "posix"

#: The packages of each extra, by the names under which they are imported.
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "agent": ("aiohttp", "mcp", "stamina"),
    "documents": ("defusedxml", "docx", "openpyxl", "pptx", "pypdf"),
    "llm": ("aiohttp", "stamina"),
    "local": ("aiohttp", "stamina", "xllamacpp"),
    "login": ("authlib", "cryptography", "httpx", "joserfc"),
    "mcp": ("mcp",),
    "postgres": ("procrastinate", "psycopg", "psycopg_pool"),
    "semantic": ("numpy", "tokenizers"),
    "server": ("aiohttp", "prometheus_client", "stamina", "starlette", "uvicorn"),
    "telemetry": ("opentelemetry",),
}

#: The smallest extra that brings each package.
EXTRA_OF: Mapping[str, str] = {
    package: extra for extra, packages in sorted(PACKAGES.items(), key=lambda row: -len(row[1])) for package in packages
}


def command_for(*extras: str) -> str:
    """Return the command that installs extras. Example: "server" -> pip install 'everlong[server]'"""
    return f"pip install 'everlong[{','.join(sorted(extras))}]'"


def expect_extras(what: str, *extras: str) -> None:
    """Raise InputError if packages of these extras are missing. Its one line has the command that installs them all.

    Example: "serving", "server", "local" -> serving needs more packages (starlette, xllamacpp): pip install …
    """
    missing = {extra: lacking(extra) for extra in extras}
    wanted = {extra for extra in missing if missing[extra]}
    for extra in sorted(wanted, key=lambda extra: len(missing[extra])):
        others = {name for other in wanted - {extra} for name in PACKAGES[other]}
        if missing[extra] <= others:
            wanted.remove(extra)
    if wanted:
        names = ", ".join(sorted(frozenset().union(*missing.values())))
        raise InputError(f"{what} needs more packages ({names}): {command_for(*wanted)}")


def expect_posix(what: str, instead: str = "") -> None:
    """Raise InputError if the system is not Linux, macOS or WSL. Its one line names the part and an alternative."""
    if not POSIX:
        raise InputError(f"{what} needs Linux, macOS or WSL" + (f"; {instead}" if instead else ""))


def lacking(extra: str) -> frozenset[str]:
    """Return the packages of an extra that are not installed."""
    return frozenset(name for name in PACKAGES[extra] if not _is_there(name))


def _is_there(package: str) -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 - every door loads this module, few look for packages

    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
