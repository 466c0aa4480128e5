"""The runner: one client in one mode, with the model, the gateway before it, and the witness before that.

Owns the processes and the folder that a client works in. `verdict` judges the result.
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
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from urllib.error import URLError

from everlong.errors import EverlongError
from everlong.lab.clients.script import Work
from everlong.lab.clients.table import ClientRow
from everlong.lab.clients.verdict import RunRecord, Verdict, judge, left_out
from everlong.lab.clients.witness import MARK, Witness
from everlong.lab.environments import HERE, Environments, Npm, NpmPackages, path_with_node
from everlong.llm import ScriptedOllama, ScriptedServer, Window

__all__ = ["Runner"]

#: How the last line of a failed program begins.
RAISED = re.compile(r"[\w.]*(Error|Exception)\b")
DRIVERS = Path(__file__).parent / "drivers"
DRIVER_MODULES = "everlong.lab.clients.drivers"
OPENAI_REFUSAL = Window().body
#: How the provider of each dialect refuses a request that is too long.
REFUSALS = {
    "messages": '{"type":"error","error":{"type":"invalid_request_error",'
    '"message":"prompt is too long: {tokens} tokens > {window} maximum"}}',
    "contents": '{"error":{"code":400,"status":"INVALID_ARGUMENT",'
    '"message":"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."}}',
}
PATIENCE = 600.0  # seconds for one conversation
STARTING = 120.0  # seconds for the gateway, on a busy machine
#: The variables that a client inherits; the user's keys and settings are kept from it.
INHERITED = ("LANG", "LC_ALL", "PATH", "SYSTEMROOT", "TEMP", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs clients through the gateway, or without it if `direct`. `here` runs them with this interpreter.

    `tasks`, if there are some, take the place of each client's own. `records`, if it is a folder, gets every request of
    every client for a closer look.
    """

    environments: Environments
    tasks: Work | None = None
    direct: bool = False
    here: bool = False
    records: Path | None = None
    #: Seconds for one conversation.
    patience: float = PATIENCE

    def all_modes(self, row: ClientRow) -> Iterator[Verdict]:
        """Yield a row for every mode of a client, or one row that says why it is not available here."""
        reason = self.ready(row)
        if reason:
            yield left_out(row.name, reason)
            return
        for mode, window in product(row.modes, row.windows):
            try:
                yield self.run(row, mode, window)
            except EverlongError as error:  # a failing mode must not cost the rows of the others
                yield Verdict(client=row.name, mode=mode, window=window, faults=(str(error),))

    def ready(self, row: ClientRow) -> str:
        """Install what the client needs; return "" or why it is not available here."""
        if self.here:
            return ""
        if isinstance(row.home, NpmPackages):
            return Npm(self.environments).installed(row.home)
        return "" if self.environments.installed(row.home) else "pip cannot install it here"

    def run(self, row: ClientRow, mode: str, window: int) -> Verdict:
        """Run one whole conversation; return its row."""
        tasks = self.tasks or row.tasks
        with tempfile.TemporaryDirectory(prefix="everlong-client-") as made:
            folder = Path(made).resolve() / "work"
            folder.mkdir()
            tasks.write(folder)
            clerk = tasks.script(folder)
            refusing = Window(window, told=True, body=REFUSALS.get(mode.partition(" ")[0], OPENAI_REFUSAL))
            cutting = ScriptedOllama(default=window, refuses=False) if row.truncates else None
            limit = Window() if row.truncates else refusing
            with (
                ScriptedServer(clerk, window=limit, models=(row.model_in(mode),), ollama=cutting) as model,
                self._serve(model) as target,
                Witness(target) as witness,
            ):
                report = self._drive(row, mode, tasks.prompts(), witness.address, folder)
            record = RunRecord(
                version=report.get("version", ""),
                answers=report.get("answers", ()),
                error=report.get("error", "").replace(str(self.environments.folder), "…"),  # says nothing elsewhere
                exchanges=witness.exchanges,
                requests=model.requests,
                missing=clerk.missing,
                window=window,
            )
            self._save(row, mode, record)
            return judge(row.name, mode, tasks, record)

    @contextmanager
    def _serve(self, model: ScriptedServer) -> Iterator[str]:
        """Start the gateway unless the run is direct; yield the address that the client gets."""
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
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            gateway = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
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

    def _drive(self, row: ClientRow, mode: str, prompts: list[str], address: str, folder: Path) -> dict[str, str]:
        """Run the driver; return its report."""
        task = {"address": address, "mode": mode, "model": row.model_in(mode), "prompts": prompts}
        command, settings = self._command(row)
        if isinstance(row.home, NpmPackages) and row.home.program:
            task["program"] = str(Npm(self.environments).program(row.home))
        home = folder.parent / "home"
        home.mkdir()
        settings |= {"HOME": str(home), "USERPROFILE": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
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
        return _report(done)

    def _command(self, row: ClientRow) -> tuple[list[str], dict[str, str]]:
        """Return the command of the driver and its environment variables."""
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

    def _save(self, row: ClientRow, mode: str, record: RunRecord) -> None:
        if self.records is None:
            return
        self.records.mkdir(parents=True, exist_ok=True)
        lines = [
            {"method": one.method, "path": one.path, "status": one.status, "headers": one.headers}
            | {"body": one.body.decode("utf-8", "replace"), "trouble": one.trouble, "answer": one.answer_headers}
            for one in record.exchanges
        ]
        sent = [
            {"tokens": one.tokens, "fmt": one.fmt, "made_of": one.headers.get(MARK)}
            | {"body": one.body.decode("utf-8", "replace")}
            for one in record.requests
        ]
        name = f"{row.name}-{mode.replace(' ', '-')}-{record.window}"
        text = json.dumps({"client": lines, "upstream": sent}, ensure_ascii=False, indent=1)
        (self.records / f"{name}.json").write_text(text, encoding="utf-8")


def _report(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the report that a driver printed; if it failed, with its last words as the error."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    report: dict[str, str] = json.loads(lines[-1]) if lines else {}
    if done.returncode or not lines:
        words = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        report["error"] = next((line for line in reversed(words) if RAISED.match(line)), words[-1])[:500]
    return report


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
