"""Starting a gateway and waiting for its first answer; ending it with everything that it started."""

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

from everlong.lab.environments import Environment
from everlong.lab.speed.gateways.bodies import hello
from everlong.lab.speed.gateways.exchange import Connection, Refusal
from everlong.lab.speed.gateways.parties import Party
from everlong.lab.speed.gateways.processes import resident_megabytes
from everlong.lab.speed.jobs import Bench

__all__ = ["Running", "running"]

PATIENCE = 90  # seconds to the first answer
BETWEEN_TRIES = 0.02  # seconds
FAREWELL = 10  # seconds to end in peace


@dataclass(frozen=True, slots=True)
class Running:
    """A gateway that answers: where, as which process, after how many seconds it first did, with how many MB."""

    party: Party
    place: Environment
    port: int
    process: int
    started_in: float
    resident: float | None


@contextmanager
def running(bench: Bench, party: Party, place: Environment, upstream: int = 0) -> Iterator[Running | None]:
    """The gateway for as long as the block lasts; None, after one line, if it does not answer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        port = _free_port()
        places = {"port": port, "upstream": upstream, "folder": folder}
        party.write_files(folder, places)
        command = party.command(bench.environments.python(place), places)
        log = folder / "said.txt"
        with log.open("wb") as said:
            start = perf_counter()
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=bench.environments.settings(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that it can be ended with all it started
            )
        try:
            problem = _first_answer(process, port, hello(party.fmt))
            taken = perf_counter() - start
            if problem:
                lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                bench.tell(f"left out, {party.title}: {problem}; {lines[-1] if lines else 'it said nothing'}")
                yield None
            else:
                yield Running(party, place, port, process.pid, taken, resident_megabytes(process.pid))
        finally:
            _end(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _first_answer(process: "subprocess.Popen[bytes]", port: int, request: bytes) -> str:
    """Empty once it has answered, otherwise why it never did."""
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
