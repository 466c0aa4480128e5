"""The newest messages of a thread within a number of messages and tokens, for programs that compact by themselves.

Reads from the end, never the whole thread. Leaves out whole rounds, so that no answer stands without its question and
no result without its call. Ignores compaction points: `Threads.open` follows them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from everlong.core import History, Message, Role, Row, pairs_of, rounds_of
from everlong.engine import Threads
from everlong.errors import InputError
from everlong.tokens import Counter

__all__ = ["HistorySettings", "history"]

MOST_MESSAGES = 50
LOOP = 3  # steps from which a round is a loop of tool calls, not a question and its answer
PREFIX = "EVERLONG_HISTORY_"


def history(
    store: Threads,
    thread: str,
    *,
    max_messages: int = MOST_MESSAGES,
    max_tokens: int | None = None,
    counter: Counter | None = None,
) -> History:
    """Return the newest whole rounds that fit, oldest first, without leading system text.

    At most `max_messages` messages and `max_tokens` tokens. If the newest round is a loop of tool calls that is too
    long by itself, its newest steps that fit.
    Example: user, answer, user, call, result, answer with a limit of five messages -> user, call, result, answer
    """
    rows = store.last(thread, max_messages)
    messages = tuple(row.entry for row in rows if isinstance(row.entry, Message))
    if max_tokens is None:
        return messages[_start(messages, [0] * len(messages), 0, from_start=_is_start(rows)) :]
    sizes = [*map((counter or Counter()).message, messages)]
    return messages[_start(messages, sizes, max_tokens, from_start=_is_start(rows)) :]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """How much of a thread is read: the number of messages, and the characters of each (None: all)."""

    messages: int = MOST_MESSAGES
    characters: int | None = None

    def __post_init__(self) -> None:
        for name in ("messages", "characters"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InputError(f"{PREFIX}{name.upper()} is a whole number above 0, not {number}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "HistorySettings":
        """Read EVERLONG_HISTORY_MESSAGES and EVERLONG_HISTORY_CHARACTERS; an empty variable counts as absent.

        Example: {"EVERLONG_HISTORY_MESSAGES": "12"} -> HistorySettings(messages=12)
        """
        values: dict[str, int] = {}
        for name in ("messages", "characters"):
            text = environment.get(f"{PREFIX}{name.upper()}", "").strip()
            if text:
                try:
                    values[name] = int(text)
                except ValueError:
                    raise InputError(f"{PREFIX}{name.upper()} is a whole number above 0, not {text!r}") from None
        return cls(**values)


def _is_start(rows: Sequence[Row]) -> bool:
    return bool(rows) and rows[0].order == 0


def _start(messages: History, sizes: Sequence[int], budget: int, *, from_start: bool) -> int:
    """The index where the newest rounds that fit begin. Only a thread's first round may lack its user message."""
    start = len(messages)
    rounds = rounds_of(messages)
    for turn in reversed(rounds):
        size = sum(sizes[turn.start : start])
        is_whole = messages[turn.start].role is Role.USER or from_start
        if size > budget or not is_whole:
            break
        budget, start = budget - size, turn.start
    if start < len(messages) or not rounds or len(rounds[-1].steps) < LOOP:
        return start
    called = {pair.result[0] for pair in pairs_of(messages)}
    for step in reversed(rounds[-1].steps):
        size = sum(sizes[step.start : step.stop])
        if size > budget or any(messages[at].results and at not in called for at in range(step.start, step.stop)):
            break
        budget, start = budget - size, step.start
    return start
