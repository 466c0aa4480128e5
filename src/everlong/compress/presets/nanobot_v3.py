"""`nanobot-v3`, the shorter document: a history by tokens, long results on arrival, thoughts, results, long messages.

The history is whole pairs within what the window leaves beside the answer. Results of the running round stay, unless
they alone would take more than 85 % of the window, which the document promises as well: then its oldest go too. The
emergency comes only after a provider refused a request. Summaries are rolling, in the system text, and written only if
they are switched on.
"""

from collections.abc import Mapping
from functools import partial
from typing import cast

from everlong.compress.options import Scalar
from everlong.compress.preset import HistoryWindow, Preset, SummaryPolicy
from everlong.compress.presets.nanobot import MAX_MESSAGES
from everlong.compress.steps.choice.pairs import fewer_pairs, pairs
from everlong.compress.steps.emergency import emergency
from everlong.compress.steps.trims.hard_trim import hard_trim
from everlong.compress.steps.trims.long_messages import long_messages
from everlong.compress.steps.trims.reasoning import reasoning
from everlong.compress.steps.trims.soft_trim import soft_trim
from everlong.core import reply_budget

__all__ = ["NANOBOT_V3"]

RESULT_CHARACTERS = 15_000
MESSAGE_CHARACTERS = 30_000
MESSAGES = 50  # of history
ROUNDS = 10  # between two summaries
MOST = 0.85  # of the window


def nanobot_v3(messages: int = MESSAGES) -> Preset:
    """Return the preset with this many messages of history."""
    return Preset(
        name="nanobot-v3",
        arrival=(partial(soft_trim, share=0.3, unit="tokens", most_characters=RESULT_CHARACTERS),),
        compaction=(
            partial(pairs, most_messages=messages, tokens=_history_tokens),
            partial(reasoning, longest=2_000),
            partial(hard_trim, share=0.5),
            partial(long_messages, user=MESSAGE_CHARACTERS, assistant=MESSAGE_CHARACTERS, shares=(0.6, 0.2)),
            fewer_pairs,
            partial(hard_trim, share=None, keep_last_round=False),
        ),
        overflow=(partial(emergency, keep=(10, 4), unit="messages", share=0.6),),
        every_call=True,
        history=HistoryWindow(messages=messages, characters=RESULT_CHARACTERS),
        budget=lambda window, _: int(window * MOST),
        summary=SummaryPolicy(style="rolling", automatic=False, rounds=ROUNDS, in_system=True, when_needed=True),
        agent={"max_tokens": 8_192, "temperature": 0.7, "most_steps": 20},
        options=(MAX_MESSAGES,),
        configure=_configured,
    )


def _history_tokens(window: int, system: int, reply: int) -> int:  # noqa: ARG001 - its margin is for the system text
    return reply_budget(window, reply)


def _configured(options: Mapping[str, Scalar]) -> Preset:
    return nanobot_v3(cast(int, options["max_messages"]))


NANOBOT_V3 = nanobot_v3()
