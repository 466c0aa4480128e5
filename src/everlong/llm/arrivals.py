"""Limits for connections to our own servers: how many there may be, and how long each may take.

A server's own protocol is wrapped in a `Guarded`. It closes a connection if the head or the body of a request does not
arrive in time, or if the client stops reading; a byte now and then does not extend a deadline. Each address has a
limit, and so has the server. When one is reached, a waiting connection is closed: first one that never sent a request,
then an idle one. A request in progress is never closed to make room for another.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Self, cast

__all__ = ["ArrivalLimits", "Arrivals", "Guarded", "GuardedHttp", "Stage", "raise_file_limit"]

LARGEST_HEAD = 64 * 1024  # bytes of a request's head
LEAST_PROGRESS = 16 * 1024  # bytes that a live client reads in `write` seconds
RESERVED_FILES = 64  # open files for the store, logs and the event loop
ENOUGH_FILES = 65_536
FIRST_REQUEST = 2.0  # seconds that a client which has just connected gets for its request when the server shuts down
SAME_NETWORK = 64  # bits of an IPv6 address that one customer has
SLOW_HEAD = b"408 Request Timeout", b"the head of the request did not arrive in time"
LARGE_HEAD = b"431 Request Header Fields Too Large", b"the head of the request is too large"
TOO_MANY = b"503 Service Unavailable", b"too many connections; try again later"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalLimits:
    """Limits for incoming connections: timeouts in seconds, and how many connections are accepted.

    The timeouts are for the header, the body, an idle connection and a client that does not read. `per_address` 0 means
    no limit. It does not apply to `trusted` addresses or networks of proxies, which stand for many clients.
    """

    header: float = 10.0
    body: float = 60.0
    idle: float = 75.0
    write: float = 60.0
    connections: int = 4_096
    per_address: int = 512
    trusted: tuple[str, ...] = ()


#: An answer without the application. Like the application's, browsers may not run it, frame it or guess its type.
ANSWER = (
    b"HTTP/1.1 %s\r\ncontent-type: text/plain\r\nx-content-type-options: nosniff\r\nx-frame-options: DENY\r\n"
    b"content-security-policy: sandbox; default-src 'none'\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
)


class Stage(Enum):
    """What a connection does: it waits for a request's head, receives the body, or the answer is in progress."""

    WAITING = "waiting"
    RECEIVING = "receiving"
    ANSWERING = "answering"


class Arrivals:
    """All connections of one server, by address. `note` is called with the reason for each that is closed early."""

    def __init__(self, limits: ArrivalLimits, note: Callable[[str], None] = lambda _: None) -> None:
        self.limits = limits
        self.note = note
        self.most = max(1, min(limits.connections, _files_for_clients()))
        self._trusted = [ip_network(each, strict=False) for each in limits.trusted]
        self._groups: dict[str, dict[Guarded, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        """How many connections there are."""
        return self._count

    def enter(self, one: "Guarded") -> bool:
        """Count a connection, after closing others if needed; False if there is no free place."""
        group = self._groups.get(one.address, {})
        most = self.limits.per_address
        if most and len(group) >= most and not self._is_trusted(one.address) and not _crowd_out(group):
            return False
        if self._count >= self.most and not self._make_room():
            return False
        self._groups.setdefault(one.address, {})[one] = None
        self._count += 1
        return True

    def leave(self, one: "Guarded") -> None:
        """Forget a connection; a second call does nothing."""
        group = self._groups.get(one.address, {})
        if one in group:
            del group[one]
            self._count -= 1
            if not group:
                del self._groups[one.address]

    def _make_room(self) -> bool:
        """Close a waiting connection, of the address that has the most connections."""
        return any(_crowd_out(group) for group in sorted(self._groups.values(), key=len, reverse=True))

    def _is_trusted(self, address: str) -> bool:
        if not address:  # a local socket without an address
            return True
        network = ip_network(address)
        return any(_within(network, each) for each in self._trusted)


def _crowd_out(group: "dict[Guarded, None]") -> bool:
    """Close the oldest connection that waits: one that never sent a request, else one that is idle."""
    waiting = [one for one in group if one.stage is Stage.WAITING]
    victim = next((one for one in waiting if not one.served), waiting[0] if waiting else None)
    if victim is None:
        return False
    victim.end("crowded_out")
    return True


def _within(inner: IPv4Network | IPv6Network, outer: IPv4Network | IPv6Network) -> bool:
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and (inner.subnet_of(outer) or outer.subnet_of(inner))


def _address_of(transport: asyncio.Transport) -> str:
    """Return the address that is counted; for IPv6, the network that one customer has. "" if there is none."""
    peer = transport.get_extra_info("peername")
    if not isinstance(peer, tuple) or not peer:
        return ""
    try:
        address = ip_address(str(peer[0]).partition("%")[0])
    except ValueError:
        return ""
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, SAME_NETWORK), strict=False))


class Guarded(asyncio.Protocol):
    """One connection: the server's own protocol, with deadlines around it. `stage_of` returns that protocol's stage.

    Without `stage_of` the server itself calls `began` and `ended` for each request.
    """

    def __init__(
        self,
        inner: asyncio.Protocol,
        arrivals: Arrivals,
        stage_of: Callable[[asyncio.Protocol], Stage] | None = None,
    ) -> None:
        self._inner = inner
        self._arrivals = arrivals
        self._stage_of = stage_of
        self._under_way = 0
        self._entered = False
        self._head_bytes = 0
        self._head_until: float | None = None
        self._body_until: float | None = None
        self._stuck = 0  # bytes that waited for the client at the last check
        self._stuck_until: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._shut_down: Callable[[], None] | None = None
        self.address = ""
        #: Whether the head of at least one request was complete.
        self.served = False

    @property
    def stage(self) -> Stage:
        """The current stage."""
        if self._stage_of is not None:
            return self._stage_of(self._inner)
        return Stage.ANSWERING if self._under_way else Stage.WAITING

    # --- what the transport calls ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or refuse it if there are too many."""
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        self.address = _address_of(self._transport)
        if not self._arrivals.enter(self):
            self._arrivals.note("too_many")
            self._say(*TOO_MANY)
            self._transport.close()
            self._watch_from(self._loop.time() + self._arrivals.limits.header)
            return
        self._entered = True
        self._head_until = self._loop.time() + self._arrivals.limits.header
        self._watch_from(self._head_until)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Forward the data. All bytes of a head share one deadline."""
        if not self._entered or self._transport.is_closing():
            return
        waited = self.stage is Stage.WAITING
        self._inner.data_received(data)
        if not waited or self._transport.is_closing():
            return
        if self.stage is not Stage.WAITING:
            self.began()
            return
        self._head_bytes += len(data)
        if self._head_until is None:
            self._head_until = self._loop.time() + self._arrivals.limits.header
            self._watch_from(self._head_until)
        if self._stage_of is not None and self._head_bytes > LARGEST_HEAD:
            self.end("large_head")

    def eof_received(self) -> bool | None:
        """Forward the end of the data."""
        return self._inner.eof_received() if self._entered else None

    def pause_writing(self) -> None:
        """Note that the client reads too slowly."""
        if self._entered:
            self._look_at_reader(self._loop.time())
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Note that the client has caught up."""
        self._stuck_until = None
        if self._entered:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._arrivals.leave(self)
        if self._entered:
            self._inner.connection_lost(exc)

    # --- requests ----------------------------------------------------------------------------------

    def began(self) -> None:
        """Note that the head of a request is complete."""
        self.served = True
        self._under_way += 1
        if self._shut_down is not None:
            self._shut_down()
        self._head_until, self._head_bytes = None, 0
        if self.stage is Stage.RECEIVING:
            # Longer than the server itself waits for a body, so that it can answer in the client's format.
            limits = self._arrivals.limits
            self._body_until = self._loop.time() + limits.header + limits.body
            self._watch_from(self._body_until)

    def ended(self) -> None:
        """Note that the answer is complete."""
        self._under_way -= 1

    def shut_down(self, how: Callable[[], None]) -> None:
        """Let the server shut the connection down, as `how` does: at once, or after the first request.

        A client that has just connected has sent its request, or is about to. If the connection were closed now, it
        would get an error although other processes serve the same port.
        """
        if self.served or not self._entered:
            how()
        else:
            self._shut_down = how
            self._loop.call_later(FIRST_REQUEST, lambda: None if self.served else how())

    def end(self, reason: str) -> None:
        """Close it: after an error message if the client can expect one, else at once."""
        self._arrivals.leave(self)
        self._arrivals.note(reason)
        if reason == "large_head" or (reason == "slow_head" and self._head_bytes and not self.served):
            self._say(*(LARGE_HEAD if reason == "large_head" else SLOW_HEAD))
            self._transport.close()
            self._watch_from(self._loop.time() + self._arrivals.limits.header)
        else:
            self._transport.abort()

    def _say(self, status: bytes, line: bytes) -> None:
        self._transport.write(ANSWER % (status, len(line), line))

    # --- deadlines ---------------------------------------------------------------------------------

    def _watch_from(self, then: float) -> None:
        """Check the connection at that time, or earlier if a check is already planned."""
        if self._timer is not None:
            if self._timer.when() <= then:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(then, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        reason = self._overdue(now)
        if reason:
            self.end(reason)
            return
        planned = (self._head_until, self._body_until, self._stuck_until, now + self._arrivals.limits.write)
        self._watch_from(min(each for each in planned if each is not None))

    def _overdue(self, now: float) -> str:
        """Return what took too long; "" if nothing did."""
        if self._looks_stuck(now):
            return "slow_reader"
        if self._transport.is_closing():
            return ""
        if self._head_until is not None and now >= self._head_until:
            return "slow_head"
        if self._body_until is not None and now >= self._body_until:
            if self.stage is Stage.RECEIVING:
                return "slow_body"
            self._body_until = None if self.stage is Stage.WAITING else now + self._arrivals.limits.body
        return ""

    def _looks_stuck(self, now: float) -> bool:
        """Return whether the client read almost nothing for too long. A connection that is closing counts too."""
        if self._stuck_until is not None and now < self._stuck_until:
            return False
        before, since = self._stuck, self._stuck_until
        self._look_at_reader(now)
        return since is not None and self._stuck_until is not None and self._stuck > before - LEAST_PROGRESS

    def _look_at_reader(self, now: float) -> None:
        self._stuck = self._transport.get_write_buffer_size()
        self._stuck_until = now + self._arrivals.limits.write if self._stuck else None
        if self._stuck_until is not None:
            self._watch_from(self._stuck_until)


# --- uvicorn ---------------------------------------------------------------------------------------


class GuardedHttp:
    """uvicorn's HTTP protocol with limits, for `http=` of a uvicorn configuration. It can be pickled.

    `note` is called with uvicorn's configuration and the reason for each connection that is closed early.
    """

    def __init__(self, limits: ArrivalLimits, note: Callable[[Any, str], None] | None = None) -> None:
        self._limits = limits
        self._note = note
        self._arrivals: Arrivals | None = None

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (self._limits, self._note)

    def __call__(self, config: Any, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> Guarded:
        """Return the protocol of a new connection."""
        from uvicorn.protocols.http.auto import AutoHTTPProtocol  # noqa: PLC0415 - an extra

        if self._arrivals is None:
            note = self._note
            self._arrivals = Arrivals(self._limits, (lambda _: None) if note is None else partial(note, config))
        made = cast(Any, AutoHTTPProtocol)
        inner = made(config=config, server_state=server_state, app_state=app_state, _loop=_loop)
        guarded = Guarded(inner, self._arrivals, _uvicorn_stage)
        inner.shutdown = partial(guarded.shut_down, inner.shutdown)
        return guarded


def _uvicorn_stage(inner: Any) -> Stage:
    cycle = inner.cycle
    if cycle is None or cycle.response_complete:
        return Stage.WAITING
    # If reading is paused, the server is slow, not the client.
    return Stage.RECEIVING if cycle.more_body and not inner.flow.read_paused else Stage.ANSWERING


# --- files -----------------------------------------------------------------------------------------


def raise_file_limit() -> None:
    """Raise the process's limit of open files to the most that the system allows."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not on Windows

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_FILES)
        if soft not in (resource.RLIM_INFINITY, hard) and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _files_for_clients() -> int:
    """Return how many connections the limit of open files allows, with one to an upstream for each."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return ENOUGH_FILES
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return ENOUGH_FILES if soft == resource.RLIM_INFINITY else (soft - RESERVED_FILES) // 2
