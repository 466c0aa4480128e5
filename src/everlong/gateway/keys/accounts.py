"""What one key has used of its limits: a value that pure functions change, stored as JSON.

No minute, wherever it begins, has more than its limits allow: requests within a tenth of a second are remembered
together and forgotten a minute after the last of them. Days and months are in UTC. Requests in progress are recorded by
process, with a lease: the places of a dead process become free when the lease ends.

If the clock of one process is ahead, that process forgets requests too early, by the same amount.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from everlong.core import JsonText
from everlong.errors import Refused
from everlong.gateway.config import Limits
from everlong.wire import Allowance

__all__ = [
    "LEASE",
    "SPENT",
    "Account",
    "Asked",
    "Held",
    "NoPlace",
    "Used",
    "admit",
    "allowances",
    "decoded",
    "encoded",
    "roll",
    "settle",
]

MINUTE = 60.0
TOGETHER = 0.1  # seconds within which requests are remembered together
LEASE = 30.0  # seconds after which the places of a silent process are free
ROUNDING = 1e-9  # dollars
#: OpenAI's name for a spent budget, which its clients know.
SPENT = "insufficient_quota"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request will probably use, before it is sent."""

    tokens: int = 0
    dollars: float = 0.0


@dataclass(slots=True)
class Used:
    """What was used and has not been counted yet."""

    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0


class NoPlace(Refused):
    """The limit of concurrent requests is reached; a place may become free at any moment."""


class Bucket(msgspec.Struct, array_like=True):
    """Requests that are remembered together: the times of the first and the last, their number, and their tokens."""

    first: float
    last: float
    requests: int
    tokens: int


class Held(msgspec.Struct, array_like=True):
    """What one process has in progress: requests, and the tokens and dollars that they may use."""

    until: float
    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0


class Account(msgspec.Struct, omit_defaults=True):
    """What one key has used: in the last minute, in progress, this day and this month."""

    minute: list[Bucket] = []
    held: dict[str, Held] = {}
    day: str = ""
    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0
    month: str = ""
    month_dollars: float = 0.0


_READER = msgspec.json.Decoder(Account)


def decoded(text: JsonText | None) -> Account:
    """Return the stored account; a new one if there is none or it cannot be read."""
    try:
        return _READER.decode(text) if text else Account()
    except msgspec.MsgspecError:
        return Account()


def encoded(account: Account) -> JsonText:
    """Return the account in its stored form."""
    return msgspec.json.encode(account).decode()


def roll(account: Account, now: float) -> float:
    """Forget what no longer counts; return the time, which never goes backwards."""
    now = max(now, account.minute[-1].last if account.minute else now)
    kept = next((at for at, one in enumerate(account.minute) if one.last > now - MINUTE), len(account.minute))
    if kept:
        del account.minute[:kept]
    for name in [name for name, held in account.held.items() if held.until <= now]:
        del account.held[name]
    today = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
    if today > account.day:
        account.day, account.requests, account.tokens, account.dollars = today, 0, 0, 0.0
    if today[:7] > account.month:
        account.month, account.month_dollars = today[:7], 0.0
    return now


def settle(account: Account, used: Used) -> None:
    """Count what was used."""
    account.requests += used.requests
    account.tokens += used.tokens
    account.dollars += used.dollars
    account.month_dollars += used.dollars


def admit(account: Account, limits: Limits, asked: Asked, process: str, now: float) -> Refused | None:
    """Count a request if the limits allow it; otherwise return the refusal. Call `roll` before."""
    refused = _refusal(account, limits, asked, now)
    if refused is not None:
        return refused
    last = account.minute[-1] if account.minute else None
    if last is not None and now - last.first < TOGETHER:
        last.last, last.requests, last.tokens = now, last.requests + 1, last.tokens + asked.tokens
    else:
        account.minute.append(Bucket(now, now, 1, asked.tokens))
    account.requests += 1
    held = account.held.setdefault(process, Held(now + LEASE))
    held.until = now + LEASE
    held.requests, held.tokens, held.dollars = (
        held.requests + 1,
        held.tokens + asked.tokens,
        held.dollars + asked.dollars,
    )
    return None


def _refusal(account: Account, limits: Limits, asked: Asked, now: float) -> Refused | None:
    under_way = sum(held.requests for held in account.held.values())
    if limits.at_once is not None and under_way >= limits.at_once:
        text = f"{limits.at_once} requests are already running"
        return NoPlace(text, status=429, kind="too_many_requests", after=1)
    return _beyond_minute(account, limits, asked, now) or _beyond_budget(account, limits, asked, now)


def _beyond_minute(account: Account, limits: Limits, asked: Asked, now: float) -> Refused | None:
    requests, tokens = limits.requests_per_minute, limits.tokens_per_minute
    if requests is not None and sum(one.requests for one in account.minute) >= requests:
        return _too_many(f"{requests} requests per minute are the limit", _free_in(account, now, requests=requests - 1))
    if tokens is None or sum(one.tokens for one in account.minute) + asked.tokens <= tokens:
        return None
    if asked.tokens > tokens:
        alone = f"{tokens} tokens per minute are the limit, and this request alone has about {asked.tokens}"
        return _too_many(alone, None)
    return _too_many(f"{tokens} tokens per minute are the limit", _free_in(account, now, tokens=tokens - asked.tokens))


def _free_in(account: Account, now: float, *, requests: int | None = None, tokens: int | None = None) -> float:
    """Return the seconds until the last minute has at most this many requests, or tokens."""
    left_requests = sum(one.requests for one in account.minute)
    left_tokens = sum(one.tokens for one in account.minute)
    for one in account.minute:
        left_requests -= one.requests
        left_tokens -= one.tokens
        if (requests is None or left_requests <= requests) and (tokens is None or left_tokens <= tokens):
            return one.last + MINUTE - now
    return 0.0


def _beyond_budget(account: Account, limits: Limits, asked: Asked, now: float) -> Refused | None:
    """Return a refusal if a daily or monthly budget is spent, or would be with this request and those in progress."""
    tokens = account.tokens + sum(held.tokens for held in account.held.values())
    reserved = sum(held.dollars for held in account.held.values())
    for limit, used, wanted, named, until in (
        (limits.requests_per_day, account.requests, 1, "requests per day", _tomorrow),
        (limits.tokens_per_day, tokens, asked.tokens, "tokens per day", _tomorrow),
        (limits.dollars_per_day, account.dollars + reserved, asked.dollars, "dollars per day", _tomorrow),
        (limits.dollars_per_month, account.month_dollars + reserved, asked.dollars, "dollars per month", _next_month),
    ):
        # A budget that is spent to the last cent is spent, even for a request without a known price.
        if limit is None or (used < limit - ROUNDING and used + wanted <= limit + ROUNDING):
            continue
        if wanted > limit:
            text = f"{_figure(limit)} {named} are the budget, and this request alone may need {_figure(wanted)}"
            return Refused(text, status=429, kind=SPENT)
        text = f"the budget of {_figure(limit)} {named} is spent; it resets at {until(now):%Y-%m-%d %H:%M} UTC"
        return Refused(text, status=429, kind=SPENT, after=max(1, math.ceil(until(now).timestamp() - now)))
    return None


def _figure(number: float) -> str:
    return f"{number:.4f}".rstrip("0").rstrip(".")


def _tomorrow(now: float) -> datetime:
    midnight = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + timedelta(days=1)


def _next_month(now: float) -> datetime:
    first = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)


def _too_many(message: str, wait: float | None) -> Refused:
    after = None if wait is None else max(1, math.ceil(wait))
    return Refused(message, status=429, kind="too_many_requests", after=after)


def allowances(account: Account, limits: Limits, now: float) -> list[Allowance]:
    """Return what is left of the limits on requests and tokens: of the minute or the day, whichever has less left."""
    found: dict[str, Allowance] = {}
    for one in _all_allowances(account, limits, now):
        if one.what not in found or one.remaining < found[one.what].remaining:
            found[one.what] = one
    return list(found.values())


def _all_allowances(account: Account, limits: Limits, now: float) -> Iterator[Allowance]:
    minute = account.minute[-1].last + MINUTE - now if account.minute else 0.0
    day = _tomorrow(now).timestamp() - now
    under_way = sum(held.tokens for held in account.held.values())
    for what, limit, used, reset in (
        ("requests", limits.requests_per_minute, sum(one.requests for one in account.minute), minute),
        ("tokens", limits.tokens_per_minute, sum(one.tokens for one in account.minute), minute),
        ("requests", limits.requests_per_day, account.requests, day),
        ("tokens", limits.tokens_per_day, account.tokens + under_way, day),
    ):
        if limit is not None:
            yield Allowance(what=what, limit=limit, remaining=max(0, limit - used), reset=reset)
