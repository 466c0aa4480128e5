"""Run benchmarks by name, and describe the machine and the versions."""

import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from everlong.errors import InputError
from everlong.lab.environments import ENVIRONMENTS, Environments, Npm
from everlong.lab.speed import BENCHMARKS
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.tables import Table

__all__ = ["machine", "measure", "versions"]


def measure(names: Sequence[str], bench: Bench) -> Iterator[Table]:
    """Yield the tables of these benchmarks, or of all if none is named. Raises InputError for an unknown name."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise InputError(f"unknown benchmark {unknown[0]!r}: the benchmarks are {', '.join(BENCHMARKS)}")
    for name in names or BENCHMARKS:
        run: Callable[[Bench], list[Table]] = import_module(BENCHMARKS[name]).run
        yield from run(bench)


def machine() -> str:
    """Return the machine that the figures were taken on. Example: "2 cores, load 0.5, Linux x86_64, Python 3.11.7" """
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} cores{load}, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def versions(environments: Environments) -> str:
    """Return the installed versions of the packages from pip and npm."""
    versions = set()
    for environment in ENVIRONMENTS.values():
        for folder in environments.home(environment).glob("[Ll]ib/**/site-packages/*.dist-info"):
            name, _, version = folder.name.removesuffix(".dist-info").partition("-")
            if any(_bare_name(wanted) == _bare_name(name) for wanted in (*environment.requires, *environment.alone)):
                versions.add(f"{name.replace('_', '-')} {version}")
        if environment.npm:
            versions |= _npm_versions(
                Npm(environments).home(environment.npm) / "node_modules", environment.npm.requires
            )
    return ", ".join(sorted(versions))


def _npm_versions(folder: Path, requires: Sequence[str]) -> set[str]:
    described = {name: folder / name / "package.json" for name in (wanted.rpartition("@")[0] for wanted in requires)}
    return {
        f"{name} {json.loads(path.read_text(encoding='utf-8'))['version']}"
        for name, path in described.items()
        if path.is_file()
    }


def _bare_name(requirement: str) -> str:
    """Return the name of a requirement in one spelling, as pip and wheels spell it differently."""
    bare = requirement.split("[")[0].split("<")[0].split(">")[0].split("=")[0]
    return bare.strip().lower().replace("_", "-")
