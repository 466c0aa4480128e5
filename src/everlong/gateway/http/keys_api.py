"""Keys and spending over HTTP, for operators: on this machine, or with an operator's key."""

import asyncio
from collections.abc import Callable, Iterator
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from everlong.core import JsonObject
from everlong.errors import EverlongError, InputError, Refused
from everlong.gateway.config import GatewayConfig, is_loopback
from everlong.gateway.exchange.response import status_of
from everlong.gateway.http.endpoints import read_body
from everlong.gateway.keys.bookkeeper import Bookkeeper
from everlong.gateway.keys.overview import shown_key, shown_keys, shown_spend
from everlong.gateway.operations.services import Services
from everlong.gateway.request import decoded, encoded
from everlong.gateway.surfaces import DEFAULT_FORMAT
from everlong.wire import json_bytes

__all__ = ["key_routes"]

KEYS, SPEND = "/everlong/keys", "/everlong/spend"
LARGEST = 64 * 1024  # bytes of a request
USUAL_DAYS = "14"
#: Headers that a proxy adds to a forwarded request.
FORWARDED = ("forwarded", "via", "x-real-ip")


def key_routes(services: Services) -> Iterator[Route]:
    """Yield the routes of keys and spending."""
    one = KEYS + "/{name}"
    for method, path, work in (
        ("GET", KEYS, _list),
        ("POST", KEYS, _create),
        ("GET", one, _show),
        ("PATCH", one, _change),
        ("DELETE", one, _revoke),
        ("POST", f"{one}/rotate", _rotate),
        ("GET", SPEND, _spend),
    ):
        yield Route(path, _Operation(services, work), methods=[method])


class _Operation:
    """One operator request, as ASGI. It runs outside the event loop, because the store may be slow."""

    def __init__(self, services: Services, work: "Callable[[Bookkeeper, Request, JsonObject], JsonObject]") -> None:
        self._services = services
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            _check_operator(self._services, request)
            body = await self._read(scope, receive) if request.method in ("POST", "PATCH") else {}
            answer = await asyncio.to_thread(self._work, self._services.keys, request, body)
            status = HTTPStatus.CREATED if self._work is _create else HTTPStatus.OK
            response = _json(status, encoded(answer))
        except EverlongError as error:
            errors = DEFAULT_FORMAT.server.errors
            refused, kind, message = status_of(error, errors)
            response = _json(refused, json_bytes(errors.body(refused, kind, message)))
        await response(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive) -> JsonObject:
        most, seconds = LARGEST, self._services.config.body_timeout
        raw = await read_body(scope, receive, most=most, seconds=seconds)
        body = decoded(raw) if raw.strip() else {}
        if not isinstance(body, dict):
            raise InputError('the body must be a JSON object, such as {"name": "team-a"}')
        return body


def _json(status: int, body: bytes) -> Response:
    return Response(body, status, {"content-type": "application/json", "cache-control": "no-store"})


# --- who is an operator ----------------------------------------------------------------------------


def _check_operator(services: Services, request: Request) -> None:
    """Raise Refused unless the request comes from this machine or has an operator's key."""
    if _is_here(request, services.config):
        return
    client = services.clients.identify(request.scope["headers"])
    if not client.operator:
        raise Refused(
            "keys can be managed on this machine with `everlong keys`, or with an operator's key",
            status=403,
            kind="not_operator",
        )


def _is_here(request: Request, config: GatewayConfig) -> bool:
    """Return whether the request comes from this machine itself, not through a proxy on it."""
    if request.client is None or not is_loopback(request.client.host):
        return False
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    forwarded = any(name in FORWARDED or name.startswith("x-forwarded") for name in request.headers)
    address = ip_address(request.client.host)
    proxied = any(address in ip_network(network) for network in config.trusted_proxies)
    return is_loopback(host) and not forwarded and not proxied


# --- what an operator does -------------------------------------------------------------------------


def _list(keys: Bookkeeper, _: Request, __: JsonObject) -> JsonObject:
    return {"keys": [*shown_keys(keys.records, keys.ledger, keys.ring.tables)]}


def _create(keys: Bookkeeper, _: Request, body: JsonObject) -> JsonObject:
    given = dict(body)
    name = given.pop("name", "")
    if not isinstance(name, str):
        raise InputError("name must be text")
    keys.ring.expect_free(name)
    record, key = keys.records.create(name, given)
    keys.ring.refresh()
    return {"key": key, **shown_key(record.shown(), keys.ledger)}


def _show(keys: Bookkeeper, request: Request, _: JsonObject) -> JsonObject:
    rows = shown_keys(keys.records, keys.ledger, keys.ring.tables)
    found = [row for row in rows if row["name"] == _name(request)]
    if not found:
        raise Refused(f"there is no key {_name(request)!r}", status=404, kind="unknown_key")
    return found[0]


def _change(keys: Bookkeeper, request: Request, body: JsonObject) -> JsonObject:
    keys.ring.expect_free(_name(request))
    record = keys.records.change(_name(request), body)
    keys.ring.refresh()
    return shown_key(record.shown(), keys.ledger)


def _revoke(keys: Bookkeeper, request: Request, _: JsonObject) -> JsonObject:
    keys.ring.expect_free(_name(request))
    record = keys.records.revoke(_name(request))
    keys.ring.refresh()
    return shown_key(record.shown(), keys.ledger)


def _rotate(keys: Bookkeeper, request: Request, _: JsonObject) -> JsonObject:
    keys.ring.expect_free(_name(request))
    record, key = keys.records.rotate(_name(request))
    keys.ring.refresh()
    return {"key": key, **shown_key(record.shown(), keys.ledger)}


def _spend(keys: Bookkeeper, request: Request, _: JsonObject) -> JsonObject:
    days = request.query_params.get("days", USUAL_DAYS)
    if not days.isascii() or not days.isdecimal() or len(days) > 4:
        raise InputError("days must be a number, such as 14")
    return shown_spend(keys.records, keys.ledger, int(days), request.query_params.get("name", ""))


def _name(request: Request) -> str:
    return str(request.path_params["name"])
