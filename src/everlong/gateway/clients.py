"""Who asks: the client behind a request's headers.

A key is compared by its hash, in constant time, and is never repeated: not in an error, not in a scope.
"""

import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TypeAlias, cast, get_args

from everlong.engine import Mode
from everlong.errors import Refused
from everlong.gateway.config import NO_LIMITS, KeyTable, Limits

__all__ = ["Client", "Clients", "hashed", "new_key", "request_mode"]

HeaderList: TypeAlias = Sequence[tuple[bytes, bytes]]

MODE_HEADER = b"x-everlong-mode"
ANONYMOUS = "anonymous"
SCOPE_DIGITS = 24
KEY_LENGTH = 40
#: Where clients put their key.
KEY_HEADERS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
#: What a key is made of, with a scheme in front at most; a comma means that two headers were joined into one.
KEY = re.compile(rb"(?:[A-Za-z0-9-]+ )?[\x21-\x2b\x2d-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Whoever a key belongs to. State is kept under `scope`, which is made of the key and does not tell it.

    `key` is what the client sent, for upstreams that want the client's own. `mode` and `recall` are None where the
    gateway's setting holds.
    """

    scope: str
    name: str = ""
    key: str = field(default="", repr=False)
    mode: str | None = None
    recall: bool | None = None
    limits: Limits = NO_LIMITS


class Clients:
    """Those who may ask. Without `keys` that is everyone, told apart by the key they send.

    With `pass_through` a client keeps the key it sent, for upstreams that want it. A key of the gateway's own is
    never passed on.
    """

    def __init__(self, keys: Sequence[KeyTable], pass_through: bool = True) -> None:
        self._keys = [(bytes.fromhex(key.hash), key) for key in keys]
        self._pass_through = pass_through and not keys

    def identify(self, headers: HeaderList) -> Client:
        """The client that sent these headers. Raises Refused: 401, or 400 where they name two keys."""
        key = _key_in(headers)
        if self._keys:
            return self._known(key)
        if not key:
            return Client(scope=ANONYMOUS)
        return Client(scope=_scope(key), key=key.decode("ascii") if self._pass_through else "")

    def _known(self, key: bytes) -> Client:
        if not key:
            raise Refused(
                "this gateway asks for a key: send it as `authorization: Bearer KEY` or `x-api-key: KEY`",
                status=401,
                kind="missing_key",
            )
        digest = sha256(key).digest()
        found = None
        for known, table in self._keys:  # all of them, so that the time tells nothing
            if hmac.compare_digest(known, digest):
                found = table
        if found is None:
            raise _no_such_key()
        return Client(
            scope=_scope(key),
            name=found.name,
            mode=found.mode,
            recall=found.recall,
            limits=found.limits,
        )


def hashed(key: str) -> str:
    """What the configuration keeps of a key: its SHA-256, in hex."""
    return sha256(key.encode()).hexdigest()


def new_key() -> str:
    """A key for a client: "el-" and 40 random characters."""
    return "el-" + secrets.token_urlsafe(KEY_LENGTH)[:KEY_LENGTH]


def request_mode(headers: HeaderList, client: Client, default: Mode) -> Mode:
    """What is done with a request: what its `x-everlong-mode` says, else the client's mode, else the gateway's."""
    said = [value for name, value in headers if name.lower() == MODE_HEADER]
    if not said:
        return cast(Mode, client.mode or default)
    modes = {mode.encode(): mode for mode in get_args(Mode)}
    mode = modes.get(said[0].strip().lower()) if len(said) == 1 else None
    if mode is None:
        raise Refused(f"x-everlong-mode is one of {', '.join(get_args(Mode))}", status=400, kind="bad_mode")
    return cast(Mode, mode)


def _scope(key: bytes) -> str:
    """What state is kept under: made of the key, and another value than the hash that the configuration keeps."""
    return sha256(b"everlong scope\0" + key).hexdigest()[:SCOPE_DIGITS]


def _key_in(headers: HeaderList) -> bytes:
    """The key that the headers carry; empty if there is none."""
    found = [(name.lower(), value.strip()) for name, value in headers if name.lower() in KEY_HEADERS]
    if len({name for name, _ in found}) < len(found):
        raise Refused("a key is sent once, not in several headers of one name", status=400, kind="two_keys")
    sent = {_without_scheme(value) for _, value in found} - {b""}
    if len(sent) > 1:
        raise Refused("the headers of this request carry different keys: send one", status=400, kind="two_keys")
    key = next(iter(sent), b"")
    if key and not KEY.fullmatch(key):
        raise _no_such_key()
    return key


def _without_scheme(value: bytes) -> bytes:
    """The key in a header's value. What has another scheme stays whole: it tells clients apart, and is no key of ours.

    Example: b"Bearer el-1" -> b"el-1"; b"el-1" -> b"el-1"; b"Basic dTpw" -> b"Basic dTpw"
    """
    scheme, _, key = value.partition(b" ")
    return key.strip() if scheme.lower() == b"bearer" else value


def _no_such_key() -> Refused:
    return Refused("this key is not known here", status=401, kind="invalid_key")
