"""The programs whose sessions are replayed: where they keep them, how they mark their summaries and record usage.

One row for each session format. Claude Code, Codex and pi record usage. Every request in a file counts, also one of a
turn that was taken back; a record without usage, or with unexpected fields, counts nothing.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from everlong.core import Json, JsonObject
from everlong.engine import cost_of
from everlong.lab.replay.results import Recorded
from everlong.windows import Prices, window
from everlong.wire import Usage, merged, read_usage
from everlong.wire.sessions import chatbox, claude_code, codex, nanobot, pi

__all__ = ["PLACES", "PROGRAMS", "SYNTHETIC", "Program", "recorded_of"]

SYNTHETIC = "<synthetic>"  # the model name of replies that no model wrote
HOUR_WRITE = 2.0  # times the input price: what Anthropic charges for a prefix that is cached for an hour
MILLION = 1_000_000
MOST = 1e12  # tokens or dollars; anything above is not a figure
NOTHING = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One report of usage. `own` are the dollars that the file names; `hour` the tokens cached for an hour."""

    model: str
    usage: Usage
    provider: str = ""
    own: float = 0.0
    hour: int = 0


#: A request with its key: reports with the same key belong to one request.
_Keyed: TypeAlias = tuple[Hashable, _Request]


def recorded_of(fmt: str, records: Iterable[JsonObject]) -> tuple[Recorded, ...]:
    """Return the usage of each model, the most used first; () if the format keeps none.

    Example: three lines of one Claude Code reply, with 1, 1 and 250 tokens of output -> one request, 250
    """
    requests: dict[Hashable, _Request] = {}
    program = PROGRAMS.get(fmt, UNKNOWN)
    for key, request in program.requests(records) if program.requests else ():
        requests[key] = _joined(requests[key], request) if key in requests else request
    by_model: dict[str, list[_Request]] = {}
    for request in requests.values():
        if request.usage != NOTHING:
            by_model.setdefault(request.model, []).append(request)
    usages = [_summed(model, group) for model, group in by_model.items()]
    return tuple(sorted(usages, key=lambda usage: (-usage.requests, usage.model)))


def _joined(earlier: _Request, later: _Request) -> _Request:
    """Return two reports of the same request as one. Each figure only grows, so their order does not matter."""
    return replace(
        later,
        usage=merged(earlier.usage, later.usage),
        own=max(earlier.own, later.own),
        hour=max(earlier.hour, later.hour),
    )


def _summed(model: str, requests: list[_Request]) -> Recorded:
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


def _dollars(request: _Request) -> float | None:
    """Return the cost that the file names, else the one by the price table."""
    if request.own > 0:
        return request.own
    prices = _prices(request.model, request.provider)
    dollars = cost_of(request.usage, prices)
    if dollars is None or not request.hour or prices.input is None or prices.cache_write is None:
        return dollars
    return dollars + request.hour * (HOUR_WRITE * prices.input - prices.cache_write) / MILLION


@lru_cache(maxsize=256)
def _prices(model: str, provider: str) -> Prices:
    return window(model, provider=provider).prices if model else Prices()


# --- the records of each program ---------------------------------------------------------------


def _claude_code(records: Iterable[JsonObject]) -> Iterator[_Keyed]:
    """Yield the requests. A reply takes a line for each block, each with the usage so far; the ids join them."""
    for at, record in enumerate(records):
        message = record.get("message")
        usage = read_usage(message, "anthropic") if isinstance(message, dict) else None
        if not isinstance(message, dict) or usage is None or message.get("model") == SYNTHETIC:
            continue
        names = (_text(message.get("id")), _text(record.get("requestId")))
        yield (
            names if any(names) else at,
            _Request(
                model=_text(message.get("model")),
                usage=usage,
                own=_amount(record.get("costUSD")),  # only versions before 1.0 kept it
                hour=min(_hour_tokens(message.get("usage")), usage.cache_written),
            ),
        )


def _hour_tokens(usage: Json) -> int:
    split = usage.get("cache_creation") if isinstance(usage, dict) else None
    return int(_amount(split.get("ephemeral_1h_input_tokens"))) if isinstance(split, dict) else 0


def _pi(records: Iterable[JsonObject]) -> Iterator[_Keyed]:
    """Yield the requests. Every answer has its usage and cost; a summary with usage is the last model's."""
    model = provider = ""
    for at, record in enumerate(records):
        message = record.get("message")
        body = message if isinstance(message, dict) else record
        model = _text(body.get("model")) or model
        provider = _text(body.get("provider")) or provider
        figures = body.get("usage")
        usage = read_usage(figures, "pi")
        if isinstance(figures, dict) and usage is not None:
            cost = figures.get("cost")
            own = _amount(cost.get("total")) if isinstance(cost, dict) else 0.0
            yield at, _Request(model=model, provider=provider, usage=usage, own=own)


def _codex(records: Iterable[JsonObject]) -> Iterator[_Keyed]:
    """Yield the requests. Events give the usage of the last request and the sum; an unchanged sum is no request."""
    model = provider = ""
    before: Usage | None = None
    for at, record in enumerate(records):
        payload = record.get("payload")
        if not isinstance(payload, dict):
            continue
        match record.get("type"), payload.get("type"):
            case "session_meta", _:
                provider = _text(payload.get("model_provider")) or provider
            case "turn_context", _:
                model = _text(payload.get("model")) or model
            case "event_msg", "token_count":
                info = payload.get("info")
                figures = info if isinstance(info, dict) else {}
                total = read_usage(figures.get("total_token_usage"), "codex")
                last = read_usage(figures.get("last_token_usage"), "codex")
                sign = last if total is None else total
                if sign is not None and sign != before:
                    usage = _grown(before, sign) if last is None else last
                    yield at, _Request(model=model, provider=provider, usage=usage)
                    before = sign
            case _:
                pass


def _grown(before: Usage | None, total: Usage) -> Usage:
    """Return what was added to a sum; all of it if the sum started again."""
    if before is None or total.prompt < before.prompt or total.output < before.output:
        return total
    return Usage(
        prompt=total.prompt - before.prompt,
        cached=max(0, total.cached - before.cached),
        cache_written=max(0, total.cache_written - before.cache_written),
        output=total.output - before.output,
        reasoning=max(0, total.reasoning - before.reasoning),
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _amount(value: Json) -> float:
    """Return a figure of the file; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 < value < MOST else 0.0


# --- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that keeps sessions.

    `places` are its folders below the home directory. `is_summary` tells from the fields and hints of a message whether
    the program wrote it in place of earlier ones. `requests` reads the usage from the records of a file, if it
    has any. `side_chains`: the records of sub-agents stand in the same file.
    """

    places: tuple[str, ...] = ()
    is_summary: Callable[[JsonObject, JsonObject], bool] = lambda fields, hints: False  # noqa: ARG005 - it has none
    requests: Callable[[Iterable[JsonObject]], Iterator[_Keyed]] | None = None
    side_chains: bool = False


UNKNOWN = Program()
#: Session format -> its program.
PROGRAMS = {
    chatbox.FORMAT: Program(is_summary=lambda fields, _: fields.get("isSummary") is True),
    claude_code.FORMAT: Program(
        places=(".claude/projects", ".config/claude/projects"),
        is_summary=lambda fields, _: fields.get("isCompactSummary") is True,
        requests=_claude_code,
        side_chains=True,
    ),
    codex.FORMAT: Program(
        places=(".codex/sessions", ".codex/archived_sessions"),
        is_summary=lambda _, hints: "compacted" in hints,
        requests=_codex,
    ),
    pi.FORMAT: Program(
        places=(".pi/agent/sessions",),
        is_summary=lambda fields, _: fields.get("type") == "compaction",
        requests=_pi,
    ),
    nanobot.FORMAT: Program(
        places=(".nanobot/sessions", ".nanobot/workspace/sessions"),
        is_summary=lambda _, hints: hints.get("summary") is True,
    ),
}
#: The programs that can be named instead of a path -> where they keep their sessions, below the home directory.
PLACES = {name: program.places for name, program in PROGRAMS.items() if program.places}
