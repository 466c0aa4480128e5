"""`chatbox`, after Chatbox: at 60 % of what the window leaves, a summary takes the place of what was said before.

Only what came after the newest summary is sent, and tool results of the last two rounds. Where nobody knows the window,
96 000 tokens are assumed, and no summary is begun by itself.
"""

from functools import partial

from everlong.compress.preset import Preset, SummaryPolicy
from everlong.compress.steps.choice.newest import newest
from everlong.compress.steps.choice.tool_rounds import tool_rounds

__all__ = ["CHATBOX", "compaction_tokens"]

RESERVE = 32_000  # tokens for the answer
LEAST = 2  # at least half of the window is left, however large the reserve is


def compaction_tokens(window: int, threshold: float) -> int:
    """Return the tokens at which Chatbox compacts.

    Example: window 200 000, threshold 0.6 -> (200 000 - 32 000) x 0.6 = 100 800
    """
    return round(max(window - RESERVE, window // LEAST) * threshold)


CHATBOX = Preset(
    name="chatbox",
    compaction=(partial(tool_rounds, rounds=2), newest),
    every_call=True,
    summary=SummaryPolicy(style="chat", due=compaction_tokens, replaces=True, needs_window=True),
    unknown_window=96_000,
    threshold=0.6,
)
