"""Run benchmarks by name, and say which machine and versions the figures were taken on."""

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from everlong.errors import InputError
from everlong.lab.environments import ENVIRONMENTS, Environments
from everlong.lab.speed import BENCHMARKS
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.tables import Table

__all__ = ["machine", "measure", "versions"]


def measure(names: Sequence[str], bench: Bench) -> Iterator[Table]:
    """Yield the tables of these benchmarks, of all if none is named. Raises InputError for an unknown name."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise InputError(f"no benchmark {unknown[0]!r}: there are {', '.join(BENCHMARKS)}")
    for name in names or BENCHMARKS:
        run: Callable[[Bench], list[Table]] = import_module(BENCHMARKS[name]).run
        yield from run(bench)


def machine() -> str:
    """Return the machine that the figures were taken on. Example: "2 cores, load 0.5, Linux x86_64, Python 3.11.7" """
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} cores{load}, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def versions(environments: Environments) -> str:
    """Return the installed versions of what pip was asked for."""
    versions = set()
    for environment in ENVIRONMENTS.values():
        for folder in environments.home(environment).glob("[Ll]ib/**/site-packages/*.dist-info"):
            name, _, version = folder.name.removesuffix(".dist-info").partition("-")
            if any(_bare_name(wanted) == _bare_name(name) for wanted in environment.requires):
                versions.add(f"{name.replace('_', '-')} {version}")
    return ", ".join(sorted(versions))


def _bare_name(requirement: str) -> str:
    """Return the name of a requirement in one spelling, whether pip or a wheel wrote it."""
    bare = requirement.split("[")[0].split("<")[0].split(">")[0].split("=")[0]
    return bare.strip().lower().replace("_", "-")
