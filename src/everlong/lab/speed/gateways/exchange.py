"""One request and its answer over a connection that stays open: bytes out, bytes in, the clock read twice.

Owns the client's side of HTTP as far as a measurement needs it: of an answer only the head is read. A client that did
more would be measured along with the gateway.
"""

import re
import socket
from dataclasses import dataclass
from time import perf_counter

__all__ = ["Answer", "Connection", "Refusal"]

PATIENCE = 120  # seconds without a byte
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
CHUNKED = re.compile(rb"(?i)\r\ntransfer-encoding: *chunked")
EVENTS = re.compile(rb"(?i)\r\ncontent-type: *text/event-stream")
READ = 1 << 18


class Refusal(Exception):
    """The answer was not 200, or none came."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Seconds to the first byte of the body and to its last, the size of it all, and whether it came as events."""

    first: float
    whole: float
    size: int
    streamed: bool


class Connection:
    """To a port of this machine, opened when first used and again after a failure."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket: socket.socket | None = None

    def ask(self, request: bytes) -> Answer:
        """Send it and read the answer. Raises Refusal."""
        try:
            if self.socket is None:
                self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._exchange(self.socket, request)
        except OSError as error:
            self.close()
            raise Refusal(str(error)) from error
        except Refusal:
            self.close()
            raise

    def close(self) -> None:
        """Leave; asking again opens it anew."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def _exchange(self, peer: socket.socket, request: bytes) -> Answer:
        start = perf_counter()
        peer.sendall(request)
        head, body = _head(peer)
        if not body:
            body = _more(peer)
        first = perf_counter()
        length = LENGTH.search(head)
        if length:
            size = len(body)
            while size < int(length[1]):
                size += len(_more(peer))
        else:
            size = _until_the_last_chunk(peer, head, body)
        whole = perf_counter()
        if b" 200 " not in head[:16]:
            raise Refusal((head.split(b"\r\n")[0] + b" " + body[:300]).decode(errors="replace"))
        return Answer(first - start, whole - start, len(head) + size, bool(EVENTS.search(head)))


def _head(peer: socket.socket) -> tuple[bytes, bytes]:
    received = _more(peer)
    while (end := received.find(b"\r\n\r\n")) < 0:
        received += _more(peer)
    return received[: end + 2], received[end + 4 :]


def _until_the_last_chunk(peer: socket.socket, head: bytes, body: bytes) -> int:
    if not CHUNKED.search(head):
        raise Refusal("an answer without length or chunks")
    size, end = len(body), body[-5:]
    while end != b"0\r\n\r\n":
        data = _more(peer)
        size += len(data)
        end = (end + data)[-5:]
    return size


def _more(peer: socket.socket) -> bytes:
    data = peer.recv(READ)
    if not data:
        raise Refusal("the connection was closed before the answer was whole")
    return data
