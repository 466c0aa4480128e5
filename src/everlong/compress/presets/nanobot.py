"""`nanobot`, the nine-stage document: a history by tokens, results by share and priority, long messages, an emergency.

The history is whole pairs within the document's budget. If the running round leaves too little room for them, the
oldest go. The emergency comes only after a provider refused a request. The limits are options by the names of nanobot's
configuration. Summaries are rolling, in the system text, and written only if they
are switched on.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from everlong.compress.options import Option, Scalar
from everlong.compress.preset import HistoryWindow, Preset, SummaryPolicy
from everlong.compress.steps.emergency import emergency
from everlong.compress.steps.hard_trim import hard_trim
from everlong.compress.steps.long_messages import long_messages
from everlong.compress.steps.pairs import fewer_pairs, pairs
from everlong.compress.steps.priority import priority, result_priority
from everlong.compress.steps.soft_trim import soft_trim
from everlong.core import session_budget

__all__ = ["MAX_MESSAGES", "NANOBOT"]

ROUNDS = 10  # between two summaries
MESSAGES = 50  # of history

#: Shared with the other document about nanobot.
MAX_MESSAGES = Option(
    name="max_messages",
    kind=int,
    default=MESSAGES,
    help="Messages of user and assistant that the history has at most.",
    least=1,
    subject="messages",
)
OPTIONS = (
    Option(
        name="tool_result_soft_limit",
        kind=float,
        default=0.3,
        help="The share of the window that one tool result may take on arrival.",
        unit="share",
        least=0,
        most=1,
    ),
    Option(
        name="tool_result_hard_limit",
        kind=float,
        default=0.5,
        help="The share of the window that one tool result may take after a compaction.",
        unit="share",
        least=0,
        most=1,
    ),
    Option(
        name="max_user_message_chars",
        kind=int,
        default=30_000,
        help="Characters of one user message.",
        unit="characters",
        least=0,
        subject="characters",
    ),
    Option(
        name="max_assistant_message_chars",
        kind=int,
        default=20_000,
        help="Characters of one assistant message.",
        unit="characters",
        least=0,
        subject="characters",
    ),
    Option(
        name="context_reserve_ratio",
        kind=float,
        default=0.15,
        help="The share of the window that is kept for the answer.",
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
