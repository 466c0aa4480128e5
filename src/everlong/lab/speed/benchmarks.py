"""Which benchmarks there are, and a run of some of them: tables one after the other, and what they were taken on."""

import os
import platform
from collections.abc import Callable, Iterator, Sequence

from everlong.errors import InputError
from everlong.lab.environments import ENVIRONMENTS, Environments
from everlong.lab.speed import counts, fits, imports, selection
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.gateways import run as gateways
from everlong.lab.speed.tables import Table

__all__ = ["BENCHMARKS", "machine", "measure", "versions"]

BENCHMARKS: dict[str, Callable[[Bench], list[Table]]] = {
    "import": imports.run,
    "counting": counts.run,
    "fitting": fits.run,
    "selection": selection.run,
    "gateways": gateways.run,
}


def measure(names: Sequence[str], bench: Bench) -> Iterator[Table]:
    """The tables of the benchmarks named, of all if none is. Raises InputError for a name that there is not."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise InputError(f"no benchmark {unknown[0]!r}: there are {', '.join(BENCHMARKS)}")
    for name in names or BENCHMARKS:
        yield from BENCHMARKS[name](bench)


def machine() -> str:
    """What the figures were taken on. Example: "2 cores, load 0.5, Linux x86_64, Python 3.11.7" """
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} cores{load}, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def versions(environments: Environments) -> str:
    """What pip was asked for, as it was found."""
    found = set()
    for environment in ENVIRONMENTS.values():
        for folder in environments.home(environment).glob("[Ll]ib/**/site-packages/*.dist-info"):
            name, _, version = folder.name.removesuffix(".dist-info").partition("-")
            if any(_named(wanted) == _named(name) for wanted in environment.requires):
                found.add(f"{name.replace('_', '-')} {version}")
    return ", ".join(sorted(found))


def _named(requirement: str) -> str:
    """The bare name of a requirement, as both pip and wheels can write it."""
    bare = requirement.split("[")[0].split("<")[0].split(">")[0].split("=")[0]
    return bare.strip().lower().replace("_", "-")
