"""What a provider would refuse of a request, besides its length. Nothing is changed.

Requests mostly extend the one before, so each is looked at from where it differs. A *piece* is a message with the
results that follow it: what is wrong with one can be seen without the others. That the user speaks first, which only
Anthropic wants, is looked at by itself.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from everlong.core import History, Json, JsonObject
from everlong.lab.replay.caches import shared
from everlong.lab.strategy import rendered
from everlong.wire import openai_chat, problems

__all__ = ["Wholeness"]

MOST_TOLD = 3
RESULTS, SYSTEM = ("tool", "function"), ("system", "developer")
FIRST: JsonObject = {"role": "user", "content": "…"}


@dataclass(slots=True)
class Wholeness:
    """Looks at the requests of one conversation in their order."""

    user_first: bool
    #: What was wrong before anyone touched it.
    known: frozenset[str] = frozenset()
    _before: History = ()
    #: Where each piece of the request before ends, and what is wrong with it.
    _pieces: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)

    def refusals(self, messages: History) -> tuple[str, ...]:
        """What is wrong with it, a few kinds at most; () is valid."""
        return tuple(text for text in self.all_of(messages) if text not in self.known)[:MOST_TOLD]

    def all_of(self, messages: History) -> tuple[str, ...]:
        """Everything that is wrong with it, also what is known."""
        same = shared(self._before, messages)
        while self._pieces and self._pieces[-1][0] >= same:  # results may follow in the one that ends there
            self._pieces.pop()
        start = self._pieces[-1][0] if self._pieces else 0
        while start < len(messages):
            stop = _end_of_piece(messages, start)
            self._pieces.append((stop, _faults(messages[start:stop])))
            start = stop
        self._before = messages
        found = dict.fromkeys(text for _, faults in self._pieces for text in faults)
        return (*_about_the_first(messages, user_first=self.user_first), *found)


def _end_of_piece(messages: History, start: int) -> int:
    """Where the next message stands that does not begin with a result."""
    for at in range(start + 1, len(messages)):
        raws = rendered(messages[at])
        if raws and raws[0].get("role") not in RESULTS:
            return at
    return len(messages)


@lru_cache(maxsize=20_000)
def _faults(piece: History) -> tuple[str, ...]:
    body: list[Json] = [FIRST, *(raw for message in piece for raw in rendered(message))]
    return tuple(dict.fromkeys(problem.text for problem in problems(openai_chat.FORMAT, {"messages": body})))


def _about_the_first(messages: History, *, user_first: bool) -> tuple[str, ...]:
    roles = (raw.get("role") for message in messages for raw in rendered(message))
    first = next(roles, None)
    if first is None:
        return ("there are no messages",)
    while first in SYSTEM:
        first = next(roles, None)
    if first is None:
        return ("nobody but the system speaks",)
    return (f"first message is from {first}, not from the user",) if user_first and first != "user" else ()
