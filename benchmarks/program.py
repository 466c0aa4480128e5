"""The command: which benchmarks, how thorough, and what becomes of the figures."""

import argparse
import json
import os
import platform
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from benchmarks import counting, fitting, importing
from benchmarks.environments import ENVIRONMENTS, KEPT, tell
from benchmarks.tables import Table

__all__ = ["main"]

BENCHMARKS: dict[str, Callable[..., list[Table]]] = {
    "import": importing.run,
    "counting": counting.run,
    "fitting": fitting.run,
}

DESCRIPTION = """\
Measure everlong beside its peers. Each peer is installed once, from your package index, into its own environment under
.bench/; what cannot be installed is left out. Tables go to standard output, progress to standard error.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and print it."""
    parser = _parser()
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: there are {', '.join(BENCHMARKS)}")
    KEPT.mkdir(exist_ok=True)
    print(f"{date.today().isoformat()}, {_machine()}\n", flush=True)
    tables = []
    for name in options.names or BENCHMARKS:
        for table in BENCHMARKS[name](quick=options.quick):
            print(table, flush=True)
            tables.append(table)
    print(f"Installed: {_versions()}")
    if options.json:
        described = [{"title": table.title, "figures": table.data} for table in tables]
        options.json.write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        tell(f"written to {options.json}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=DESCRIPTION)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)}; all unless named")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file as well")
    parser.add_argument(
        "--quick", action="store_true", help="fewer transcripts, smaller sizes, one round: a first look"
    )
    return parser


def _machine() -> str:
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} cores{load}, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def _versions() -> str:
    """What pip was asked for, as it was found."""
    found = []
    for environment in ENVIRONMENTS.values():
        for folder in environment.folder.glob("[Ll]ib/**/site-packages/*.dist-info"):
            name, _, version = folder.name.removesuffix(".dist-info").partition("-")
            if any(_named(wanted) == _named(name) for wanted in environment.requires):
                found.append(f"{name.replace('_', '-')} {version}")
    return ", ".join(sorted(set(found)))


def _named(requirement: str) -> str:
    """The bare name of a requirement, as both pip and wheels can write it."""
    bare = requirement.split("<")[0].split(">")[0].split("=")[0]
    return bare.strip().lower().replace("_", "-")


if __name__ == "__main__":
    main()
