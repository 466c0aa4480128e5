"""The gateway's clients: who sent a request, and how much one client may send.

A key is compared by its hash, in constant time, and is never repeated: not in an error, not in a scope. Limits are
exact: every admission of the last minute is remembered, so no minute, wherever it begins, holds more than the limit.
"""

import hmac
import math
import re
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from types import TracebackType
from typing import Self, TypeAlias, cast, get_args
from urllib.parse import unquote_plus, unquote_to_bytes

from everlong.engine import Mode
from everlong.errors import Refused
from everlong.gateway.config import NO_LIMITS, KeyTable, Limits
from everlong.wire import FORMATS

__all__ = [
    "BYTES_PER_TOKEN",
    "KEY_HEADERS",
    "Admission",
    "Client",
    "Clients",
    "Limiter",
    "hashed",
    "is_signed",
    "new_key",
    "request_mode",
    "without_key",
]

HeaderList: TypeAlias = Sequence[tuple[bytes, bytes]]

MODE_HEADER = b"x-everlong-mode"
ANONYMOUS = "anonymous"
SCOPE_DIGITS = 24
KEY_LENGTH = 40
#: Where clients put their key: the header of each format, and Azure's.
KEY_HEADERS = frozenset(each.api.key_header.encode() for each in FORMATS.values()) | {b"api-key"}
#: The beginning of a request's signature as AWS wants it: the scheme, and the name of the key that signed.
SIGNATURE = re.compile(rb"(AWS4-[A-Z0-9-]+)\s+(?:[A-Za-z]+=[^,\s]*,\s*)*Credential=([A-Za-z0-9_-]+)/[^,\s]+,")
#: Where they put it in a query, if their format lets them.
KEY_QUERIES = frozenset(each.api.key_query for each in FORMATS.values()) - {""}
#: What a key is made of, with a scheme in front at most; a comma means that two headers were joined into one.
KEY = re.compile(rb"(?:[A-Za-z0-9-]+ )?[\x21-\x2b\x2d-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The owner of a key. State is kept under `scope`, which is made of the key and does not reveal it.

    `key` is the key that the client sent, for upstreams that want the client's own. `mode` and `recall` are None if
    the gateway's setting applies.
    """

    scope: str
    name: str = ""
    key: str = field(default="", repr=False)
    mode: str | None = None
    recall: bool | None = None
    limits: Limits = NO_LIMITS


class Clients:
    """Identifies clients. Without `keys` everyone is served, and clients are distinguished by the key they send.

    With `pass_through` a client keeps the key it sent, for upstreams that want it. A key of the gateway's own is
    never passed on.
    """

    def __init__(self, keys: Sequence[KeyTable], pass_through: bool = True) -> None:
        self._keys = [(bytes.fromhex(key.hash), key) for key in keys]
        self._pass_through = pass_through and not keys

    def identify(self, headers: HeaderList, query: bytes = b"") -> Client:
        """Return the client that sent a key in these headers or its query. Raises Refused: 401, or 400 for two keys."""
        key = _key_in(headers, query)
        if self._keys:
            return self._known(key)
        if not key:
            return Client(scope=ANONYMOUS)
        return Client(scope=_scope(key), key=key.decode("ascii") if self._pass_through else "")

    def _known(self, key: bytes) -> Client:
        if not key:
            raise Refused(
                "this gateway needs a key: send it as `authorization: Bearer KEY` or `x-api-key: KEY`",
                status=401,
                kind="missing_key",
            )
        digest = sha256(key).digest()
        found = None
        for known, table in self._keys:  # all of them, so that the time reveals nothing
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
    """Return what the configuration keeps of a key: its SHA-256, in hex."""
    return sha256(key.encode()).hexdigest()


def new_key() -> str:
    """Return a new key for a client: "el-" and 40 random characters."""
    return "el-" + secrets.token_urlsafe(KEY_LENGTH)[:KEY_LENGTH]


def request_mode(headers: HeaderList, client: Client, default: Mode) -> Mode:
    """Return the mode of a request: its `x-everlong-mode`, else the client's mode, else the gateway's."""
    values = [value for name, value in headers if name.lower() == MODE_HEADER]
    if not values:
        return cast(Mode, client.mode or default)
    modes = {mode.encode(): mode for mode in get_args(Mode)}
    mode = modes.get(values[0].strip().lower()) if len(values) == 1 else None
    if mode is None:
        raise Refused(f"x-everlong-mode is one of {', '.join(get_args(Mode))}", status=400, kind="bad_mode")
    return cast(Mode, mode)


def _scope(key: bytes) -> str:
    """The name that state is kept under: made of the key, but not the hash that the configuration keeps."""
    return sha256(b"everlong scope\0" + key).hexdigest()[:SCOPE_DIGITS]


def without_key(query: str) -> str:
    """Return a query without the key that it may hold; the rest stays as it came.

    Example: "alt=sse&key=k" -> "alt=sse"
    """
    return "&".join(part for part in query.split("&") if not _is_key(part)) if "=" in query else query


def _is_key(part: str) -> bool:
    return unquote_plus(part.partition("=")[0]).strip().lower() in KEY_QUERIES


def _keys_in_query(query: bytes) -> set[bytes]:
    parts = query.decode("latin-1").split("&") if query else []
    return {unquote_to_bytes(part.partition("=")[2].replace("+", "%20")).strip() for part in parts if _is_key(part)}


def _key_in(headers: HeaderList, query: bytes) -> bytes:
    """The key that the headers or the query carry; empty if there is none."""
    found = [(name.lower(), value.strip()) for name, value in headers if name.lower() in KEY_HEADERS]
    if len({name for name, _ in found}) < len(found):
        raise Refused(
            "the key is sent twice, in several headers of one name: send it once", status=400, kind="two_keys"
        )
    sent = ({_without_scheme(value) for _, value in found} | _keys_in_query(query)) - {b""}
    if len(sent) > 1:
        raise Refused("this request carries different keys: send one", status=400, kind="two_keys")
    key = next(iter(sent), b"")
    if key and not KEY.fullmatch(key):
        raise _no_such_key()
    return key


def is_signed(headers: HeaderList) -> bool:
    """Return whether the request carries a signature of AWS, which covers its body."""
    return any(name.lower() == b"authorization" and SIGNATURE.match(value.strip()) for name, value in headers)


def _without_scheme(value: bytes) -> bytes:
    """The key in a header's value. With another scheme it stays whole: it identifies a client but is no key of ours.

    Of a signature only the name of its key stays, which is the same in every request.
    Example: b"Bearer el-1" -> b"el-1"; b"el-1" -> b"el-1"; b"Basic dTpw" -> b"Basic dTpw"
    """
    signed = SIGNATURE.match(value)
    if signed:
        return signed[1] + b" " + signed[2]
    scheme, _, key = value.partition(b" ")
    return key.strip() if scheme.lower() == b"bearer" else value


def _no_such_key() -> Refused:
    return Refused("this key is unknown to the gateway", status=401, kind="invalid_key")


# --- limits ----------------------------------------------------------------------------------------

MINUTE = 60.0
BYTES_PER_TOKEN = 4  # for limits alone


@dataclass(slots=True)
class _Account:
    """What one client sent in the last minute, and what it has under way."""

    #: When requests were let in, and their tokens; the oldest first.
    admitted: deque[tuple[float, int]] = field(default_factory=deque)
    tokens: int = 0
    under_way: int = 0
    touched: float = 0.0

    def forget_before(self, then: float) -> None:
        while self.admitted and self.admitted[0][0] <= then:
            self.tokens -= self.admitted.popleft()[1]


class Limiter:
    """Counts what all clients send. `clock` gives seconds and never goes back, as time.monotonic does.

    Nothing waits here. A client without limits is not counted, and one that was idle for a minute is forgotten.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._accounts: OrderedDict[str, _Account] = OrderedDict()

    def __len__(self) -> int:
        """How many scopes are remembered."""
        return len(self._accounts)

    def admit(self, client: Client, tokens_estimate: int = 0) -> "Admission":
        """Return the admission of a request, to be entered before it is served and left when it is over.

        with limiter.admit(client, 1_200): …  # raises Refused (429) on entering
        """
        return Admission(self, client, max(0, tokens_estimate))

    def _enter(self, client: Client, tokens: int) -> None:
        limits = client.limits
        if limits.requests_per_minute is limits.tokens_per_minute is limits.at_once is None:
            return
        now = self._clock()
        self._forget_the_idle(now)
        account = self._accounts.setdefault(client.scope, _Account())
        self._accounts.move_to_end(client.scope)
        account.touched = now
        account.forget_before(now - MINUTE)
        _check(account, limits, tokens, now)
        account.under_way += 1
        account.admitted.append((now, tokens))
        account.tokens += tokens

    def _leave(self, client: Client) -> None:
        account = self._accounts.get(client.scope)
        if account and account.under_way:
            account.under_way -= 1

    def _forget_the_idle(self, now: float) -> None:
        """Drop accounts that were idle for a minute; a busy one stays."""
        while self._accounts:
            scope, account = next(iter(self._accounts.items()))
            if account.touched > now - MINUTE:
                return
            if account.under_way:
                account.touched = now
                self._accounts.move_to_end(scope)
            else:
                del self._accounts[scope]


class Admission:
    """One request, admitted once and released once. Leaving twice, or without having entered, does nothing."""

    def __init__(self, limiter: Limiter, client: Client, tokens: int) -> None:
        self._limiter = limiter
        self._client = client
        self._tokens = tokens
        self._inside = False

    def enter(self) -> None:
        """Admit the request. Raises Refused (429, "too_many_requests") with the seconds to wait."""
        if not self._inside:
            self._limiter._enter(self._client, self._tokens)
            self._inside = True

    def leave(self) -> None:
        """Free its place."""
        if self._inside:
            self._inside = False
            self._limiter._leave(self._client)

    def __enter__(self) -> Self:
        self.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()


def _check(account: _Account, limits: Limits, tokens: int, now: float) -> None:
    requests, most, at_once = limits.requests_per_minute, limits.tokens_per_minute, limits.at_once
    if at_once is not None and account.under_way >= at_once:
        raise _too_many(f"{at_once} requests are under way already", 1.0)
    if requests is not None and len(account.admitted) >= requests:
        oldest = account.admitted[len(account.admitted) - requests][0]
        raise _too_many(f"{requests} requests in a minute are the limit", oldest + MINUTE - now)
    if most is None:
        return
    if tokens > most:
        raise _too_many(f"{most} tokens in a minute are the limit, and this request alone has about {tokens}", None)
    if account.tokens + tokens > most:
        raise _too_many(f"{most} tokens in a minute are the limit", _free_at(account, most - tokens) + MINUTE - now)


def _free_at(account: _Account, room: int) -> float:
    """The time of the admission after whose end at most `room` tokens are left."""
    left = account.tokens
    for then, tokens in account.admitted:
        left -= tokens
        if left <= room:
            return then
    return account.admitted[-1][0]


def _too_many(message: str, wait: float | None) -> Refused:
    after = None if wait is None else max(1, math.ceil(wait))
    return Refused(message, status=429, kind="too_many_requests", after=after)
