"""Decide who may use the app: its own page on this machine, or someone with the password.

Owns the check of the page's header, and the logins. Requests of other sites do not come so far: the boundary around the
server refuses them.
"""

import hmac
import math
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic

from starlette.requests import Request

from everlong.errors import Refused

__all__ = ["COOKIE", "Guard", "is_loopback"]

COOKIE = "everlong"
PAGE_HEADER, PAGE = "x-everlong", "page"
SAFE_METHODS = ("GET", "HEAD")
MOST_FAILURES = 10  # wrong passwords of one address before it has to wait
FIRST_WAIT, LONGEST_WAIT = 60.0, 3_600.0  # seconds; each further wrong password doubles the wait
FORGOTTEN = 24 * 3_600.0  # seconds without a wrong password
MOST_ADDRESSES = 1_000  # that are remembered; those that failed last
NETWORK = 64  # bits of an IPv6 address that one customer has
MOST_LOGINS = 1_000


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


@dataclass(slots=True)
class Guard:
    """The access rules of one app. Without a password nobody has to log in."""

    password: str = field(default="", repr=False)
    _logins: "dict[str, None]" = field(default_factory=dict, repr=False)
    clock: Callable[[], float] = field(default=monotonic, repr=False)
    _failures: "OrderedDict[str, _Failures]" = field(default_factory=OrderedDict, repr=False)

    @classmethod
    def listening_at(cls, host: str, password: str = "") -> "Guard":
        """Return the guard for an address to listen on. Beyond this machine it has a password: random if not given."""
        return cls(password if is_loopback(host) else password or secrets.token_urlsafe(12))

    def check(self, request: Request, *, login_needed: bool = True) -> None:
        """Raise Refused unless the request may be answered."""
        if request.method not in SAFE_METHODS and request.headers.get(PAGE_HEADER) != PAGE:
            raise Refused(f"the header {PAGE_HEADER}: {PAGE} is missing", status=403, kind="header")
        if login_needed and self.password and not self.knows(request.cookies.get(COOKIE, "")):
            raise Refused("log in first", status=401, kind="login")

    def knows(self, login: str) -> bool:
        """Return whether this login was given for the password and still counts."""
        return login in self._logins

    def log_in(self, password: str, address: str) -> str:
        """Return a new login for the cookie. Raises Refused for a wrong password, and after too many of an address."""
        now, place = self.clock(), _network_of(address)
        known = self._failures.get(place)
        if known is not None and now < known.until:
            wait = math.ceil(known.until - now)
            raise Refused(f"too many wrong passwords; wait {wait} s", status=429, kind="too_many", after=wait)
        if not hmac.compare_digest(password.encode("utf-8", "replace"), self.password.encode()):
            self._note_failure(place, now)
            raise Refused("that is not the password", status=401, kind="password")
        self._failures.pop(place, None)
        login = secrets.token_urlsafe(32)
        self._logins[login] = None
        while len(self._logins) > MOST_LOGINS:
            del self._logins[next(iter(self._logins))]
        return login

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

    def log_out(self, login: str) -> None:
        """End a login."""
        self._logins.pop(login, None)


def _network_of(address: str) -> str:
    """Return what counts as one address: of IPv6 the network, whose addresses are all one customer's."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ip_network((found, NETWORK), strict=False)) if isinstance(found, IPv6Address) else address
