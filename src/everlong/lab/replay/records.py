"""Recorded usage: the requests that a session's own file records, their tokens, and what they cost.

Claude Code, Codex and pi record usage. Every request in a file counts, also one of a turn that was taken back.
"""

from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import lru_cache

from everlong.core import JsonObject
from everlong.engine import cost_of
from everlong.lab.replay.results import Recorded
from everlong.windows import Prices, window
from everlong.wire import SESSION_FORMATS, RecordedRequest, Usage, merged

__all__ = ["SYNTHETIC", "recorded_of"]

SYNTHETIC = "<synthetic>"  # the model name of replies that no model wrote
HOUR_WRITE = 2.0  # times the input price: what Anthropic charges for a prefix that is cached for an hour
MILLION = 1_000_000
NOTHING = Usage()


def recorded_of(fmt: str, records: Iterable[JsonObject]) -> tuple[Recorded, ...]:
    """Return the usage of each model, the most used first; () if the format keeps none.

    Example: three lines of one Claude Code reply, with 1, 1 and 250 tokens of output -> one request, 250
    """
    requests: dict[Hashable, RecordedRequest] = {}
    program = SESSION_FORMATS.get(fmt)
    for key, request in program.requests(records) if program and program.requests else ():
        requests[key] = _joined(requests[key], request) if key in requests else request
    by_model: dict[str, list[RecordedRequest]] = {}
    for request in requests.values():
        if request.usage != NOTHING:
            by_model.setdefault(request.model, []).append(request)
    usages = [_summed(model, group) for model, group in by_model.items()]
    return tuple(sorted(usages, key=lambda usage: (-usage.requests, usage.model)))


def _joined(earlier: RecordedRequest, later: RecordedRequest) -> RecordedRequest:
    """Return two reports of the same request as one. Each figure only grows, so their order does not matter."""
    return replace(
        later,
        usage=merged(earlier.usage, later.usage),
        cost=max(earlier.cost, later.cost),
        hour=max(earlier.hour, later.hour),
    )


def _summed(model: str, requests: list[RecordedRequest]) -> Recorded:
    paid = [dollars for request in requests if (dollars := _dollars(request)) is not None]
    return Recorded(
        model=model,
        requests=len(requests),
        prompt=sum(request.usage.prompt for request in requests),
        read=sum(request.usage.cached for request in requests),
        written=sum(request.usage.cache_written for request in requests),
        output=sum(request.usage.output for request in requests),
        dollars=sum(paid) if paid else None,
    )


def _dollars(request: RecordedRequest) -> float | None:
    """Return the cost that the file names, else the one by the price table."""
    if request.cost > 0:
        return request.cost
    prices = _prices(request.model, request.provider)
    dollars = cost_of(request.usage, prices)
    if dollars is None or not request.hour or prices.input is None or prices.cache_write is None:
        return dollars
    return dollars + request.hour * (HOUR_WRITE * prices.input - prices.cache_write) / MILLION


@lru_cache(maxsize=256)
def _prices(model: str, provider: str) -> Prices:
    return window(model, provider=provider).prices if model else Prices()
