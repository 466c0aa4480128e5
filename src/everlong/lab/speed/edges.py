"""How others are served during an attack: thousands of half-open connections, or an answer that is huge unpacked.

The gateway runs as its command; the attack and `/health` come from this process, each request on its own connection.
"""

import re
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Thread
from time import perf_counter

from everlong.lab.speed.bench import Bench
from everlong.lab.speed.tables import Table, figure

__all__ = ["run"]

HALF_OPEN = 1_100
REQUESTS = 400
UNPACKED, QUICK_UNPACKED = 400, 80  # MB
MB = 10**6
PATIENCE = 60.0  # seconds
HALF = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-half: "
HEALTH = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
BODY = b'{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello."}]}'
ASK = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(
    BODY
)


def run(bench: Bench) -> list[Table]:
    """Measure `/health` alone and during each attack."""
    requests = REQUESTS // 4 if bench.quick else REQUESTS
    unpacked = QUICK_UNPACKED if bench.quick else UNPACKED
    with ExitStack() as stack:
        port = stack.enter_context(_gateway(stack.enter_context(_upstream(unpacked))))
        bench.report("edges, nobody else")
        rows = [_row("nobody else", *_ask_health(port, requests))]
        bench.report(f"edges, {HALF_OPEN:,} half-open connections")
        with _half_open(port, HALF_OPEN):
            rows.append(_row(f"{HALF_OPEN:,} half-open connections", *_ask_health(port, requests)))
        bench.report(f"edges, an answer of {unpacked} MB when unpacked")
        rows.append(_row(f"an answer of {unpacked} MB, packed", *_ask_beside_answer(port)))
    head = ("beside", "requests", "served", "p50 ms", "p99 ms", "longest ms")
    return [Table("`/health` beside an attack", head, tuple(rows))]


def _row(beside: str, served: list[float], asked: int) -> tuple[str, ...]:
    times = sorted(served) or [0.0]
    shown = (times[len(times) // 2], times[int(len(times) * 0.99)], times[-1])
    return (beside, str(asked), str(len(served)), *(figure(seconds * 1_000) for seconds in shown))


def _ask_health(port: int, requests: int) -> tuple[list[float], int]:
    return [seconds for _ in range(requests) if (seconds := _health(port)) is not None], requests


def _ask_beside_answer(port: int) -> tuple[list[float], int]:
    """Ask for as long as the gateway reads the answer."""
    over = Event()

    def ask() -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line:
            line.sendall(ASK + BODY)
            while line.recv(65_536):
                pass
        over.set()

    asking = Thread(target=ask, daemon=True)
    asking.start()
    served: list[float] = []
    asked = 0
    while not over.is_set() or not asked:
        asked += 1
        seconds = _health(port)
        served += [] if seconds is None else [seconds]
    asking.join(PATIENCE)
    return served, asked


def _health(port: int) -> float | None:
    """Return the seconds that one request took; None if it was not served."""
    started = perf_counter()
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line:
        line.sendall(HEALTH)
        said = b""
        while part := line.recv(65_536):
            said += part
        if said.startswith(b"HTTP/1.1 200 "):
            return perf_counter() - started
    return None


@contextmanager
def _half_open(port: int, count: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(count):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
            with suppress(OSError):
                line.sendall(HALF)
        yield


@contextmanager
def _gateway(upstream: int) -> Iterator[int]:
    """Run the command in front of an upstream; yield its port."""
    options = ("--upstream", f"http://127.0.0.1:{upstream}/v1", "--store", "memory:", "--no-access-log", "--no-app")
    command = [sys.executable, "-m", "everlong", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert found is not None
        try:
            yield int(found[1])
        finally:
            process.terminate()


@contextmanager
def _upstream(unpacked: int) -> Iterator[int]:
    """Serve a packed answer of this many MB to every POST; yield the port."""
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join([*(packer.compress(b" " * MB) for _ in range(unpacked)), packer.flush()])
    lines = (
        "HTTP/1.1 200 OK",
        "content-type: application/json",
        "content-encoding: gzip",
        f"content-length: {len(packed)}",
    )
    answer = "\r\n".join([*lines, "", ""]).encode() + packed
    other = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

    def talk(line: socket.socket) -> None:
        with suppress(OSError), line:
            said = line.recv(65_536)
            line.sendall(answer if said.startswith(b"POST /v1/chat") else other)
            line.shutdown(socket.SHUT_WR)
            while line.recv(65_536):
                pass

    def serve() -> None:
        with suppress(OSError):
            while True:
                Thread(target=talk, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
