"""`nanobot`, the nine-stage document: a history by tokens, results by share and priority, long messages, an emergency.

The history is whole pairs within the document's budget. If the running round leaves too little room for them, the
oldest go. The emergency comes only after a provider refused a request. The limits are options by the names of nanobot's
configuration; `NanobotSettings` reads that file. Summaries are rolling, in the system text, and written only if they
are switched on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
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
from everlong.errors import InputError
from everlong.windows import window

__all__ = ["MAX_MESSAGES", "NANOBOT", "NanobotSettings", "nanobot"]

ROUNDS = 10  # between two summaries
MESSAGES = 50  # of history

#: Shared with the other document about nanobot.
MAX_MESSAGES = Option(
    name="max_messages",
    kind=int,
    default=MESSAGES,
    help="Messages of user and assistant that the history has at most.",
    least=1,
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
    ),
    Option(
        name="max_assistant_message_chars",
        kind=int,
        default=20_000,
        help="Characters of one assistant message.",
        unit="characters",
        least=0,
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


# --- nanobot's configuration file --------------------------------------------------------------------------------

WHOLE_NUMBERS = ("context_window_override", "max_user_message_chars", "max_assistant_message_chars")
FLAGS = ("context_compression", "enable_history_summarization")
SHARES = ("tool_result_soft_limit", "tool_result_hard_limit", "context_reserve_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class NanobotSettings:
    """The compression fields of nanobot's agent defaults."""

    context_compression: bool = True
    context_window_override: int | None = None
    tool_result_soft_limit: float = 0.3
    tool_result_hard_limit: float = 0.5
    context_reserve_ratio: float = 0.15
    compression_model: str | None = None
    enable_history_summarization: bool = False
    max_user_message_chars: int = 30_000
    max_assistant_message_chars: int = 20_000

    def __post_init__(self) -> None:
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} is true or false, not {getattr(self, name)!r}")
        for name in SHARES:
            share = getattr(self, name)
            if not isinstance(share, int | float) or not 0 < share < 1:
                raise InputError(f"{name} is a share between 0 and 1, not {share!r}")
        for name in WHOLE_NUMBERS:
            number = getattr(self, name)
            if number is not None and (type(number) is not int or number < 0):
                raise InputError(f"{name} is a whole number and cannot be negative: {number!r}")

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "NanobotSettings":
        """Return the settings of the agent defaults of a `config.json`, snake_case or camelCase.

        Null is the default; other fields are ignored.
        """
        known = {field.name for field in fields(cls)}
        given = {_snake(key): value for key, value in config.items()}
        return cls(**{key: value for key, value in given.items() if key in known and value is not None})

    def preset(self) -> Preset | str:
        """Return the preset with these settings; "off" if compression is switched off."""
        if not self.context_compression:
            return "off"
        return nanobot(
            soft=self.tool_result_soft_limit,
            hard=self.tool_result_hard_limit,
            user=self.max_user_message_chars,
            assistant=self.max_assistant_message_chars,
            reserve=self.context_reserve_ratio,
        )

    def budget(self, model: str) -> int:
        """Return what a request to the model may take: its window without the share kept for the answer."""
        context = window(model, override=self.context_window_override).context
        return int(context * (1 - self.context_reserve_ratio))


def _snake(name: str) -> str:
    """contextCompression -> context_compression"""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
