"""How much of a window the messages may take.

    window = messages (what is available) + tool schemas + reply reserve + margin
    messages = fixed (system text, pins, the task, the last user message) + movable

All figures are tokens. Threshold and target are shares of the movable part, the only one that a compaction changes: at
the threshold a compaction is due, and it goes down to the target. Where the figures come from (registry, user, server)
is not known here.
"""

from dataclasses import dataclass

__all__ = [
    "DEFAULT_REPLY",
    "SMALLEST_REPLY",
    "Budget",
    "clamp_reply",
    "reply_budget",
    "reply_reserve",
    "session_budget",
]

DEFAULT_REPLY = 4_096
SMALLEST_REPLY = 1_024  # an answer that was asked for is not made shorter than this
DEFAULT_MARGIN = 1_024  # providers add framing that no counter sees
LARGEST_UNASKED_SHARE = 4  # a reserve that nobody asked for takes at most a quarter of the window
SESSION_MARGIN = 2_000  # tokens; what a turn adds besides history and system text
REPLY_MARGIN = 4_096  # tokens; system text, tools and framing
LEAST_BUDGET = 4_096  # tokens; less history than this is no conversation
MARGIN_SHARE = 32  # and the margin at most this part of what is left: a 2k window still has room
LARGEST_SHARE = 2  # the reserve takes at most half of what the prompt leaves; the request gets what is left in the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The parts of a window, and the shares at which a history is compacted."""

    window: int
    reply: int = DEFAULT_REPLY
    tools: int = 0
    margin: int = DEFAULT_MARGIN
    #: Messages that no compaction moves.
    fixed: int = 0
    threshold: float = 0.95
    target: float = 0.5

    def __post_init__(self) -> None:
        if min(self.window, self.reply, self.tools, self.margin, self.fixed) < 0:
            raise ValueError("a budget has no negative parts")
        if not 0 < self.target <= self.threshold <= 1:
            raise ValueError(
                f"shares must be 0 < target <= threshold <= 1, not target={self.target}, threshold={self.threshold}"
            )

    @property
    def available(self) -> int:
        """Tokens left for messages, system text included; never negative."""
        return max(0, self.window - self.reply - self.tools - self.margin)

    @property
    def movable(self) -> int:
        """Tokens that a compaction can move; never negative."""
        return max(0, self.available - self.fixed)

    @property
    def threshold_tokens(self) -> int:
        """From this many tokens of messages on a compaction is due."""
        return self.fixed + int(self.movable * self.threshold)

    @property
    def target_tokens(self) -> int:
        """A compaction goes down to this many tokens of messages."""
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
        """The budget of a request. What must be sent comes first, and the reserve takes at most half of the rest.

        `least` is how far a reserve that was asked for may be reduced.
        Example: window 16 384, nothing requested, no known output limit -> reply 4 096, margin 384
        Example: window 64 000, fixed 28 000, requested 32 000 -> reply 18 000
        """
        left = max(0, window - tools - fixed)
        wanted = reply_reserve(window, requested=requested, max_output=max_output)
        reply = max(min(wanted, left // LARGEST_SHARE), min(wanted, least))
        margin = _margin_of(max(0, left - reply))
        return cls(window=window, reply=reply, tools=tools, fixed=fixed, margin=margin)


def _margin_of(left: int) -> int:
    """What to keep free for framing that no counter sees, of so many tokens.

    Example: 12 288 -> 384
    """
    return min(DEFAULT_MARGIN, left // MARGIN_SHARE)


def reply_reserve(window: int, *, requested: int | None, max_output: int | None) -> int:
    """What to keep free for the answer: what the request asks for, otherwise a modest default.

    A model's largest possible output is not a wish: reserving 64k of 128k because the model could
    write that much would halve the conversation.
    """
    if requested is not None:
        return max(0, min(requested, window))
    unasked = min(DEFAULT_REPLY, window // LARGEST_UNASKED_SHARE)
    return unasked if max_output is None or max_output <= 0 else min(unasked, max_output)


def clamp_reply(requested: int, *, window: int, used: int, least: int = 1) -> int:
    """The `max_tokens` that still fits beside `used` tokens; not below `least`, so that the request stays valid.

    Example: clamp_reply(8_192, window=10_000, used=4_000) -> 6_000
    """
    return max(1, min(requested, max(least, window - used)))


def session_budget(window: int, *, reserve: float = 0.15, system: int = 0) -> int:
    """Tokens for history: the window without the share kept for the answer, the system text and a margin.

    Example: a window of 64 000 and 2 400 tokens of system text -> 50 000
    """
    return max(0, int(window * (1 - reserve)) - system - SESSION_MARGIN)


def reply_budget(window: int, max_tokens: int) -> int:
    """Tokens for history: the window without the answer and a margin, at least 4 096.

    Example: a window of 32 768 and an answer of 8 192 -> 20 480
    """
    return max(LEAST_BUDGET, window - max_tokens - REPLY_MARGIN)
