"""A recorded session, to find what a call needed and whether the call had been made before.

A need counts if its string occurs in the history before the compaction, and not between the compaction and the call:
then only what the compaction left can contain it. A string that never occurred before was invented by the agent; a
string that occurs later is there anyway.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from everlong.core import History, ToolCall
from everlong.lab.measures.edits import replaced_texts
from everlong.lab.measures.presence import SEAM, Sent, texts_of
from everlong.lab.resume.needs import Need, needs_of, same_call

__all__ = ["Asked", "Record", "Repeat"]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A call that had been made before the compaction.

    `earlier` is its result at that time. `same` says whether it got the same result again; otherwise something had
    changed, and the agent had a reason to look.
    """

    earlier: str
    same: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """The checks of one call after a compaction: its needs, the texts that it replaces, and whether it is a repeat.

    `near` means that it is one of the next calls, whose needs are checked; later calls are only checked for repeats.
    """

    at: int
    near: bool
    needs: tuple[Need, ...] = ()
    edits: tuple[str, ...] = ()
    repeat: Repeat | None = None


class Record:
    """The messages of a session as one text, with the start of each message."""

    def __init__(self, messages: History) -> None:
        self.messages = messages
        texts = [f"{SEAM.join(texts_of(message))}{SEAM}" for message in messages]
        self._text = "".join(texts)
        self._starts = list(accumulate(map(len, texts), initial=0))

    def asked(self, compaction: int, at: int, number: int, most: int) -> list[Asked]:
        """Return what is checked for the calls of message `at`, after a compaction for the request to `compaction`.

        `number` calls were made between the two; the needs of the first `most` are checked.
        """
        return [
            self._asked(compaction, at, call, near=number + more < most)
            for more, call in enumerate(self.messages[at].calls)
        ]

    def _asked(self, compaction: int, at: int, call: ToolCall, *, near: bool) -> Asked:
        repeat = self._repeat(compaction, at, call)
        if not near:
            return Asked(at, near, repeat=repeat)
        needs = tuple(need for need in needs_of(call) if self._counts(need.text, compaction, at))
        since = Sent(self.messages[compaction:at])
        before = Sent(self.messages[:compaction])
        edits = tuple(text for text in replaced_texts(call) if before.has_lines(text) and not since.has_lines(text))
        return Asked(at, near, needs, edits, repeat)

    def _counts(self, text: str, compaction: int, at: int) -> bool:
        start, end = self._starts[compaction], self._starts[at]
        return self._text.find(text, 0, start) >= 0 and self._text.find(text, start, end) < 0

    # --- calls that were made before ---------------------------------------------------------------

    @cached_property
    def _made(self) -> dict[tuple[str, str], list[int]]:
        """The messages in which each call was made, in order."""
        made: dict[tuple[str, str], list[int]] = {}
        for at, message in enumerate(self.messages):
            for call in message.calls:
                made.setdefault(same_call(call), []).append(at)
        return made

    def _repeat(self, compaction: int, at: int, call: ToolCall) -> Repeat | None:
        key = same_call(call)
        before = [place for place in self._made[key] if place < compaction]
        if not before:
            return None
        first = next(each for each in self.messages[before[-1]].calls if same_call(each) == key)
        earlier, now = self._result(before[-1], first), self._result(at, call)
        return Repeat(earlier, same=earlier == now)

    def _result(self, at: int, call: ToolCall) -> str:
        """Return the text of a call's result; "" if it has none."""
        for message in self.messages[at + 1 :]:
            for part in message.results:
                if part.call == call.id:
                    return part.text.strip()
            if message.calls:
                break  # the results of a call come before the next one
        return ""
