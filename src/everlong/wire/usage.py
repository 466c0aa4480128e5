"""Read the tokens of a call from any provider's report, and detect overflows that only these figures show.

Providers differ in what they count twice: some report cached tokens inside the prompt and some beside it, some
reasoning inside the output and some beside it. Each way is one row of `STYLES`. A whole response, a stream event or the
usage object alone can be read; other modules compute sums and prices. Some servers accept more than they can use, cut
off the beginning, or fill the window and have no space left to answer: then no error shows it, only the figures.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache

from everlong.core import Json, JsonObject

__all__ = [
    "STYLES",
    "SilentOverflow",
    "Usage",
    "UsageStyle",
    "merged",
    "plausible",
    "read_usage",
    "silent_overflow",
    "truncated_window",
]

MOST = 1 << 40  # tokens; anything above is not a count
SUM_FACTOR = 3  # a report above this many times the estimate is a sum over several calls
SUM_SLACK = 2_000  # tokens; small requests have framing and tools that an estimate may not include


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one model call.

    - `prompt`: the whole input, cached or not.
    - `cached`, `cache_written`: the parts of `prompt` that were read from and written to the provider's cache.
    - `output`: the whole reply.
    - `reasoning`: the part of `output` that was reasoning.
    """

    prompt: int = 0
    cached: int = 0
    cache_written: int = 0
    output: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageStyle:
    """How one family of providers reports usage. Fields are named by their path ("a.b").

    The row matches a usage object with one of the fields in `mark`. The fields of `prompt` are added; of the others,
    the first that is present counts, because proxies repeat the same figure under several names.
    """

    name: str
    mark: tuple[str, ...]
    prompt: tuple[str, ...]
    cached: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    total: str = ""
    cached_beside: bool = False  # the prompt figure does not include cached tokens
    reasoning_beside: bool = False  # the output figure does not include reasoning


#: From specific to general; the first match counts, unless the caller knows the format.
STYLES: tuple[UsageStyle, ...] = (
    UsageStyle(
        name="gemini",
        mark=("promptTokenCount", "candidatesTokenCount"),
        prompt=("promptTokenCount", "toolUsePromptTokenCount"),
        cached=("cachedContentTokenCount",),
        output=("candidatesTokenCount",),
        reasoning=("thoughtsTokenCount",),
        reasoning_beside=True,
    ),
    UsageStyle(
        name="cohere",
        mark=("tokens.input_tokens", "tokens.output_tokens"),
        prompt=("tokens.input_tokens",),  # `billed_units` do not include what Cohere adds itself
        cached=("cached_tokens",),
        output=("tokens.output_tokens",),
    ),
    UsageStyle(
        name="deepseek",
        mark=("prompt_cache_miss_tokens",),
        prompt=("prompt_cache_hit_tokens", "prompt_cache_miss_tokens"),
        cached=("prompt_cache_hit_tokens",),
        output=("completion_tokens",),
        reasoning=("completion_tokens_details.reasoning_tokens",),
    ),
    UsageStyle(
        name="openai-responses",
        mark=("input_tokens_details", "output_tokens_details"),
        prompt=("input_tokens",),
        cached=("input_tokens_details.cached_tokens",),
        written=("input_tokens_details.cache_write_tokens",),
        output=("output_tokens",),
        reasoning=("output_tokens_details.reasoning_tokens",),
        total="total_tokens",
    ),
    UsageStyle(
        name="codex",
        mark=("cached_input_tokens", "reasoning_output_tokens"),
        prompt=("input_tokens",),
        cached=("cached_input_tokens",),
        output=("output_tokens",),
        reasoning=("reasoning_output_tokens",),
        total="total_tokens",
    ),
    UsageStyle(
        name="openai-chat",
        mark=("prompt_tokens",),
        prompt=("prompt_tokens",),
        cached=("prompt_tokens_details.cached_tokens", "cached_tokens", "cache_read_input_tokens", "cache_n"),
        written=("prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens"),
        output=("completion_tokens",),
        reasoning=("completion_tokens_details.reasoning_tokens",),
        total="total_tokens",
    ),
    UsageStyle(
        name="anthropic",
        mark=("input_tokens", "output_tokens"),
        prompt=("input_tokens",),
        cached=("cache_read_input_tokens",),
        written=("cache_creation_input_tokens",),
        output=("output_tokens",),
        cached_beside=True,
    ),
    UsageStyle(
        name="bedrock-converse",
        mark=("inputTokens",),
        prompt=("inputTokens",),
        cached=("cacheReadInputTokens",),
        written=("cacheWriteInputTokens",),
        output=("outputTokens",),
        total="totalTokens",
        cached_beside=True,
    ),
    UsageStyle(
        name="pi",
        mark=("cacheRead",),
        prompt=("input",),
        cached=("cacheRead",),
        written=("cacheWrite",),
        output=("output",),
        cached_beside=True,
    ),
    UsageStyle(
        name="ollama",
        mark=("prompt_eval_count", "eval_count"),
        prompt=("prompt_eval_count",),
        output=("eval_count",),
    ),
    UsageStyle(
        name="llama.cpp",
        mark=("prompt_n",),
        prompt=("prompt_n",),  # only the tokens that were not cached
        cached=("cache_n",),
        output=("predicted_n",),
        cached_beside=True,
    ),
    UsageStyle(
        name="llama.cpp-completion",
        mark=("tokens_evaluated",),
        prompt=("tokens_evaluated",),
        output=("tokens_predicted",),
    ),
)

#: Where a response or stream event has its usage, most reliable first.
PLACES = ("usage", "usageMetadata", "message.usage", "response.usage", "meta", "delta.usage", "timings", "")


def read_usage(raw: Json, fmt_hint: str = "") -> Usage | None:
    """Return the usage in a response, a stream event or a usage object; None if it has no tokens.

    Example: {"usage": {"input_tokens": 1000, "cache_read_input_tokens": 37000, "output_tokens": 5}} -> prompt 38,000
    """
    for found in _usage_objects(raw):
        for style in _styles(fmt_hint):
            if any(_at(found, path) is not None for path in style.mark):
                return _read(found, style)
    return None


@cache
def _styles(hint: str) -> tuple[UsageStyle, ...]:
    """Return all styles, those of the hint first."""
    return tuple(sorted(STYLES, key=lambda style: style.name != hint))


def merged(earlier: Usage, later: Usage) -> Usage:
    """Return two reports of the same call as one, as streams send them: each figure only grows."""
    return Usage(
        prompt=max(earlier.prompt, later.prompt),
        cached=max(earlier.cached, later.cached),
        cache_written=max(earlier.cache_written, later.cache_written),
        output=max(earlier.output, later.output),
        reasoning=max(earlier.reasoning, later.reasoning),
    )


def plausible(usage: Usage, window: int, *, estimate: int | None = None) -> bool:
    """Return whether this can be the usage of one call: nothing above the window, nothing added up over calls.

    With the `estimate` of what was sent, sums that still fit into the window are recognised too.
    """
    if not 0 < usage.prompt <= window or usage.output > window:
        return False
    if usage.cached + usage.cache_written > usage.prompt or usage.reasoning > usage.output:
        return False
    return estimate is None or usage.prompt <= SUM_FACTOR * estimate + SUM_SLACK


def _usage_objects(raw: Json) -> Iterator[JsonObject]:
    for place in PLACES:
        found = _at(raw, place)
        if isinstance(found, dict):
            yield found


def _read(found: JsonObject, style: UsageStyle) -> Usage:
    prompt = sum(_count(_at(found, path)) for path in style.prompt)
    cached, written = _first(found, style.cached), _first(found, style.written)
    output, reasoning = _first(found, style.output), _first(found, style.reasoning)
    total = _count(_at(found, style.total)) if style.total else 0
    # A part that is larger than its whole, or needed to reach the total, is not included in it, whatever the style
    # says.
    parts = cached + written
    if style.cached_beside or parts > prompt or (parts and total == prompt + parts + output):
        prompt += parts
    if style.reasoning_beside or reasoning > output or (reasoning and total == prompt + output + reasoning):
        output += reasoning
    return Usage(prompt=prompt, cached=cached, cache_written=written, output=output, reasoning=reasoning)


def _first(found: JsonObject, paths: tuple[str, ...]) -> int:
    return next((_count(value) for value in (_at(found, path) for path in paths) if value is not None), 0)


def _at(raw: Json, path: str) -> Json:
    """Return the value at a dotted path; the object itself for ""."""
    for key in _keys(path):
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw


@lru_cache(maxsize=256)
def _keys(path: str) -> tuple[str, ...]:
    return tuple(path.split(".")) if path else ()


def _count(value: Json) -> int:
    """Return a token count, or 0 for anything else. Cohere sends 71.0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < MOST else 0


# --- silent overflows --------------------------------------------------------------------------

FULL = 0.99  # of the window; servers reserve a few tokens
LAST_TOKENS = 16  # tokens before the end of the window where a reply counts as stopped by it
CUT_BY_LENGTH = frozenset({"incomplete", "length", "max_output_tokens", "max_tokens"})
CUT_BY_WINDOW = frozenset({"model_context_window_exceeded", "model_length"})

TRUNCATED = 0.6  # of the estimate; no counter is wrong by this much
TRUNCATED_BY = 512  # tokens that must be missing at least
NEAR_BELOW = 0.98  # of the served window; a server that drops the beginning nearly fills it
NEAR_ABOVE = 16  # tokens; 16,387 were reported for 16,384
SERVED_WINDOWS = tuple(1 << power for power in range(11, 21))  # 2,048 to 1,048,576: usual settings of servers


class SilentOverflow(StrEnum):
    """What shows a silent overflow."""

    SAID_SO = "the reply ended because the window was full"
    ABOVE_WINDOW = "more tokens were reported than the window holds"
    NO_ROOM = "the prompt filled the window and left no space for an answer"
    REPLY_CUT = "the answer was cut where the window ended"


def silent_overflow(usage: Usage, window: int, *, finish: str, output: int | None = None) -> SilentOverflow | None:
    """Return how a reply that looks like a success hides an overflow; None if it does not.

    `finish` is the provider's finish or stop reason, and `output` the true size of the reply (0: nothing), if that is
    better known than `usage.output`.
    """
    reason = finish.lower()
    said = usage.output if output is None else output
    if reason in CUT_BY_WINDOW:
        return SilentOverflow.SAID_SO
    if usage.prompt > window:
        return SilentOverflow.ABOVE_WINDOW
    if reason not in CUT_BY_LENGTH:
        return None
    if said == 0 and usage.prompt >= FULL * window:
        return SilentOverflow.NO_ROOM
    return SilentOverflow.REPLY_CUT if said and usage.prompt + usage.output >= window - LAST_TOKENS else None


def truncated_window(usage: Usage, estimate: int) -> int | None:
    """Return the window that a server really serves, if it read far less than was sent; None if not.

    Example: estimate 160,000, reported 16,387 -> 16,384
    """
    if usage.prompt > TRUNCATED * estimate or estimate - usage.prompt < TRUNCATED_BY:
        return None
    return next((size for size in SERVED_WINDOWS if NEAR_BELOW * size <= usage.prompt <= size + NEAR_ABOVE), None)
