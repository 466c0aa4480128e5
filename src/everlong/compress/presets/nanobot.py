"""The preset `nanobot`, after the nine-stage document: limits for history, results and messages, and an emergency.

The history is whole question-answer pairs within the document's budget. If the current round leaves too little space
for them, the oldest go. The emergency runs only after a provider refused a request. The limits are options with the
names of nanobot's configuration. Summaries are rolling, stand in the system text, and are written only if they are
switched on.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from everlong.compress.options import Option, Scalar
from everlong.compress.preset import HistoryWindow, Preset, SummaryPolicy
from everlong.compress.steps.choice.pairs import fewer_pairs, pairs
from everlong.compress.steps.choice.priority import priority, result_priority
from everlong.compress.steps.emergency import emergency
from everlong.compress.steps.trims.hard_trim import hard_trim
from everlong.compress.steps.trims.long_messages import long_messages
from everlong.compress.steps.trims.soft_trim import soft_trim
from everlong.core import session_budget

__all__ = ["MAX_MESSAGES", "NANOBOT"]

ROUNDS = 10  # between two summaries
MESSAGES = 50  # of history

#: Shared with the other document about nanobot.
MAX_MESSAGES = Option(
    name="max_messages",
    kind=int,
    default=MESSAGES,
    help="The most user and assistant messages in the history.",
    least=1,
    subject="messages",
)
OPTIONS = (
    Option(
        name="tool_result_soft_limit",
        kind=float,
        default=0.3,
        help="The share of the context window for one tool result when it arrives.",
        unit="share",
        least=0,
        most=1,
    ),
    Option(
        name="tool_result_hard_limit",
        kind=float,
        default=0.5,
        help="The share of the context window for one tool result after a compaction.",
        unit="share",
        least=0,
        most=1,
    ),
    Option(
        name="max_user_message_chars",
        kind=int,
        default=30_000,
        help="The longest user message.",
        unit="characters",
        least=0,
        subject="characters",
    ),
    Option(
        name="max_assistant_message_chars",
        kind=int,
        default=20_000,
        help="The longest assistant message.",
        unit="characters",
        least=0,
        subject="characters",
    ),
    Option(
        name="context_reserve_ratio",
        kind=float,
        default=0.15,
        help="The share of the context window that is kept free for the reply.",
        unit="share",
        least=0,
        most=0.95,
    ),
    MAX_MESSAGES,
)


def nanobot(
    *,
    soft: float = 0.3,
    hard: float = 0.5,
    reserve: float = 0.15,
    user: int = 30_000,
    assistant: int = 20_000,
    messages: int = MESSAGES,
) -> Preset:
    """Return the preset with these limits: shares of the window, characters of long messages, messages of history."""

    def history_tokens(window: int, system: int, reply: int) -> int:  # noqa: ARG001 - the reserve is a share here
        return session_budget(window, reserve=reserve, system=system)

    return Preset(
        name="nanobot",
        arrival=(partial(soft_trim, share=soft, unit="characters"),),
        compaction=(
            partial(pairs, most_messages=messages, tokens=history_tokens),
            partial(hard_trim, share=hard, keep_last_round=False, rank=result_priority),
            partial(long_messages, user=user, assistant=assistant),
            fewer_pairs,
            partial(priority, keep_last_round=False),
        ),
        overflow=(partial(emergency, keep=(5, 2), unit="rounds", share=0.6),),
        every_call=True,
        history=HistoryWindow(messages=messages, characters=min(user, assistant)),
        budget=lambda window, _: int(window * (1 - reserve)),
        summary=SummaryPolicy(style="rolling", automatic=False, rounds=ROUNDS, in_system=True, when_needed=True),
        options=OPTIONS,
        configure=_configured,
    )


def _configured(options: Mapping[str, Scalar]) -> Preset:
    limits: dict[str, Any] = dict(options)
    return nanobot(
        soft=limits["tool_result_soft_limit"],
        hard=limits["tool_result_hard_limit"],
        user=limits["max_user_message_chars"],
        assistant=limits["max_assistant_message_chars"],
        reserve=limits["context_reserve_ratio"],
        messages=limits["max_messages"],
    )


NANOBOT = nanobot()
