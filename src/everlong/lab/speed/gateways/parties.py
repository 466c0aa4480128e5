"""The gateways: one row each, with the command line from its documentation; how they are started and ended."""

import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep

from everlong.lab.environments import ENVIRONMENTS, HERE, SERVER, SERVER_POSTGRES, Environment
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.gateways.processes import resident_megabytes
from everlong.lab.speed.gateways.requests import ANTHROPIC, GEMINI, MODEL, OPENAI, Connection, Refusal, hello

__all__ = [
    "DIRECT",
    "EVERLONG",
    "EVERLONG_ANTHROPIC",
    "EVERLONG_POSTGRES",
    "EVERLONG_SQLITE",
    "EVERLONG_WORKERS",
    "HOP",
    "PARTIES",
    "Party",
    "RunningGateway",
    "run_gateway",
]


@dataclass(frozen=True, slots=True)
class Party:
    """A gateway: where it is installed, its program and arguments, and its files.

    In arguments and files, `{port}`, `{upstream}`, `{folder}` and `{postgres}` stand for its port, the upstream's port,
    the folder of its files, and the URL of a database.
    """

    title: str
    environment: Environment
    program: str = "python"
    arguments: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict, hash=False)
    fmt: str = OPENAI

    @property
    def needs_postgres(self) -> bool:
        """Whether it can only run with a database."""
        return "{postgres}" in self.arguments

    def command(self, python: Path, places: Mapping[str, object]) -> list[str]:
        """Return the command line, given the interpreter of its environment."""
        program = python if self.program == "python" else python.parent / self.program
        return [str(program), *(_filled(argument, places) for argument in self.arguments)]

    def write_files(self, folder: Path, places: Mapping[str, object]) -> None:
        """Write its files into the folder."""
        for name, text in self.files.items():
            (folder / name).write_text(_filled(text, places), encoding="utf-8")


def _filled(text: str, places: Mapping[str, object]) -> str:
    """Insert only these names: a file may have other braces."""
    for name, value in places.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def _litellm_config() -> str:
    reached = {"model": f"openai/{MODEL}", "api_base": "http://127.0.0.1:{upstream}/v1", "api_key": "none"}
    models = [{"model_name": MODEL, "litellm_params": reached}]
    no_keys = {"dangerously_permit_weak_or_unset_master_key": True}  # no key is checked here
    return json.dumps({"model_list": models, "general_settings": no_keys})  # JSON is YAML


#: The upstream itself.
DIRECT = Party("direct", HERE, arguments=("-m", "everlong.lab.speed.gateways.servers", "{port}"))
#: Forwards bytes without reading them.
HOP = Party(
    "a hop that reads nothing", HERE, arguments=("-m", "everlong.lab.speed.gateways.servers", "{port}", "{upstream}")
)
SERVED = (
    *("-m", "everlong", "serve", "--port", "{port}"),
    *("--upstream", "http://127.0.0.1:{upstream}/v1", "--store"),
)
SERVE = (*SERVED, "memory:")
SQLITE = (*SERVED, "sqlite:///{folder}/threads.db")
EVERLONG = Party("**everlong** `serve`", SERVER, arguments=SERVE)
EVERLONG_SQLITE = Party("**everlong** `serve`, SQLite", SERVER, arguments=SQLITE)
EVERLONG_WORKERS = Party("**everlong** `serve --workers 2`, SQLite", SERVER, arguments=(*SQLITE, "--workers", "2"))
EVERLONG_POSTGRES = Party("**everlong** `serve`, Postgres", SERVER_POSTGRES, arguments=(*SERVED, "{postgres}"))
EVERLONG_ANTHROPIC = Party("**everlong** `serve`, Anthropic's format", SERVER, arguments=SERVE, fmt=ANTHROPIC)
EVERLONG_GEMINI = Party("**everlong** `serve`, Google's format", SERVER, arguments=SERVE, fmt=GEMINI)
#: All but the upstream, in the order of the tables.
PARTIES = (
    HOP,
    EVERLONG,
    EVERLONG_ANTHROPIC,
    EVERLONG_GEMINI,
    EVERLONG_SQLITE,
    EVERLONG_WORKERS,
    EVERLONG_POSTGRES,
    Party(
        "litellm proxy",
        ENVIRONMENTS["litellm-proxy"],
        "litellm",
        ("--config", "{folder}/litellm.yaml", "--host", "127.0.0.1", "--port", "{port}"),
        {"litellm.yaml": _litellm_config()},
    ),
    # By default its cache would answer instead of the upstream, and it allows only 60 requests per minute.
    Party(
        "headroom proxy",
        ENVIRONMENTS["headroom-proxy"],
        "headroom",
        (
            *("proxy", "--port", "{port}", "--openai-api-url", "http://127.0.0.1:{upstream}/v1"),
            *("--no-cache", "--no-rate-limit"),
        ),
    ),
)


# --- started and ended ---------------------------------------------------------------------------

PATIENCE = 90  # seconds to the first answer
BETWEEN_TRIES = 0.02  # seconds
FAREWELL = 10  # seconds to end on its own


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """A gateway that answers: its port and process, the seconds to its first answer, and its memory then, in MB."""

    party: Party
    place: Environment
    port: int
    process: int
    started_in: float
    resident: float | None


@contextmanager
def run_gateway(bench: Bench, party: Party, place: Environment, upstream: int = 0) -> Iterator[RunningGateway | None]:
    """Run a gateway while this is entered. Report one line and yield None if it does not answer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        port = _free_port()
        places = {"port": port, "upstream": upstream, "folder": folder, "postgres": bench.postgres}
        party.write_files(folder, places)
        command = party.command(bench.environments.python(place), places)
        log = folder / "output.txt"
        with log.open("wb") as output:
            start = perf_counter()
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=bench.environments.settings(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that it can be ended with all its children
            )
        try:
            problem = _first_answer(process, port, hello(party.fmt))
            taken = perf_counter() - start
            if problem:
                lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                bench.report(f"left out, {party.title}: {problem}; {lines[-1] if lines else 'it printed nothing'}")
                yield None
            else:
                yield RunningGateway(party, place, port, process.pid, taken, resident_megabytes(process.pid))
        finally:
            _end(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _first_answer(process: "subprocess.Popen[bytes]", port: int, request: bytes) -> str:
    """Return "" once it has answered, otherwise why it did not."""
    connection = Connection(port)
    start = perf_counter()
    problem = ""
    while perf_counter() - start < PATIENCE:
        if process.poll() is not None:
            return f"it ended with {process.returncode}"
        try:
            connection.ask(request)
        except Refusal as refusal:
            problem = str(refusal)
            sleep(BETWEEN_TRIES)
        else:
            connection.close()
            return ""
    return f"no answer after {PATIENCE} s: {problem}"


def _end(process: "subprocess.Popen[bytes]") -> None:
    for way in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, way)
            process.wait(FAREWELL)
        except ProcessLookupError:
            process.wait()
            return
        except subprocess.TimeoutExpired:
            continue
