"""Keep the newest rounds whole and drop older ones.

It never separates a call from its results. The last user message and everything protected stay wherever they are, so
the result is never empty. If the last round alone is too large, its newest steps stay. Messages and tokens are counted
without the leading system text.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from everlong.compress.draft import Draft, Task, firm_steps, rounds_in
from everlong.core import head_length

__all__ = ["newest"]

STEP = "newest"
REASON = "older than the messages that are kept"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may stay. `most_messages` is None if there are not too many messages."""

    most_messages: int | None
    least_messages: int | None
    tokens: int

    def admit(self, piece: "Piece", messages: int, tokens: int) -> bool:
        """Return whether the piece may stay, given this many messages and tokens."""
        if tokens + piece.tokens > self.tokens:
            return False
        if self.most_messages is None:
            return True
        if self.least_messages is None:
            return messages + len(piece.positions) <= self.most_messages
        return not piece.early or messages < self.least_messages


@dataclass(frozen=True, slots=True)
class Piece:
    """Messages that stay or go together. `early` means before the last round."""

    positions: tuple[int, ...]
    tokens: int
    early: bool


def newest(
    draft: Draft,
    task: Task,
    *,
    most_messages: int | None = None,
    most_tokens: int | None = None,
    least_messages: int | None = None,
    whole_rounds: bool = True,
) -> Draft:
    """Keep the newest messages within `most_messages` and `most_tokens` (None: what the target leaves).

    With `least_messages`, a history above `most_messages` is reduced at once to the fewest whole rounds with at least
    this many messages. Without `whole_rounds` the first message kept may be the assistant's. `task.newest` overrides
    both numbers of messages. Example, most_messages=4: user, a, user, a, user -> user, a, user
    """
    if task.newest is not None:
        most_messages = least_messages = task.newest
        most_tokens, whole_rounds = None, True
    head = head_length(draft.messages)
    counted = draft.slots[head:]
    room = task.target - sum(slot.tokens for slot in draft.slots[:head]) if most_tokens is None else most_tokens
    too_many = most_messages is not None and len(counted) > most_messages
    if not too_many and sum(slot.tokens for slot in counted) <= room:
        return draft
    limits = Limits(most_messages if too_many else None, least_messages, room)
    pieces = list(_pieces(draft, whole_rounds=whole_rounds))
    gone = {position for piece in pieces for position in piece.positions}
    stays = [slot.tokens for position, slot in enumerate(draft.slots) if position >= head and position not in gone]
    count, tokens = len(stays), sum(stays)
    for piece in pieces:
        if count > 0 and not limits.admit(piece, count, tokens):
            break
        gone -= set(piece.positions)
        count += len(piece.positions)
        tokens += piece.tokens
    return draft.without(gone, STEP, REASON) if gone else draft


def _pieces(draft: Draft, *, whole_rounds: bool) -> Iterator[Piece]:
    """Yield what may go, newest first: the steps of the last round, then the rounds before it."""
    firm = firm_steps(draft)
    rounds = rounds_in(draft)
    for number in range(len(rounds) - 1, -1, -1):
        early = number < len(rounds) - 1
        loose = [step for step in rounds[number].steps if step not in firm]
        groups = [loose] if early and whole_rounds else [[step] for step in reversed(loose)]
        for steps in groups:
            positions = tuple(position for step in steps for position in range(step.start, step.stop))
            if positions:
                yield Piece(positions, sum(draft.slots[position].tokens for position in positions), early)
