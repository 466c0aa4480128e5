"""The gateway's clients: who sent a request. The package `keys` has the keys and what each may do.

A key is recognised by its hash and is never repeated, neither in an error nor in a scope.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TypeAlias, cast, get_args
from urllib.parse import unquote_plus, unquote_to_bytes

from everlong.engine import Mode
from everlong.errors import Refused
from everlong.gateway.config import NO_LIMITS, Limits
from everlong.gateway.keys.records import BEGINNING, KeyRing, scope_of
from everlong.wire import FORMATS

__all__ = [
    "KEY_HEADERS",
    "Client",
    "Clients",
    "is_signed",
    "request_mode",
    "without_key",
]

HeaderList: TypeAlias = Sequence[tuple[bytes, bytes]]

MODE_HEADER = b"x-everlong-mode"
ANONYMOUS = "anonymous"
OURS = BEGINNING.encode()
#: Where clients put their key: the header of each format, and Azure's.
KEY_HEADERS = frozenset(each.api.key_header.encode() for each in FORMATS.values()) | {b"api-key"}
#: The beginning of an AWS signature: the scheme, and the name of the key that signed the request.
SIGNATURE = re.compile(rb"(AWS4-[A-Z0-9-]+)\s+(?:[A-Za-z]+=[^,\s]*,\s*)*Credential=([A-Za-z0-9_-]+)/[^,\s]+,")
#: Query parameters for the key, in formats that allow that.
KEY_QUERIES = frozenset(each.api.key_query for each in FORMATS.values()) - {""}
#: The characters of a key, optionally after a scheme; a comma would mean that two headers were joined into one.
KEY = re.compile(rb"(?:[A-Za-z0-9-]+ )?[\x21-\x2b\x2d-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The owner of a key. Its state is stored under `scope`, which is derived from the key and does not reveal it.

    `key` is the key that the client sent, for upstreams that need the client's own. `mode` and `recall` are None if the
    gateway's setting applies.
    """

    scope: str
    name: str = ""
    key: str = field(default="", repr=False)
    mode: str | None = None
    recall: bool | None = None
    #: Whether it may manage keys.
    operator: bool = False
    limits: Limits = NO_LIMITS

    @property
    def account(self) -> str:
        """The name under which limits are counted: the key's name, which survives a replacement; else its scope."""
        return self.name or self.scope


class Clients:
    """Identifies clients. Without keys everyone is served, and clients are distinguished by the key they send.

    `closed` means that a key is needed even if none is known: a gateway that other machines can reach must not serve
    everyone only because its keys are gone. While there are no keys, the key that a client sends is forwarded to
    upstreams that need one. The gateway's own keys are never forwarded.
    """

    def __init__(self, ring: KeyRing, *, closed: bool = False) -> None:
        self._ring = ring
        self._closed = closed

    @property
    def needs_key(self) -> bool:
        """Whether a request without one of the gateway's keys is refused."""
        return self._closed or self._ring.any

    def identify(self, headers: HeaderList, query: bytes = b"") -> Client:
        """Return the client that sent a key in these headers or this query.

        Raises Refused: 401, or 400 for two keys.
        """
        key = _key_in(headers, query)
        if self.needs_key:
            return self._known(key)
        if not key:
            return Client(scope=ANONYMOUS)
        # The gateway's own keys go to no upstream, not even in the seconds before a new key is known here.
        return Client(scope=scope_of(key), key="" if key.startswith(OURS) else key.decode("ascii"))

    def _known(self, key: bytes) -> Client:
        if not key:
            raise Refused(
                "this gateway needs a key: send it as `authorization: Bearer KEY` or `x-api-key: KEY`",
                status=401,
                kind="missing_key",
            )
        digest = sha256(key).digest()
        found = self._ring.find(digest)
        if found is None:
            if self._ring.is_revoked(digest):
                raise Refused("this key was revoked", status=401, kind="invalid_key")
            raise _no_such_key()
        scope = scope_of(key)
        self._ring.names[scope] = found.name
        return Client(
            scope=scope,
            name=found.name,
            mode=found.mode,
            recall=found.recall,
            operator=found.operator,
            limits=found.limits,
        )


def request_mode(headers: HeaderList, client: Client, default: Mode) -> Mode:
    """Return the mode of a request: its `x-everlong-mode`, else the client's mode, else the gateway's."""
    values = [value for name, value in headers if name.lower() == MODE_HEADER]
    if not values:
        return cast(Mode, client.mode or default)
    modes = {mode.encode(): mode for mode in get_args(Mode)}
    mode = modes.get(values[0].strip().lower()) if len(values) == 1 else None
    if mode is None:
        raise Refused(f"x-everlong-mode must be one of {', '.join(get_args(Mode))}", status=400, kind="bad_mode")
    return cast(Mode, mode)


def without_key(query: str) -> str:
    """Return a query without a key in it; the rest is unchanged.

    Example: "alt=sse&key=k" -> "alt=sse"
    """
    return "&".join(part for part in query.split("&") if not _is_key(part)) if "=" in query else query


def _is_key(part: str) -> bool:
    return unquote_plus(part.partition("=")[0]).strip().lower() in KEY_QUERIES


def _keys_in_query(query: bytes) -> set[bytes]:
    parts = query.decode("latin-1").split("&") if query else []
    return {unquote_to_bytes(part.partition("=")[2].replace("+", "%20")).strip() for part in parts if _is_key(part)}


def _key_in(headers: HeaderList, query: bytes) -> bytes:
    """Return the key in the headers or the query; empty if there is none."""
    found = [(name.lower(), value.strip()) for name, value in headers if name.lower() in KEY_HEADERS]
    if len({name for name, _ in found}) < len(found):
        raise Refused(
            "the request has several headers with the same name for the key: send one", status=400, kind="two_keys"
        )
    sent = ({_without_scheme(value) for _, value in found} | _keys_in_query(query)) - {b""}
    if len(sent) > 1:
        raise Refused("the request has several different keys: send one", status=400, kind="two_keys")
    key = next(iter(sent), b"")
    if key and not KEY.fullmatch(key):
        raise _no_such_key()
    return key


def is_signed(headers: HeaderList) -> bool:
    """Return whether the request has an AWS signature, which covers its body."""
    return any(name.lower() == b"authorization" and SIGNATURE.match(value.strip()) for name, value in headers)


def _without_scheme(value: bytes) -> bytes:
    """The key in a header's value.

    A value with another scheme stays whole: it identifies a client, but is not one of our keys. Of a signature only the
    name of its key stays, which is the same in every request. Example: b"Bearer el-1" -> b"el-1"; b"el-1" -> b"el-1";
    b"Basic dTpw" -> b"Basic dTpw"
    """
    signed = SIGNATURE.match(value)
    if signed:
        return signed[1] + b" " + signed[2]
    scheme, _, key = value.partition(b" ")
    return key.strip() if scheme.lower() == b"bearer" else value


def _no_such_key() -> Refused:
    return Refused("the gateway does not know this key", status=401, kind="invalid_key")
