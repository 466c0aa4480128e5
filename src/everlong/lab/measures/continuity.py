"""The measure of continuity: after a compaction the work can continue if what it depends on is still there as messages.

Three things are checked in what is sent. The *task*: the user's first message, and the one that began the current work.
The *steps*: the last three of the current work, each an assistant message with its calls and their results. The
*words*: what the user said last, byte for byte. A quotation in a background block does not count: it must be a message
of the right role.

Agents without tool calls write their actions into the text and get results as user messages. Such an *observation* is a
result, not the user's word. The maker of a session knows which messages these are; nothing here asks the engine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from everlong.core import History, Message, Role, ToolCall
from everlong.tokens import Counter

__all__ = ["MISSES", "Standing", "judge", "observations_in"]

LAST_STEPS = 3
SMALL = 300  # tokens; a text up to this size must be complete
LEAST_SHARE = 0.25  # of a larger text
ROOM = 0.6  # of what compaction can move: the rest is for new messages before the next compaction
TASK_SHARE = 0.1  # of what compaction can move; of a larger task, the two ends are enough
END = 100  # characters of each end of a shortened task
#: How assistants write an action if they cannot call a tool.
ACTIONS = ("```", "Action:", "Calling tools:", "<command", "<execute", "<tool_call", "<function")
#: What can be missing, in the order of the report.
MISSES = ("task", "words", "step", "call", "result")


@dataclass(frozen=True, slots=True)
class Standing:
    """What is left after a compaction. `missing` names what is not, of `MISSES`; `step` means a whole step."""

    missing: tuple[str, ...] = ()

    @property
    def task(self) -> bool:
        """Return whether the task is there."""
        return "task" not in self.missing

    @property
    def words(self) -> bool:
        """Return whether the user's last message is there byte for byte."""
        return "words" not in self.missing

    @property
    def steps(self) -> bool:
        """Return whether the last steps are there."""
        return not {"step", "call", "result"}.intersection(self.missing)


@dataclass(frozen=True, slots=True)
class _Step:
    """An assistant message and the results of its actions, by their texts; `calls` are those of the message."""

    said: Message
    results: tuple[Message, ...]


def judge(
    history: History, sent: History, counter: Counter, *, movable: int, observations: frozenset[int] = frozenset()
) -> Standing:
    """Return what of a history is left in what is sent. `movable` are the tokens that compaction can move.

    `observations` are the positions of user messages that are results.
    """
    words = [at for at, message in enumerate(history) if message.role is Role.USER and at not in observations]
    missing: list[str] = []
    if words:
        missing += _task(history, (words[0], words[-1]), sent, counter, movable)
    steps = _last_steps(history, words[-1] + 1 if words else 0)
    for step in steps:
        missing += _step(step, sent, counter)
    if "result" in missing and sum(_least(step, counter) for step in steps) > ROOM * movable:
        missing = [name for name in missing if name != "result"]  # there is no space for a quarter of each
    return Standing(tuple(name for name in MISSES if name in missing))


def observations_in(messages: History) -> frozenset[int]:
    """Return which user messages of a session are results of the assistant's actions in its text.

    Only a session without any call has them: there, an answer to an action does not come from a person.
    """
    if any(message.calls for message in messages):
        return frozenset()
    found: set[int] = set()
    for at, message in enumerate(messages):
        if message.role is Role.USER and at and (at - 1 in found or _acts(messages[at - 1])):
            found.add(at)  # an action may have several
    return frozenset(found)


def _acts(message: Message) -> bool:
    return message.role is Role.ASSISTANT and any(sign in message.text for sign in ACTIONS)


# --- the task and the user's words ----------------------------------------------------------------


def _task(history: History, words: tuple[int, int], sent: History, counter: Counter, movable: int) -> Iterator[str]:
    """Yield what is missing of the user's first message and of the one that began the current work."""
    first, last = (history[at] for at in words)
    at_last = _places(last, sent)
    if not at_last:
        yield "words"
        yield "task"
        return
    if first is last:
        return
    whole = _places(first, sent)
    shortened = counter.message(first) > TASK_SHARE * movable and _ends(first, sent)
    if not any(at < at_last[-1] or first.parts == last.parts for at in whole or shortened or ()):
        yield "task"


def _places(message: Message, sent: History) -> list[int]:
    """Return where a user message occurs unchanged."""
    return [at for at, other in enumerate(sent) if other.role is message.role and other.parts == message.parts]


def _ends(message: Message, sent: History) -> list[int]:
    """Return where a user message occurs with its beginning and its end."""
    text = message.text
    head, tail = text[:END], text[-END:]
    return [
        at
        for at, other in enumerate(sent)
        if other.role is Role.USER and other.text.startswith(head) and tail in other.text[len(head) :]
    ]


# --- the last steps --------------------------------------------------------------------------------


def _last_steps(history: History, start: int) -> list[_Step]:
    """Return the last steps from `start` on; a step ends at the next assistant message."""
    said = [at for at in range(start, len(history)) if history[at].role is Role.ASSISTANT][-LAST_STEPS:]
    return [_Step(history[at], history[at + 1 : end]) for at, end in pairwise((*said, len(history)))]


def _step(step: _Step, sent: History, counter: Counter) -> Iterator[str]:
    """Yield what is missing of a step: the step itself, a call, a result."""
    at = next((at for at in range(len(sent) - 1, -1, -1) if _is_said(step.said, sent[at], counter)), None)
    if at is None:
        yield "step"
        return
    calls = {call.id: call for call in sent[at].calls}
    if not all(_is_called(call, calls.get(call.id), counter) for call in step.said.calls):
        yield "call"
    end = next((n for n in range(at + 1, len(sent)) if sent[n].role is Role.ASSISTANT), len(sent))
    if not all(_is_included(result, sent[at + 1 : end], counter) for result in step.results):
        yield "result"


def _least(step: _Step, counter: Counter) -> int:
    """Return how many tokens a step needs at least."""
    texts = [part.text for message in step.results for part in message.results]
    texts += [message.text for message in step.results if not message.results]
    results = sum(size if size < SMALL else int(LEAST_SHARE * size) for size in map(counter.text, texts))
    return results + sum(min(SMALL, counter.text(call.arguments)) for call in step.said.calls)


def _is_said(said: Message, other: Message, counter: Counter) -> bool:
    """Return whether a message is what the assistant said: by its calls, or by its text if there are none."""
    if other.role is not Role.ASSISTANT:
        return False
    if said.calls:
        return {call.id for call in said.calls} <= {call.id for call in other.calls} and _stands(
            said.text, other.text, counter
        )
    return not other.calls and _stands(said.text, other.text, counter)


def _is_called(call: ToolCall, other: ToolCall | None, counter: Counter) -> bool:
    """Return whether a call is there; long arguments, such as a written file, may be shortened."""
    if other is None or other.name != call.name:
        return False
    return other.arguments == call.arguments or counter.text(call.arguments) >= SMALL


def _is_included(result: Message, sent: Sequence[Message], counter: Counter) -> bool:
    """Return whether the results in a message, or an observation, are in the messages after their step."""
    if not result.results:
        return any(other.role is result.role and _stands(result.text, other.text, counter) for other in sent)
    texts = {part.call: part.text for message in sent for part in message.results}
    return all(part.call in texts and _stands(part.text, texts[part.call], counter) for part in result.results)


def _stands(text: str, other: str, counter: Counter) -> bool:
    """Return whether a text is there: complete if it is small, else a quarter of its tokens."""
    if text == other or text in other:
        return True
    tokens = counter.text(text)
    return tokens >= SMALL and _kept(text, other, counter) >= LEAST_SHARE * tokens


def _kept(text: str, other: str, counter: Counter) -> int:
    """Return how many tokens of a text are left in another one: its beginning, its end, and whole lines in between."""
    head = _common(text, other)
    rest, left = text[head:], other[head:]
    tail = _common(rest[::-1], left[::-1])
    middle = left[: len(left) - tail]
    lines = [line for line in middle.split("\n") if line.strip() and line in rest]
    return counter.text(text[:head]) + counter.text(rest[len(rest) - tail :]) + counter.text("\n".join(lines))


def _common(text: str, other: str) -> int:
    """Return the length of the common beginning of two texts, in characters."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (one, two) in pairs if one != two), min(len(text), len(other)))
