"""One client, one mode: the model, the gateway before it, the witness before that, and the client's own process.

Owns the processes and the folder a client works in. What came of it is judged elsewhere.
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError

from everlong.errors import EverlongError
from everlong.lab.clients.script import Reader, Tasks
from everlong.lab.clients.table import ClientRow
from everlong.lab.clients.verdict import Judged, RunRecord, judge, left_out
from everlong.lab.clients.witness import Witness
from everlong.lab.environments import HERE, Environments, Npm, NpmPackages, path_with_node
from everlong.llm import ScriptedServer, Window

__all__ = ["Runner"]

#: How the last words of a program that failed begin.
RAISED = re.compile(r"[\w.]*(Error|Exception)\b")
DRIVERS = Path(__file__).parent / "drivers"
DRIVER_MODULES = "everlong.lab.clients.drivers"
OPENAI_REFUSAL = Window().body
#: How the provider of each dialect refuses what is too long.
REFUSALS = {
    "messages": '{"type":"error","error":{"type":"invalid_request_error",'
    '"message":"prompt is too long: {tokens} tokens > {window} maximum"}}'
}
PATIENCE = 600.0  # seconds for one conversation
STARTING = 30.0  # seconds for the gateway
#: What a client inherits of the environment; keys and settings of whoever runs it stay outside.
INHERITED = ("LANG", "LC_ALL", "PATH", "SYSTEMROOT", "TEMP", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs clients: through the gateway, or without it where `direct`. `here` runs them in this very interpreter.

    `records`, where it is a folder, gets every request of every client, for who wants to look.
    """

    environments: Environments
    tasks: Tasks = field(default_factory=Tasks)
    direct: bool = False
    here: bool = False
    records: Path | None = None

    def all_modes(self, row: ClientRow) -> Iterator[Judged]:
        """Every conversation of a client; one row that says why if it cannot be had here."""
        reason = self.ready(row)
        if reason:
            yield left_out(row.name, reason)
            return
        for mode in row.modes:
            try:
                yield self.run(row, mode)
            except EverlongError as error:  # one that fails must not cost the rows of the others
                yield Judged(client=row.name, mode=mode, faults=(str(error),))

    def ready(self, row: ClientRow) -> str:
        """Install what the client needs; "" or why it cannot be had here."""
        if self.here:
            return ""
        if isinstance(row.home, NpmPackages):
            return Npm(self.environments).installed(row.home)
        return "" if self.environments.installed(row.home) else "pip cannot install it here"

    def run(self, row: ClientRow, mode: str) -> Judged:
        """One whole conversation."""
        with tempfile.TemporaryDirectory(prefix="everlong-client-") as made:
            folder = Path(made).resolve() / "work"
            folder.mkdir()
            self.tasks.write(folder)
            reader = Reader(self.tasks, folder)
            window = Window(row.window, told=True, body=REFUSALS.get(mode.partition(" ")[0], OPENAI_REFUSAL))
            with (
                ScriptedServer(reader, window=window, models=(row.model,)) as model,
                self._before(model) as target,
                Witness(target) as witness,
            ):
                told = self._driven(row, mode, witness.address, folder)
            lived = RunRecord(
                version=told.get("version", ""),
                answers=told.get("answers", ()),
                error=told.get("error", ""),
                passed=witness.passed,
                asked=model.requests,
                missing=reader.missing,
                window=row.window,
            )
            self._record(row, mode, lived)
            return judge(row.name, mode, self.tasks, lived)

    @contextmanager
    def _before(self, model: ScriptedServer) -> Iterator[str]:
        """The address that clients are given for that model."""
        if self.direct:
            yield model.address
            return
        port = _free_port()
        command = [
            sys.executable,
            "-m",
            "everlong",
            "serve",
            "--port",
            str(port),
            "--upstream",
            model.url,
            "--store",
            "memory:",
        ]
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            gateway = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
            try:
                _wait_for(f"http://127.0.0.1:{port}/health", gateway)
                yield f"http://127.0.0.1:{port}"
            except TimeoutError as error:
                said.seek(0)
                lines = said.read().strip().splitlines() or ["it says nothing"]
                raise EverlongError(f"the gateway does not start: {lines[-1]}") from error
            finally:
                gateway.terminate()
                gateway.wait()

    def _driven(self, row: ClientRow, mode: str, address: str, folder: Path) -> dict[str, str]:
        """What the driver says of the conversation."""
        given = {"address": address, "mode": mode, "model": row.model, "prompts": self.tasks.prompts()}
        command, settings = self._command(row)
        if isinstance(row.home, NpmPackages) and row.home.program:
            given["program"] = str(Npm(self.environments).program(row.home))
        home = folder.parent / "home"
        home.mkdir()
        settings |= {"HOME": str(home), "USERPROFILE": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
        try:
            done = subprocess.run(
                [*command, json.dumps(given)],
                cwd=folder,
                env=settings,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"no end after {PATIENCE:.0f} s"}
        return _told(done)

    def _command(self, row: ClientRow) -> tuple[list[str], dict[str, str]]:
        """How the driver is started, and the environment it gets."""
        where = self.environments
        known = where.settings()
        settings = {name: known[name] for name in (*INHERITED, *(known.keys() - os.environ.keys())) if name in known}
        settings["PYTHONPATH"] = known["PYTHONPATH"]
        home = HERE if self.here else row.home
        if isinstance(home, NpmPackages):
            settings["PATH"] = path_with_node(where)
            if row.driver.endswith(".mjs"):
                settings["NODE_PATH"] = str(Npm(where).home(home) / "node_modules")
                return ["node", str(DRIVERS / row.driver)], settings
            home = HERE
        return [str(where.python(home)), "-m", f"{DRIVER_MODULES}.{row.driver}"], settings

    def _record(self, row: ClientRow, mode: str, lived: RunRecord) -> None:
        if self.records is None:
            return
        self.records.mkdir(parents=True, exist_ok=True)
        lines = [
            {"method": one.method, "path": one.path, "status": one.status, "headers": one.headers}
            | {"body": one.body.decode("utf-8", "replace"), "trouble": one.trouble, "answer": one.answer_headers}
            for one in lived.passed
        ]
        sent = [
            {"tokens": one.tokens, "fmt": one.fmt, "body": one.body.decode("utf-8", "replace")} for one in lived.asked
        ]
        name = f"{row.name}-{mode.replace(' ', '-')}"
        text = json.dumps({"client": lines, "upstream": sent}, ensure_ascii=False, indent=1)
        (self.records / f"{name}.json").write_text(text, encoding="utf-8")


def _told(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The driver's line; where it failed, with its last words."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    told: dict[str, str] = json.loads(lines[-1]) if lines else {}
    if done.returncode or not lines:
        words = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        told["error"] = next((line for line in reversed(words) if RAISED.match(line)), words[-1])[:500]
    return told


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + STARTING
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise TimeoutError(url)
