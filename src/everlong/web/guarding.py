"""Who may ask: this machine's own page, or someone who knows the password; never another site through a browser.

Owns hosts, origins, the header that pages set, logins and the headers that every answer carries.
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
READING = ("GET", "HEAD")
OWN_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
MOST_FAILURES, FORGIVEN = 10, 60.0  # wrong passwords, and the seconds in which so many are too many
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
    """Whether only this machine can reach a server that listens there. Example: "0.0.0.0" -> False"""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(slots=True)
class Guard:
    """Without a password the server listens to this machine alone, and answers only to its own names.

    `names` are more names that it may be called by.
    """

    password: str = field(default="", repr=False)
    names: frozenset[str] = frozenset()
    _logins: "dict[str, None]" = field(default_factory=dict, repr=False)
    _failures: "deque[float]" = field(default_factory=deque, repr=False)

    @classmethod
    def listening_at(cls, host: str, password: str = "") -> "Guard":
        """The guard of a server that listens there: beyond this machine it asks for a password, made up if none is."""
        if is_loopback(host):
            return cls(password, frozenset({host.lower()}))
        return cls(password or secrets.token_urlsafe(12))

    def check(self, request: Request, *, login_needed: bool = True) -> None:
        """Raises Refused unless the request may be answered."""
        host = request.headers.get("host", "")
        self._check_host(host)
        if request.method not in READING and request.headers.get(PAGE_HEADER) != PAGE:
            raise Refused(f"the header {PAGE_HEADER}: {PAGE} is missing", status=403, kind="header")
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise _elsewhere()
        if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise _elsewhere()
        if login_needed and self.password and not self.knows(request.cookies.get(COOKIE, "")):
            raise Refused("log in first", status=401, kind="login")

    def check_page(self, request: Request) -> None:
        """The page itself may be opened by a link from anywhere; only the name must be ours."""
        self._check_host(request.headers.get("host", ""))

    def _check_host(self, host: str) -> None:
        if self.password:
            return  # who comes by another name has no cookie there
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if name.lower() not in OWN_NAMES | self.names:
            raise Refused("this server does not answer to that name", status=403, kind="host")

    def knows(self, login: str) -> bool:
        """Whether someone logged in with the password and was given this."""
        return login in self._logins

    def log_in(self, password: str) -> str:
        """What the cookie is to hold. Raises Refused for a wrong password, and for too many of them."""
        now = monotonic()
        while self._failures and now - self._failures[0] > FORGIVEN:
            self._failures.popleft()
        if len(self._failures) >= MOST_FAILURES:
            raise Refused("too many wrong passwords; wait a minute", status=429, kind="too_many", after=int(FORGIVEN))
        if not hmac.compare_digest(password.encode("utf-8", "replace"), self.password.encode()):
            self._failures.append(now)
            raise Refused("that is not the password", status=401, kind="password")
        login = secrets.token_urlsafe(32)
        self._logins[login] = None
        while len(self._logins) > MOST_LOGINS:
            del self._logins[next(iter(self._logins))]
        return login

    def log_out(self, login: str) -> None:
        """It no longer counts."""
        self._logins.pop(login, None)


def _elsewhere() -> Refused:
    return Refused("requests from other sites are not answered", status=403, kind="origin")
