"""`simple`, the short document: the last twelve messages of the history, each of at most 4,000 characters."""

from collections.abc import Mapping
from functools import partial
from typing import cast

from everlong.compress.options import Option, Scalar
from everlong.compress.preset import HistoryWindow, Preset, SummaryPolicy
from everlong.compress.steps.choice.pairs import fewer_pairs, last_messages
from everlong.compress.steps.trims.long_messages import long_messages
from everlong.compress.steps.trims.soft_trim import soft_trim

__all__ = ["SIMPLE"]

OPTIONS = (
    Option(
        name="history_window",
        kind=int,
        default=12,
        help="How many messages of the history are sent.",
        least=0,
        subject="messages",
    ),
    Option(
        name="max_chars_per_message",
        kind=int,
        default=4_000,
        help="The longest message.",
        unit="characters",
        least=1,
        subject="characters",
    ),
)


def simple(messages: int = 12, characters: int = 4_000) -> Preset:
    """Return the preset with this many messages of history, and characters of each."""
    return Preset(
        name="simple",
        compaction=(
            partial(last_messages, count=messages),
            partial(long_messages, user=characters, assistant=characters, shares=(1.0, 0.0), keep_last_round=False),
            partial(soft_trim, share=1.0, most_characters=characters),
            fewer_pairs,
        ),
        every_call=True,
        history=HistoryWindow(messages=messages, characters=characters),
        summary=SummaryPolicy(automatic=False),
        options=OPTIONS,
        configure=_configured,
    )


def _configured(options: Mapping[str, Scalar]) -> Preset:
    return simple(cast(int, options["history_window"]), cast(int, options["max_chars_per_message"]))


SIMPLE = simple()
