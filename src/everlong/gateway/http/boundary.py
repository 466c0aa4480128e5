"""The boundary around our servers: who may connect, and what a browser may do with the answers.

A browser sends what any site tells it to send, and shows what any server answers. So a request is refused, before its
body is read, if it was sent to a host name that is not ours or by a page that is not ours. And no answer runs as code,
is framed, or can be read by another site: an answer may contain what an upstream wrote, and it comes from the app's own
address.

Programs send neither `Origin` nor `Sec-Fetch-Site`, so only the check of the host name affects them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everlong.core import Json
from everlong.gateway.config import GatewayConfig, is_loopback
from everlong.gateway.http.endpoints import format_of
from everlong.wire import json_bytes

__all__ = ["HEADERS", "POLICY", "Boundary"]

#: The policy of every answer except the app's page: whatever it is, a browser shows it without any rights, if at all.
POLICY = "sandbox; default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS: Mapping[str, str] = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
OWN = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
#: Headers that only we may set, because they give a browser more rights or make it load, report or go elsewhere.
NEVER = frozenset(name for name, _ in OWN) | {
    b"clear-site-data",
    b"content-security-policy",
    b"content-security-policy-report-only",
    b"cross-origin-embedder-policy",
    b"link",
    b"nel",
    b"refresh",
    b"report-to",
    b"reporting-endpoints",
    b"service-worker-allowed",
    b"sourcemap",
    b"x-sourcemap",
}

PAGE = "/"  # the only path that a link on another site may open
#: The app's own files, such as /assets/index-1a2b.js and /sw.js. No API path looks like them.
FILES = re.compile(r"/assets/.+|/[A-Za-z0-9_-]+\.[a-z0-9]+")
#: Destinations that a browser is about to run, or to show as a page. A policy can only restrict workers and frames to
#: this server, not to a file, so the server itself checks the file.
SCRIPTS = ("script", "style", "worker", "sharedworker", "serviceworker", "audioworklet", "paintworklet", "xslt")
FRAMES = ("iframe", "frame", "fencedframe", "embed", "object")
CODE = frozenset(SCRIPTS + FRAMES)
API = "/everlong/api/"  # the app's own API: an allowed site may use the gateway, but not the app
#: Paths for no other site: the app's, and an operator's.
NOT_FOR_SITES = (API, "/everlong/keys", "/everlong/spend")
HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[^:\[\]\s/@\\]+))(?::[0-9]{1,5})?")
ANY = "*"
METHODS = "GET, POST, PUT, PATCH, DELETE"
SECONDS_ALLOWED = "600"  # for which a browser may remember what a site may send
NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4000}")
OK, NO_CONTENT, FORBIDDEN = 200, 204, 403
NOT_ALLOWED = 1008  # a WebSocket close code
LONGEST_NAME = 100  # characters of a name that an error repeats

HeaderTable: TypeAlias = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class _Refusal:
    kind: str
    message: str


OTHER_SITE = _Refusal("origin", "requests from other sites are refused; add your site to `origins` to allow it")
NO_CODE = _Refusal("code", "the app's page may only load its own scripts, workers and frames")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """An ASGI application inside its boundary.

    It accepts the host names of this machine and those in `hosts`. With `beyond` it is reachable from other machines
    and also accepts any IP address, because no site can point its own name at an address and use it as the host.
    `origins` are sites that may use the gateway from a browser.

    An endpoint with an attribute `policy` is one of our pages: its answers get that policy instead of the usual one.
    """

    app: ASGIApp
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    beyond: bool = False

    @classmethod
    def around(cls, app: ASGIApp, config: GatewayConfig) -> "Boundary":
        """Return the boundary that a configuration describes.

        If other machines can connect and keys are needed, any host name is accepted, unless names are configured: a
        site that points its own name at our address has no key of ours, and the app asks for its password under every
        name.
        """
        beyond = not is_loopback(config.host)
        names = {*config.hosts, config.host.lower()}
        if beyond and config.closed and not config.hosts:
            names.add(ANY)
        return cls(app=app, hosts=frozenset(names), origins=frozenset(config.origins), beyond=beyond)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":  # none of our servers uses WebSockets
            await send({"type": "websocket.close", "code": NOT_ALLOWED})
            return
        headers = _headers_of(scope)
        site = self._allowed_site(scope, headers)
        refusal = self._refusal(scope, headers, site)
        allowed = "" if refusal else site
        asks_first = allowed and scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        guarded = _guarded(scope, send, self._rights(allowed, headers if asks_first else {}))
        if refusal is not None:
            await _refuse(scope, guarded, refusal)
        elif asks_first:
            await _answer(guarded, NO_CONTENT)
        else:
            await self.app(scope, receive, guarded)

    # --- who may connect ---------------------------------------------------------------------------

    def _refusal(self, scope: Scope, headers: HeaderTable, site: str) -> _Refusal | None:
        """Return why a request is refused; None if it is not."""
        hosts = headers.get("host", [])
        if hosts and not (len(hosts) == 1 and self._is_ours(hosts[0])):
            shown = hosts[0][:LONGEST_NAME]
            return _Refusal(
                "host", f"this server does not accept the host name {shown!r}; add it to `hosts` to allow it"
            )
        if _is_code(headers) and not FILES.fullmatch(scope["path"]):
            return NO_CODE
        if site or _is_visit(scope, headers):
            return None
        own = all(_is_own(origin, hosts) for origin in headers.get("origin", []))
        near = all(value in ("same-origin", "none") for value in headers.get("sec-fetch-site", []))
        return None if own and near else OTHER_SITE

    def _is_ours(self, host: str) -> bool:
        """Whether a name, with its port, is one of this server's. Example: "localhost:8333" -> True"""
        found = HOST.fullmatch(host.lower())
        if found is None:
            return False
        name = found["six"] or found["name"]
        if is_loopback(name) or name in self.hosts or ANY in self.hosts:
            return True
        return self.beyond and _is_address(name)

    def _allowed_site(self, scope: Scope, headers: HeaderTable) -> str:
        """Return the configured site that sent a request to the gateway, "" if none did."""
        match headers.get("origin", []):
            case [origin] if origin.lower() in self.origins and not scope["path"].startswith(NOT_FOR_SITES):
                return origin
            case _:
                return ""

    # --- what may be done with an answer -----------------------------------------------------------

    def _rights(self, site: str, asked: HeaderTable) -> list[tuple[bytes, bytes]]:
        """Return the headers that let a site read an answer and, if its browser `asked`, what it may send."""
        rights = [("vary", "origin")] if self.origins else []
        if site:
            rights += [("access-control-allow-origin", site), ("access-control-expose-headers", "*")]
        if asked:
            rights += [("access-control-allow-methods", METHODS), ("access-control-max-age", SECONDS_ALLOWED)]
            wanted = ", ".join(asked.get("access-control-request-headers", []))
            rights += [("access-control-allow-headers", wanted)] if NAMES.fullmatch(wanted) else []
        return [(name.encode(), value.encode("latin-1")) for name, value in rights]


def _headers_of(scope: Scope) -> HeaderTable:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip())
    return found


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_own(origin: str, hosts: list[str]) -> bool:
    """Whether a page of this server sent the request. The scheme is unknown here: a proxy may handle TLS for us."""
    scheme, _, address = origin.lower().partition("://")
    return scheme in ("http", "https") and [address] == [host.lower() for host in hosts]


def _is_code(headers: HeaderTable) -> bool:
    """Return whether a browser wants to run the answer as code, such as the script of a service worker."""
    return "service-worker" in headers or not CODE.isdisjoint(headers.get("sec-fetch-dest", []))


def _is_visit(scope: Scope, headers: HeaderTable) -> bool:
    """Return whether a person follows a link to the page, from any site. Frames and forms do not count."""
    return (
        scope["method"] in ("GET", "HEAD")
        and scope["path"] == PAGE
        and "origin" not in headers
        and headers.get("sec-fetch-mode") == ["navigate"]
        and headers.get("sec-fetch-dest") == ["document"]
    )


def _guarded(scope: Scope, send: Send, rights: list[tuple[bytes, bytes]]) -> Send:
    """Return a `send` that sets our headers on the answer and replaces conflicting ones."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message.get("headers", ()) if not _is_ours_to_say(name.lower())]
            # By now the endpoint is known: it is answering.
            policy = getattr(scope.get("endpoint"), "policy", POLICY) if message["status"] == OK else POLICY
            message = {**message, "headers": [*kept, *OWN, (b"content-security-policy", policy.encode()), *rights]}
        await send(message)

    return guarded


def _is_ours_to_say(name: bytes) -> bool:
    return name in NEVER or name.startswith(b"access-control-")


async def _refuse(scope: Scope, send: Send, refusal: _Refusal) -> None:
    """Refuse a request, in the format of the app's errors or of the client's."""
    body: Json = {"error": {"kind": refusal.kind, "message": refusal.message}}
    if not scope["path"].startswith(API):
        body = format_of(scope["headers"]).server.errors.body(FORBIDDEN, refusal.kind, refusal.message)
    await _answer(send, FORBIDDEN, json_bytes(body))


async def _answer(send: Send, status: int, body: bytes = b"") -> None:
    kind = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))] if body else []
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": body})
