"""Decide who may use the app: its own page on this machine, or someone with the password.

Owns the check of the page's header, and the logins. Requests of other sites do not come so far: the boundary around the
server refuses them.
"""

import hmac
import secrets
from collections import deque
from dataclasses import dataclass, field
from ipaddress import ip_address
from time import monotonic

from starlette.requests import Request

from everlong.errors import Refused

__all__ = ["COOKIE", "Guard", "is_loopback"]

COOKIE = "everlong"
PAGE_HEADER, PAGE = "x-everlong", "page"
SAFE_METHODS = ("GET", "HEAD")
MOST_FAILURES, FAILURE_SECONDS = 10, 60.0  # wrong passwords allowed in so many seconds
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
class Guard:
    """The access rules of one app. Without a password nobody has to log in."""

    password: str = field(default="", repr=False)
    _logins: "dict[str, None]" = field(default_factory=dict, repr=False)
    _failures: "deque[float]" = field(default_factory=deque, repr=False)

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

    def log_in(self, password: str) -> str:
        """Return a new login for the cookie. Raises Refused for a wrong password, and after too many of them."""
        now = monotonic()
        while self._failures and now - self._failures[0] > FAILURE_SECONDS:
            self._failures.popleft()
        if len(self._failures) >= MOST_FAILURES:
            raise Refused(
                "too many wrong passwords; wait a minute", status=429, kind="too_many", after=int(FAILURE_SECONDS)
            )
        if not hmac.compare_digest(password.encode("utf-8", "replace"), self.password.encode()):
            self._failures.append(now)
            raise Refused("that is not the password", status=401, kind="password")
        login = secrets.token_urlsafe(32)
        self._logins[login] = None
        while len(self._logins) > MOST_LOGINS:
            del self._logins[next(iter(self._logins))]
        return login

    def log_out(self, login: str) -> None:
        """End a login."""
        self._logins.pop(login, None)
