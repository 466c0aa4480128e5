"""`simple`, the short document: the last twelve messages, each of at most 4,000 characters."""

from functools import partial

from everlong.compress.preset import HistoryWindow, Preset, SummaryPolicy
from everlong.compress.steps.long_messages import long_messages
from everlong.compress.steps.newest import newest
from everlong.compress.steps.soft_trim import soft_trim

__all__ = ["SIMPLE"]

MESSAGES = 12
CHARACTERS = 4_000  # of one message

SIMPLE = Preset(
    name="simple",
    compaction=(
        partial(newest, most_messages=MESSAGES, whole_rounds=False),
        partial(long_messages, user=CHARACTERS, assistant=CHARACTERS, shares=(1.0, 0.0), keep_last_round=False),
        partial(soft_trim, share=1.0, most_characters=CHARACTERS),
    ),
    every_call=True,
    history=HistoryWindow(messages=MESSAGES, characters=CHARACTERS),
    summary=SummaryPolicy(automatic=False),
)
