"""Decide who may use the app: this machine's own page, or someone with the password; never another site.

Owns the checks of host, origin and page header, the logins, and the security headers of every answer.
"""

import hmac
import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from time import monotonic
from urllib.parse import urlsplit

from starlette.requests import Request

from everlong.errors import Refused

__all__ = ["COOKIE", "HEADERS", "Guard", "is_loopback"]

COOKIE = "everlong"
PAGE_HEADER, PAGE = "x-everlong", "page"
SAFE_METHODS = ("GET", "HEAD")
OWN_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
MOST_FAILURES, FAILURE_SECONDS = 10, 60.0  # wrong passwords allowed in so many seconds
MOST_LOGINS = 1_000

HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


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
    """The access rules of one server. Without a password it answers only to its own names; `names` are more of them."""

    password: str = field(default="", repr=False)
    names: frozenset[str] = frozenset()
    _logins: "dict[str, None]" = field(default_factory=dict, repr=False)
    _failures: "deque[float]" = field(default_factory=deque, repr=False)

    @classmethod
    def listening_at(cls, host: str, password: str = "") -> "Guard":
        """Return the guard for an address to listen on. Beyond this machine it has a password: random if not given."""
        if is_loopback(host):
            return cls(password, frozenset({host.lower()}))
        return cls(password or secrets.token_urlsafe(12))

    def check(self, request: Request, *, login_needed: bool = True) -> None:
        """Raise Refused unless the request may be answered."""
        host = request.headers.get("host", "")
        self._check_host(host)
        if request.method not in SAFE_METHODS and request.headers.get(PAGE_HEADER) != PAGE:
            raise Refused(f"the header {PAGE_HEADER}: {PAGE} is missing", status=403, kind="header")
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise _other_site()
        if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise _other_site()
        if login_needed and self.password and not self.knows(request.cookies.get(COOKIE, "")):
            raise Refused("log in first", status=401, kind="login")

    def check_page(self, request: Request) -> None:
        """Raise Refused unless the host name is ours. A link from anywhere may open the page."""
        self._check_host(request.headers.get("host", ""))

    def _check_host(self, host: str) -> None:
        if self.password:
            return  # under another name the browser has no cookie
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if name.lower() not in OWN_NAMES | self.names:
            raise Refused("this server does not answer to that name", status=403, kind="host")

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


def _other_site() -> Refused:
    return Refused("requests from other sites are not answered", status=403, kind="origin")
