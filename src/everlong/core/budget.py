"""How much of a context window the messages may use.

    window = messages (what is available) + tool schemas + reply reserve + margin
    messages = fixed (system text, pins, the task, the last user message) + movable

All figures are tokens. Threshold and target are shares of the movable part, the only part that a compaction changes: a
compaction is due at the threshold and goes down to the target.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

__all__ = [
    "DEFAULT_REPLY",
    "SMALLEST_REPLY",
    "Budget",
    "clamp_reply",
    "reply_budget",
    "reply_reserve",
    "session_budget",
    "token_count",
]

DEFAULT_REPLY = 4_096
SMALLEST_REPLY = 1_024  # a requested reply is never limited to less than this
DEFAULT_MARGIN = 1_024  # providers add framing that no counter sees
LARGEST_UNASKED_SHARE = 4  # the default reserve takes at most a quarter of the window
SESSION_MARGIN = 2_000  # tokens; what a turn adds besides history and system text
REPLY_MARGIN = 4_096  # tokens; system text, tools and framing
LEAST_BUDGET = 4_096  # tokens; with less history there is no conversation
MARGIN_SHARE = 32  # the margin takes at most 1/32 of the rest, so that a 2k window stays usable
LARGEST_SHARE = 2  # the reserve takes at most half of what tools and fixed messages leave


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How a context window is divided, and when a history is compacted. All figures are tokens.

    - `window`: the context window.
    - `reply`: the reserve for the reply.
    - `tools`: the tool schemas.
    - `margin`: a reserve for what providers add and no counter sees.
    - `fixed`: the messages that no compaction changes.
    - `threshold`, `target`: when a compaction is due and where it ends, as shares of the rest.
    """

    window: int
    reply: int = DEFAULT_REPLY
    tools: int = 0
    margin: int = DEFAULT_MARGIN
    fixed: int = 0
    threshold: float = 0.95
    target: float = 0.5

    def __post_init__(self) -> None:
        if min(self.window, self.reply, self.tools, self.margin, self.fixed) < 0:
            raise ValueError("the parts of a budget must not be negative")
        if not 0 < self.target <= self.threshold <= 1:
            raise ValueError(
                f"shares must be 0 < target <= threshold <= 1, not target={self.target}, threshold={self.threshold}"
            )

    @property
    def available(self) -> int:
        """The tokens left for messages, system text included; never negative."""
        return max(0, self.window - self.reply - self.tools - self.margin)

    @property
    def movable(self) -> int:
        """The tokens of messages that a compaction can change; never negative."""
        return max(0, self.available - self.fixed)

    @property
    def threshold_tokens(self) -> int:
        """The tokens of messages at which a compaction is due."""
        return self.fixed + int(self.movable * self.threshold)

    @property
    def target_tokens(self) -> int:
        """The tokens of messages that a compaction goes down to."""
        return self.fixed + int(self.movable * self.target)

    @classmethod
    def of(
        cls,
        window: int,
        *,
        requested: int | None = None,
        max_output: int | None = None,
        tools: int = 0,
        fixed: int = 0,
        least: int = 0,
    ) -> "Budget":
        """Return the budget of a request. The reserve for the reply is at most half of what the fixed parts leave.

        `least` is the smallest reserve if the request asks for one. Example: window 16,384, nothing requested, no known
        output limit -> reply 4,096, margin 384
        Example: window 64,000, fixed 28,000, requested 32,000 -> reply 18,000
        """
        left = max(0, window - tools - fixed)
        wanted = reply_reserve(window, requested=requested, max_output=max_output)
        reply = max(min(wanted, left // LARGEST_SHARE), min(wanted, least))
        margin = _margin_of(max(0, left - reply))
        return cls(window=window, reply=reply, tools=tools, fixed=fixed, margin=margin)


def _margin_of(left: int) -> int:
    """Return the reserve for framing that no counter sees. Example: 12,288 -> 384"""
    return min(DEFAULT_MARGIN, left // MARGIN_SHARE)


def reply_reserve(window: int, *, requested: int | None, max_output: int | None) -> int:
    """Return the tokens to keep free for the reply: what the request asks for, otherwise a modest default.

    A model's largest possible output is not a request: reserving 64k of 128k because the model could write that much
    would halve the conversation.
    """
    if requested is not None:
        return max(0, min(requested, window))
    unasked = min(DEFAULT_REPLY, window // LARGEST_UNASKED_SHARE)
    return unasked if max_output is None or max_output <= 0 else min(unasked, max_output)


def clamp_reply(requested: int, *, window: int, used: int, least: int = 1) -> int:
    """Return the `max_tokens` that fits next to `used` tokens, but at least `least`, so that the request is valid.

    Example: clamp_reply(8_192, window=10_000, used=4_000) -> 6_000
    """
    return max(1, min(requested, max(least, window - used)))


def session_budget(window: int, *, reserve: float = 0.15, system: int = 0) -> int:
    """Return the tokens for history: the window less the share for the answer, the system text and a margin.

    Example: a window of 64,000 and 2,400 tokens of system text -> 50,000
    """
    return max(0, int(window * (1 - reserve)) - system - SESSION_MARGIN)


def reply_budget(window: int, max_tokens: int) -> int:
    """Return the tokens for history: the window less the answer and a margin, at least 4,096.

    Example: a window of 32,768 and an answer of 8,192 -> 20,480
    """
    return max(LEAST_BUDGET, window - max_tokens - REPLY_MARGIN)


#: Digits, grouped in threes by commas or spaces or split by "_", then an optional fraction and unit.
_COUNT = re.compile(
    r"(?P<whole>[+-]?(?:[0-9]{1,3}(?:[,\s][0-9]{3})+|[0-9]+(?:_[0-9]+)*))(?P<rest>\.[0-9]+)?\s?(?P<unit>[km]?)", re.I
)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def token_count(text: str) -> int | None:
    """Return a number of tokens written by a person; None if it is not a whole number.

    Example: "200k" or "200_000" or "200,000" -> 200000, "1.5M" -> 1500000
    """
    found = _COUNT.fullmatch(text.strip())
    if found is None:
        return None
    number = Decimal(re.sub(r"[,\s_]", "", found["whole"]) + (found["rest"] or "")) * _UNITS[found["unit"].lower()]
    return int(number) if number == number.to_integral_value() else None
