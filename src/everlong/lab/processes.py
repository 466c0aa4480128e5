"""Drive a client or a framework: a separate process in its own environment, without anything of the user's.

Owns the processes: the driver, and a gateway if one is needed. `clients` and `adapters` say what is driven and how it
is judged.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

from everlong.errors import EverlongError
from everlong.lab.environments import HERE, Environment, Environments, Npm, NpmPackages, path_with_node

__all__ = ["PATIENCE", "REFUSALS", "Drivers", "serving"]

#: The beginning of the last line of a failed program.
RAISED = re.compile(r"[\w.]*(Error|Exception)\b")
PATIENCE = 600.0  # seconds for one conversation
STARTING = 120.0  # seconds for the gateway, on a busy machine
#: The variables that a client inherits; the user's keys and settings are not among them.
INHERITED = ("LANG", "LC_ALL", "PATH", "SYSTEMROOT", "TEMP", "TMPDIR")
#: How the provider of each dialect refuses a request that is too long; other dialects do it as OpenAI does.
REFUSALS = {
    "messages": '{"type":"error","error":{"type":"invalid_request_error",'
    '"message":"prompt is too long: {tokens} tokens > {window} maximum"}}',
    "contents": '{"error":{"code":400,"status":"INVALID_ARGUMENT",'
    '"message":"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."}}',
}


@dataclass(frozen=True, slots=True)
class Drivers:
    """How drivers are run. `here` runs them with this interpreter; `patience` is the seconds for one conversation."""

    environments: Environments
    here: bool = False
    patience: float = PATIENCE

    def ready(self, home: Environment | NpmPackages) -> str:
        """Install what a driver needs; return "" or why it is not available here."""
        if self.here:
            return ""
        if isinstance(home, NpmPackages):
            return Npm(self.environments).installed(home)
        return "" if self.environments.installed(home) else "pip cannot install it here"

    def drive(
        self, home: Environment | NpmPackages, drivers: str, driver: str, task: Mapping[str, Any], folder: Path
    ) -> dict[str, Any]:
        """Run a driver of the package `drivers` in a folder; return its report, with `error` if it failed."""
        command, settings = self._command(home, drivers, driver)
        if isinstance(home, NpmPackages) and home.program:
            task = {**task, "program": str(Npm(self.environments).program(home))}
        user = folder.parent / "home"
        user.mkdir()
        settings |= {"HOME": str(user), "USERPROFILE": str(user), "XDG_CONFIG_HOME": str(user / ".config")}
        given = folder.parent / "task.json"
        given.write_text(json.dumps(task), encoding="utf-8")
        try:
            done = subprocess.run(
                [*command, str(given)],
                cwd=folder,
                env=settings,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=self.patience,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"no end after {self.patience:.0f} s"}
        report = _report(done)
        if "error" in report:
            report["error"] = report["error"].replace(str(self.environments.folder), "…")  # meaningless elsewhere
        return report

    def _command(self, home: Environment | NpmPackages, drivers: str, driver: str) -> tuple[list[str], dict[str, str]]:
        """Return the command of a driver and its environment variables."""
        where = self.environments
        known = where.settings()
        settings = {name: known[name] for name in (*INHERITED, *(known.keys() - os.environ.keys())) if name in known}
        settings["PYTHONPATH"] = known["PYTHONPATH"]
        home = HERE if self.here else home
        if isinstance(home, NpmPackages):
            settings["PATH"] = path_with_node(where)
            if driver.endswith(".mjs"):
                settings["NODE_PATH"] = str(Npm(where).home(home) / "node_modules")
                return ["node", str(_folder_of(drivers) / driver)], settings
            home = HERE
        return [str(where.python(home)), "-m", f"{drivers}.{driver}"], settings


def _folder_of(package: str) -> Path:
    """Return the folder of a package below everlong.lab. Example: everlong.lab.clients.drivers"""
    return Path(__file__).parent.joinpath(*package.split(".")[2:])


def _report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the report that a driver printed; if it failed, with its last output as the error."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    report: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    if done.returncode or not lines:
        words = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        report["error"] = next((line for line in reversed(words) if RAISED.match(line)), words[-1])[:500]
    return report


# --- a gateway of our own ----------------------------------------------------------------------------


@contextmanager
def serving(upstream: str, store: str = "memory:") -> Iterator[str]:
    """Run `everlong serve` in front of an upstream while this is entered; yield its address. Raises EverlongError."""
    port = _free_port()
    options = ("--port", str(port), "--upstream", upstream, "--store", store)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        gateway = subprocess.Popen(
            [sys.executable, "-m", "everlong", "serve", *options], stdout=output, stderr=subprocess.STDOUT
        )
        try:
            _wait_for(f"http://127.0.0.1:{port}/health", gateway)
            yield f"http://127.0.0.1:{port}"
        except TimeoutError as error:
            output.seek(0)
            lines = output.read().strip().splitlines() or ["it printed nothing"]
            raise EverlongError(f"the gateway did not start: {lines[-1]}") from error
        finally:
            gateway.terminate()
            gateway.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + STARTING
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise TimeoutError(url)
