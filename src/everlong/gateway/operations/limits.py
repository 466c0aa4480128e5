"""How much one client may ask for: requests and tokens in any minute, and requests at once.

Exact: every admission of the last minute is remembered, so no minute, wherever it begins, holds more than the limit.
The clock is given; nothing waits here. Who has no limits leaves no trace, and who was idle for a minute is forgotten.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from everlong.errors import Refused
from everlong.gateway.clients import Client
from everlong.gateway.config import Limits

__all__ = ["BYTES_PER_TOKEN", "Admission", "Limiter"]

MINUTE = 60.0
BYTES_PER_TOKEN = 4  # for limits alone


@dataclass(slots=True)
class _Account:
    """What one scope did in the last minute, and what it has under way."""

    #: When requests were let in, and their tokens; the oldest first.
    admitted: deque[tuple[float, int]] = field(default_factory=deque)
    tokens: int = 0
    under_way: int = 0
    touched: float = 0.0

    def forget_before(self, then: float) -> None:
        while self.admitted and self.admitted[0][0] <= then:
            self.tokens -= self.admitted.popleft()[1]


class Limiter:
    """The accounts of all clients. `clock` tells seconds and never goes back, as time.monotonic does."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._accounts: OrderedDict[str, _Account] = OrderedDict()

    def __len__(self) -> int:
        """How many scopes are remembered."""
        return len(self._accounts)

    def admit(self, client: Client, tokens_estimate: int = 0) -> "Admission":
        """A request of this client, to be entered before it is served and left when it is over.

        with limiter.admit(client, 1_200): …  # raises Refused (429) on entering
        """
        return Admission(self, client, max(0, tokens_estimate))

    def _enter(self, client: Client, tokens: int) -> None:
        limits = client.limits
        if limits == Limits():
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
        """The account that was touched longest ago goes, if nothing of it counts any more; one that is busy waits."""
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
    """One request, let in once and let out once. Leaving twice, or without having entered, does nothing."""

    def __init__(self, limiter: Limiter, client: Client, tokens: int) -> None:
        self._limiter = limiter
        self._client = client
        self._tokens = tokens
        self._inside = False

    def enter(self) -> None:
        """Lets the request in. Raises Refused (429, "too_many_requests") with the seconds to wait."""
        if not self._inside:
            self._limiter._enter(self._client, self._tokens)
            self._inside = True

    def leave(self) -> None:
        """Frees its place."""
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
    """When the admission was made whose end leaves at most `room` tokens."""
    left = account.tokens
    for then, tokens in account.admitted:
        left -= tokens
        if left <= room:
            return then
    return account.admitted[-1][0]


def _too_many(message: str, wait: float | None) -> Refused:
    after = None if wait is None else max(1, math.ceil(wait))
    return Refused(message, status=429, kind="too_many_requests", after=after)
