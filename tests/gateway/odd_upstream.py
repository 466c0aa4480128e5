"""An upstream that answers every request of a client with the bytes it is given, and a client that reads strictly.

Both work with plain sockets in threads, so that one gateway serves many tests.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Queue
from threading import Thread
from typing import Any

import h11

from everlong.gateway import Report
from tests.gateway.raw_upstream import PATIENCE
from tests.gateway.running import RunningGateway
from tests.gateway.talking import CLIENTS, PATHS, body_of

__all__ = ["WAYS", "Got", "Odd", "odd_upstream"]

NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
CHAT = PATHS["openai-chat"]
#: Where a request may go: its path, its body, its headers.
WAYS: dict[str, tuple[str, bytes, tuple[tuple[str, str], ...]]] = {
    "plain": (CHAT, body_of("openai-chat"), ()),
    "stream": (CHAT, body_of("openai-chat", stream=True), ()),
    "off": (CHAT, body_of("openai-chat"), (("x-everlong-mode", "off"),)),
    "passed": ("/v1/embeddings", b'{"model": "gpt-4o", "input": "x"}', ()),
}


@dataclass(frozen=True, slots=True)
class Got:
    """What a client got, and how the gateway reported it. `whole` is False if the answer broke off after its head."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool
    report: Report

    @property
    def logged(self) -> str:
        """The status and who ended it, in the log."""
        return f"{self.report.status} {self.report.ended_by}"

    @property
    def error(self) -> Any:
        """The error in the client's format."""
        return json.loads(self.body)["error"]


@dataclass(slots=True)
class Odd:
    """A gateway in front of an upstream that answers with `answer`, and hangs up."""

    gateway: RunningGateway
    listening: socket.socket
    answer: bytes = b""
    reports: Queue[Report] = field(default_factory=Queue)

    def ask(self, way: str, answer: bytes) -> Got:
        """Ask for something and return what comes."""
        self.answer = answer
        path, body, more = WAYS[way]
        told = {
            "host": "localhost",
            CLIENTS: "1",
            "content-length": str(len(body)),
            "connection": "close",
            **dict(more),
        }
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items()), "", ""]
        with socket.create_connection(("127.0.0.1", self.gateway.port), timeout=PATIENCE) as line:
            line.sendall("\r\n".join(lines).encode() + body)
            status, headers, got, whole = _read_strictly(line)
        return Got(status, headers, got, whole, self.reports.get(timeout=PATIENCE))

    def serve(self) -> None:
        """Answer connections until the socket is closed."""
        while True:
            try:
                line, _ = self.listening.accept()
            except OSError:
                return
            Thread(target=self._talk, args=(line,), daemon=True).start()

    def _talk(self, line: socket.socket) -> None:
        with suppress(OSError), line:
            while True:
                head = _request(line)
                if not head:
                    return
                if CLIENTS.encode() in head.lower():
                    line.sendall(self.answer)
                    line.shutdown(socket.SHUT_WR)
                    while line.recv(65_536):
                        pass
                    return
                line.sendall(NOT_FOUND)


def _request(line: socket.socket) -> bytes:
    """The next request with its body; b"" if there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = line.recv(65_536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [one.partition(b":") for one in head.lower().split(b"\r\n")]
    length = next((int(value) for name, _, value in lines if name == b"content-length"), 0)
    while len(body) < length:
        body += line.recv(65_536)
    return head


def _read_strictly(line: socket.socket) -> tuple[int, dict[str, str], bytes, bool]:
    """The answer, read as the strictest of clients does: anything odd in its head raises."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("host", "gateway"), ("connection", "close")]))
    connection.send(h11.EndOfMessage())
    status, headers, body = 0, {}, bytearray()
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError:
            if not status:
                raise
            return status, headers, bytes(body), False
        match event:
            case h11.NEED_DATA:
                try:
                    connection.receive_data(line.recv(65_536))
                except ConnectionError:
                    return status, headers, bytes(body), False
            case h11.Response():
                status = event.status_code
                headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
            case h11.Data():
                body += event.data
            case h11.EndOfMessage():
                return status, headers, bytes(body), True


@contextmanager
def odd_upstream(**options: Any) -> Iterator[Odd]:
    """Such a gateway, while this is entered."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        port = listening.getsockname()[1]
        with RunningGateway(upstream=f"http://127.0.0.1:{port}/v1", **options) as gateway:
            odd = Odd(gateway, listening)
            gateway.services.recent.observers.append(lambda _, report: odd.reports.put(report))
            serving = Thread(target=odd.serve, daemon=True)
            serving.start()
            yield odd
        listening.shutdown(socket.SHUT_RDWR)
        serving.join(PATIENCE)
