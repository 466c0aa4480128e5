"""`nanobot-v3`, the shorter document: long results on arrival; then thoughts, results, long messages, and the oldest.

The messages get what the window leaves beside the reply, less than the reply budget of the document. Summaries are
rolling, in the system text, and written only if they are switched on.
"""

from functools import partial

from everlong.compress.preset import HistoryWindow, Preset, SummaryPolicy
from everlong.compress.steps.emergency import emergency
from everlong.compress.steps.hard_trim import hard_trim
from everlong.compress.steps.long_messages import long_messages
from everlong.compress.steps.reasoning import reasoning
from everlong.compress.steps.soft_trim import soft_trim
from everlong.core import reply_budget

__all__ = ["NANOBOT_V3"]

RESULT_CHARACTERS = 15_000
MESSAGE_CHARACTERS = 30_000
ROUNDS = 10  # between two summaries

NANOBOT_V3 = Preset(
    name="nanobot-v3",
    arrival=(partial(soft_trim, share=0.3, unit="tokens", most_characters=RESULT_CHARACTERS),),
    compaction=(
        partial(reasoning, longest=2_000),
        partial(hard_trim, share=0.5),
        partial(long_messages, user=MESSAGE_CHARACTERS, assistant=MESSAGE_CHARACTERS, shares=(0.6, 0.2)),
        partial(emergency, keep=(10, 4), unit="messages", share=0.6),
    ),
    every_call=True,
    history=HistoryWindow(characters=RESULT_CHARACTERS),
    budget=reply_budget,
    summary=SummaryPolicy(style="rolling", automatic=False, rounds=ROUNDS, in_system=True, when_needed=True),
)
