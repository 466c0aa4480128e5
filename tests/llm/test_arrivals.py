"""Connections that arrive: how many there are, and which one makes room for another."""

import asyncio
import pickle
import resource
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, strategies as st

from everlong.llm.arrivals import ArrivalLimits, Arrivals, Guarded, GuardedHttp, raise_file_limit

ADDRESSES = ("10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")


class Line(asyncio.Transport):
    """The server's end of a connection from an address; it holds what is written."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self.written = b""
        self.closed = ""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self._address, 4711) if name == "peername" else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return bool(self.closed)

    def close(self) -> None:
        self.closed = "closed"

    def abort(self) -> None:
        self.closed = "aborted"


@dataclass
class Server:
    """A server that counts what it closes."""

    limits: ArrivalLimits
    notes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.arrivals = Arrivals(self.limits, lambda reason: self.notes.update([reason]))

    def connect(self, address: str) -> tuple[Guarded, Line]:
        guarded, line = Guarded(asyncio.Protocol(), self.arrivals), Line(address)
        guarded.connection_made(line)
        return guarded, line


def test_the_oldest_connection_that_never_asked_makes_room_for_a_new_one_of_its_address() -> None:
    async def do() -> None:
        server = Server(ArrivalLimits(per_address=3))
        asked, idle = server.connect("10.0.0.1")
        asked.began()
        asked.ended()
        _, silent = server.connect("10.0.0.1")
        _, later = server.connect("10.0.0.1")
        _, new = server.connect("10.0.0.1")
        assert [line.closed for line in (idle, silent, later, new)] == ["", "aborted", "", ""]
        assert (len(server.arrivals), server.notes) == (3, Counter(crowded_out=1))

    asyncio.run(do())


def test_a_request_under_way_is_never_closed_for_another() -> None:
    async def do() -> None:
        server = Server(ArrivalLimits(per_address=2))
        busy = [server.connect("10.0.0.1") for _ in range(2)]
        for guarded, _ in busy:
            guarded.began()
        _, refused = server.connect("10.0.0.1")
        _, other = server.connect("10.0.0.2")
        assert refused.closed
        assert refused.written.startswith(b"HTTP/1.1 503 ")
        assert [line.closed for _, line in busy] == ["", ""]
        assert not other.closed

    asyncio.run(do())


def test_the_address_with_the_most_makes_room_where_the_server_is_full() -> None:
    async def do() -> None:
        server = Server(ArrivalLimits(connections=4))
        _, lone = server.connect("10.0.0.2")
        _, first = server.connect("10.0.0.1")
        server.connect("10.0.0.1")
        server.connect("10.0.0.1")
        _, new = server.connect("10.0.0.3")
        assert [line.closed for line in (lone, first, new)] == ["", "aborted", ""]

    asyncio.run(do())


@pytest.mark.parametrize(
    ("trusted", "address", "open_"),
    [
        ((), "10.0.0.1", 2),
        (("10.0.0.1",), "10.0.0.1", 5),
        (("10.0.0.0/8",), "10.0.0.1", 5),
        (("10.0.0.0/8",), "::ffff:10.0.0.1", 5),
        (("11.0.0.0/8",), "10.0.0.1", 2),
        (("2001:db8::1",), "2001:db8::1", 5),
        (("10.0.0.0/8",), "2001:db8::1", 2),
        ((), "", 5),
    ],
    ids=str,
)
def test_the_connections_of_a_trusted_proxy_are_not_limited_by_address(
    trusted: tuple[str, ...], address: str, open_: int
) -> None:
    # Those that waited made room one after the other, so that only the last ones are open.
    async def still_open() -> int:
        server = Server(ArrivalLimits(per_address=2, trusted=trusted))
        lines = [server.connect(address)[1] for _ in range(5)]
        return sum(not line.closed for line in lines)

    assert asyncio.run(still_open()) == open_


@given(st.lists(st.tuples(st.sampled_from(["connect", "begin", "end", "leave"]), st.integers(0, 40)), max_size=60))
def test_limits_hold_and_no_request_under_way_is_lost(steps: list[tuple[str, int]]) -> None:
    async def do() -> None:
        server = Server(ArrivalLimits(connections=6, per_address=3))
        alive: dict[Guarded, Line] = {}
        busy: set[Guarded] = set()
        for step, number in steps:
            one = list(alive)[number % len(alive)] if alive else None
            if step == "connect":
                guarded, line = server.connect(ADDRESSES[number % len(ADDRESSES)])
                alive[guarded] = line
            elif one is not None and step == "begin" and one not in busy:
                one.began()
                busy.add(one)
            elif one is not None and step == "end" and one in busy:
                one.ended()
                busy.discard(one)
            elif one is not None and step == "leave":
                one.connection_lost(None)
                busy.discard(one)
                del alive[one]
            alive = {guarded: line for guarded, line in alive.items() if not line.closed}
            assert busy <= alive.keys()
            assert len(server.arrivals) == len(alive) <= 6
            assert all(count <= 3 for count in Counter(one.address for one in alive).values())

    asyncio.run(do())


def test_a_server_in_another_process_has_the_same_limits() -> None:
    limits = ArrivalLimits(header=1.5, trusted=("10.0.0.0/8",))
    made = pickle.loads(pickle.dumps(GuardedHttp(limits)))
    assert made.__reduce__()[1] == (limits, None)


def test_the_process_may_open_as_many_files_as_its_system_lets_it() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        few = Arrivals(ArrivalLimits()).most
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 512
        assert few == (512 - 64) // 2 < Arrivals(ArrivalLimits()).most
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
