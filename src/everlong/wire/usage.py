"""The tokens of a call as its provider reports them, in one form for all, and overflows that only they give away.

Providers differ in what they count twice: some report cached tokens inside the prompt and some beside it, some
reasoning inside the output and some beside it. Each way is one row of `STYLES`. A whole response, a stream event or the
usage object alone can be read; sums and prices are made elsewhere. Some servers accept more than they can use, cut the
beginning off, or fill the window and have no room to answer: then the figures show it, and no error does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

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

MOST = 1 << 40  # tokens; anything above is no count
SUM_FACTOR = 3  # reported above this many times the estimate: added up over several calls
SUM_SLACK = 2_000  # tokens; small requests carry framing and tools that an estimate may not know


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call.

    `prompt` is all input, whatever was cached; `cached` and `cache_written` are parts of it. `output` is all that was
    written; `reasoning` is the part of it that was thinking.
    """

    prompt: int = 0
    cached: int = 0
    cache_written: int = 0
    output: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageStyle:
    """How one family of providers reports. Fields are named by their path ("a.b").

    The row fits a usage object in which one of the fields in `mark` is present. The fields of `prompt` add up; of the
    others the first that is present counts, because proxies repeat the same figure under several names.
    """

    name: str
    mark: tuple[str, ...]
    prompt: tuple[str, ...]
    cached: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    total: str = ""
    cached_beside: bool = False  # the prompt figure leaves out what was cached
    reasoning_beside: bool = False  # the output figure leaves out the thinking


#: From the particular to the general; the first that fits is taken unless the caller knows the format.
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
        prompt=("tokens.input_tokens",),  # `billed_units` leave out what Cohere adds itself
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
        prompt=("prompt_n",),  # only what was computed anew
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

#: Where a response or stream event keeps its usage, in the order they are believed.
PLACES = ("usage", "usageMetadata", "message.usage", "response.usage", "meta", "delta.usage", "timings", "")


def read_usage(raw: Json, fmt_hint: str = "") -> Usage | None:
    """The usage in a response, a stream event or a bare usage object; None if it names no tokens.

    Example: {"usage": {"input_tokens": 1000, "cache_read_input_tokens": 37000, "output_tokens": 5}} -> prompt 38 000
    """
    for found in _usage_objects(raw):
        fitting = [style for style in STYLES if any(_at(found, path) is not None for path in style.mark)]
        hinted = [style for style in fitting if style.name == fmt_hint]
        if fitting:
            return _read(found, (hinted or fitting)[0])
    return None


def merged(earlier: Usage, later: Usage) -> Usage:
    """Two reports of the same call, as streams send them: each figure only grows."""
    return Usage(
        prompt=max(earlier.prompt, later.prompt),
        cached=max(earlier.cached, later.cached),
        cache_written=max(earlier.cache_written, later.cache_written),
        output=max(earlier.output, later.output),
        reasoning=max(earlier.reasoning, later.reasoning),
    )


def plausible(usage: Usage, window: int, *, estimate: int | None = None) -> bool:
    """Whether it can be the usage of one call: nothing above the window, nothing added up over calls.

    With the `estimate` of what was sent, sums that still fit the window are found out too.
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
    # A part larger than its whole, or needed to reach the total, was reported beside it, whatever the family does.
    parts = cached + written
    if style.cached_beside or parts > prompt or (parts and total == prompt + parts + output):
        prompt += parts
    if style.reasoning_beside or reasoning > output or (reasoning and total == prompt + output + reasoning):
        output += reasoning
    return Usage(prompt=prompt, cached=cached, cache_written=written, output=output, reasoning=reasoning)


def _first(found: JsonObject, paths: tuple[str, ...]) -> int:
    return next((_count(value) for value in (_at(found, path) for path in paths) if value is not None), 0)


def _at(raw: Json, path: str) -> Json:
    """What stands at a dotted path; the thing itself for ""."""
    for key in path.split(".") if path else ():
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw


def _count(value: Json) -> int:
    """A token count, 0 for anything that is none. Cohere sends 71.0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < MOST else 0


# --- silent overflows --------------------------------------------------------------------------

FULL = 0.99  # of the window; servers keep a few tokens back
LAST_TOKENS = 16  # this near to its end a reply was stopped by the window
CUT_BY_LENGTH = frozenset({"incomplete", "length", "max_output_tokens", "max_tokens"})
CUT_BY_WINDOW = frozenset({"model_context_window_exceeded", "model_length"})

TRUNCATED = 0.6  # of the estimate; a counter that errs is not this far off
TRUNCATED_BY = 512  # tokens at least
NEAR_BELOW = 0.98  # of the served window; a server that drops the head fills it almost
NEAR_ABOVE = 16  # tokens; 16 387 were reported for 16 384
SERVED_WINDOWS = tuple(1 << power for power in range(11, 21))  # 2 048 to 1 048 576: what servers are started with


class SilentOverflow(StrEnum):
    """What gave it away."""

    SAID_SO = "the reply ended because the window was full"
    ABOVE_WINDOW = "more tokens were reported than the window holds"
    NO_ROOM = "the prompt filled the window and left no room for an answer"
    REPLY_CUT = "the answer was cut where the window ended"


def silent_overflow(usage: Usage, window: int, *, finish: str, output: int | None = None) -> SilentOverflow | None:
    """Whether a reply that looks like a success hides an overflow.

    `finish` is the provider's finish or stop reason, `output` how much the reply really said (0: nothing), where that
    is better known than `usage.output`.
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
    """The window a server really serves, if it read far less than was sent and stopped where such windows end.

    Example: estimate 160 000, reported 16 387 -> 16 384
    """
    if usage.prompt > TRUNCATED * estimate or estimate - usage.prompt < TRUNCATED_BY:
        return None
    return next((size for size in SERVED_WINDOWS if NEAR_BELOW * size <= usage.prompt <= size + NEAR_ABOVE), None)
