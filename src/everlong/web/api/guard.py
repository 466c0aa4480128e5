"""Decide who may use the app: its own page on this machine, someone with the password, or users with accounts.

Owns the check of the page's header. Users are named by a reverse proxy, or sign in at an OpenID provider; logins are in
the store. Requests of other sites never get here: the boundary around the server refuses them.
"""

import asyncio
import hmac
import math
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic
from typing import Protocol

from starlette.requests import Request

from everlong.errors import Refused
from everlong.store import MemoryThreads
from everlong.web.users.accounts import NOBODY, Logins, User

__all__ = ["COOKIE", "LOGIN_SECONDS", "Guard", "Provider", "ProxyUsers", "is_loopback"]

COOKIE = "everlong"
LOGIN_SECONDS = 30 * 24 * 3_600.0  # a month
LONGEST_USER = 320  # characters; the longest possible email address
PAGE_HEADER, PAGE = "x-everlong", "page"
SAFE_METHODS = ("GET", "HEAD")
MOST_FAILURES = 10  # wrong passwords of one address before it has to wait
FIRST_WAIT, LONGEST_WAIT = 60.0, 3_600.0  # seconds; each further wrong password doubles the wait
FORGOTTEN = 24 * 3_600.0  # seconds without a wrong password
MOST_ADDRESSES = 1_000  # addresses that are remembered: those that failed last
NETWORK = 64  # bits of an IPv6 address that one customer has


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server on that address. Example: "0.0.0.0" -> False"""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(slots=True)
class _Failures:
    """The wrong passwords of one address: how many, when the last, and until when it waits."""

    count: int = 0
    last: float = 0.0
    until: float = 0.0


class Provider(Protocol):
    """Signs users in somewhere else."""

    @property
    def secure(self) -> bool:
        """Whether browsers reach the app by https."""

    async def begin(self) -> tuple[str, str]:
        """Return the address to which the browser goes, and a text for its cookie."""

    async def finish(self, code: str, state: str, browser: str) -> User:
        """Return who signed in. Raises Refused."""


@dataclass(frozen=True, slots=True)
class ProxyUsers:
    """Users whom a reverse proxy names in a header. Only requests that come from its own address are answered."""

    header: str
    #: Addresses or networks of the proxies.
    proxies: tuple[str, ...]

    def user(self, request: Request) -> User:
        """Return the user that the proxy names. Raises Refused unless the proxy sent the request and named a user."""
        host = request.client.host if request.client is not None else ""
        if not self._is_proxy(host):
            raise Refused("the app can be reached only through its proxy", status=403, kind="proxy")
        named = request.headers.getlist(self.header)
        if len(named) != 1 or not named[0].strip():
            raise Refused("the proxy did not name a user", status=401, kind="proxy")
        name = named[0].strip()
        if len(name) > LONGEST_USER or not name.isprintable():
            raise Refused("the proxy sent an invalid user name", status=401, kind="proxy")
        return User(f"proxy\n{name}", name)

    def _is_proxy(self, host: str) -> bool:
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            return False
        inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return any((inner or address) in ip_network(proxy, strict=False) for proxy in self.proxies)


@dataclass(slots=True)
class Guard:
    """The access rules of one app. Without a password and without users, no login is needed."""

    password: str = field(default="", repr=False)
    clock: Callable[[], float] = field(default=monotonic, repr=False)
    logins: Logins = field(default_factory=lambda: Logins(MemoryThreads()), repr=False)
    proxy: ProxyUsers | None = None
    provider: Provider | None = field(default=None, repr=False)
    #: Seconds that a sign-in at the provider is valid.
    session: float = LOGIN_SECONDS
    _failures: "OrderedDict[str, _Failures]" = field(default_factory=OrderedDict, repr=False)

    @classmethod
    def listening_at(cls, host: str, password: str = "") -> "Guard":
        """Return the guard for an address to listen on. Beyond this machine it has a password: random if not given."""
        return cls(password if is_loopback(host) else password or secrets.token_urlsafe(12))

    async def check(self, request: Request, *, login_needed: bool = True) -> User:
        """Return the user of a request. Raises Refused unless the request may be answered."""
        if request.method not in SAFE_METHODS and request.headers.get(PAGE_HEADER) != PAGE:
            raise Refused(f"the header {PAGE_HEADER}: {PAGE} is missing", status=403, kind="header")
        if self.proxy is not None:
            return self.proxy.user(request)
        if not login_needed or not (self.password or self.provider):
            return NOBODY
        user = await asyncio.to_thread(self.logins.user, request.cookies.get(COOKIE, ""))
        if self.provider is not None and (user is None or not user.id):
            raise Refused("sign in first", status=401, kind="sign_in")
        if self.provider is None and user != NOBODY:  # the login of an account does not replace the password
            raise Refused("log in first", status=401, kind="login")
        return user or NOBODY

    def log_in(self, password: str, address: str) -> str:
        """Return a new login for the cookie. Raises Refused for a wrong password, or after too many from an address."""
        now, place = self.clock(), _network_of(address)
        known = self._failures.get(place)
        if known is not None and now < known.until:
            wait = math.ceil(known.until - now)
            raise Refused(f"too many wrong passwords; wait {wait} s", status=429, kind="too_many", after=wait)
        if not hmac.compare_digest(password.encode("utf-8", "replace"), self.password.encode()):
            self._note_failure(place, now)
            raise Refused("wrong password", status=401, kind="password")
        self._failures.pop(place, None)
        return self.logins.add(NOBODY, LOGIN_SECONDS)

    def _note_failure(self, place: str, now: float) -> None:
        known = self._failures.pop(place, None)
        if known is None or now - known.last > FORGOTTEN:
            known = _Failures()
        known.count, known.last = known.count + 1, now
        if known.count >= MOST_FAILURES:
            known.until = now + min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(known.count - MOST_FAILURES, 10))
        self._failures[place] = known
        while len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)


def _network_of(address: str) -> str:
    """Return what counts as one address: for IPv6, the network, because one customer has all its addresses."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ip_network((found, NETWORK), strict=False)) if isinstance(found, IPv6Address) else address
