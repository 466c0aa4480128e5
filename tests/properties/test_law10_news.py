"""Law 10: a turn costs its news. Work per turn grows with what is new, not with the length of the conversation.

Work is counted, not timed: characters that a counter reads, messages that it looks up, messages that the index
takes in, functions of `wire` that are called to repair and to check.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import everlong.wire
from everlong.compress import PRESETS
from everlong.core import CallId, History, Message, Role, Text, ToolCall, ToolResult
from everlong.engine import View, ViewOptions, view_of
from everlong.tokens import Counter
from tests.calls import Calls
from tests.properties.histories import FORMATS
from tests.properties.wishes import ROLLING, wish_of

rolling = pytest.mark.parametrize("preset", ROLLING)


class Meter(Counter):
    """A counter that keeps account of its own work."""

    def __init__(self) -> None:
        super().__init__("gpt-4o")
        self.characters = 0
        self.lookups = 0

    def text(self, text: str) -> int:
        self.characters += len(text)
        return super().text(text)

    def message(self, message: Message) -> int:
        self.lookups += 1
        return super().message(message)


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn cost."""

    length: int
    new_characters: int
    characters: int
    lookups: int
    indexed: int
    cut: bool


def rounds(number: int) -> Iterator[tuple[Message, ...]]:
    """Questions, each with a call, its result and an answer; all of about one size, all different."""
    for at in range(number):
        call = ToolCall(CallId(f"call_{at}"), "read_file", f'{{"path": "src/part_{at}.py"}}')
        lines = "\n".join(f"value_{at}_{line} = {at * 31 + line}" for line in range(12))
        yield (
            Message(Role.USER, (Text(f"What does part {at} say about value_{at}_3?"),)),
            Message(Role.ASSISTANT, (call,)),
            Message(Role.TOOL, (ToolResult(call.id, (Text(lines),)),)),
            Message(Role.ASSISTANT, (Text(f"In part {at} it is {at * 31 + 3}."),)),
        )


def indexed(view: View | None) -> int:
    """How many messages its index holds; it has none before something left the window."""
    return 0 if view is None or view.index is None else view.index.messages


def told(wish: ViewOptions, turns: Iterator[tuple[Message, ...]]) -> list[Turn]:
    """The cost of each turn of a conversation that grows."""
    meter = Meter()
    history: History = ()
    view: View | None = None
    costs = []
    for new in turns:
        before = (meter.characters, meter.lookups, indexed(view), view.compactions if view else 0)
        history += new
        view = view_of(history, replace(wish, counter=meter), view)
        spent = (meter.characters - before[0], meter.lookups - before[1], indexed(view) - before[2])
        costs.append(Turn(len(history), size(new), *spent, cut=view.compactions > before[3]))
    return costs


def size(messages: tuple[Message, ...]) -> int:
    texts = [part for message in messages for part in message.parts]
    return sum(len(str(part)) for part in texts)


@rolling
def test_law10_between_cuts_a_turn_reads_only_its_own_characters(preset: str) -> None:
    turns = told(wish_of(PRESETS[preset], "openai-chat", 20_000, deep=True), rounds(300))
    assert any(turn.cut for turn in turns)
    for turn in turns:
        if not turn.cut:
            assert turn.characters <= turn.new_characters
            assert turn.indexed == 0


@rolling
def test_law10_between_cuts_a_turn_looks_up_its_round_and_no_more(preset: str) -> None:
    turns = told(wish_of(PRESETS[preset], "openai-chat", 20_000, deep=True), rounds(300))
    assert max(turn.lookups for turn in turns if not turn.cut) <= 40


@rolling
def test_law10_each_message_is_indexed_once(preset: str) -> None:
    turns = told(wish_of(PRESETS[preset], "openai-chat", 4_000, deep=True), rounds(200))
    assert sum(turn.cut for turn in turns) > 5
    assert sum(turn.indexed for turn in turns) <= turns[-1].length


@rolling
def test_law10_a_conversation_twice_as_long_costs_about_twice_as_much(preset: str) -> None:
    """Cuts included: what a cut reads is bounded by what it may keep."""
    wish = wish_of(PRESETS[preset], "openai-chat", 4_000, deep=True)
    once, twice = (sum(turn.characters for turn in told(wish, rounds(number))) for number in (150, 300))
    assert twice <= 2.5 * once


@rolling
def test_law10_a_cut_reads_no_more_late_than_early(preset: str) -> None:
    wish = wish_of(PRESETS[preset], "openai-chat", 4_000, deep=True)
    cuts = [turn.characters for turn in told(wish, rounds(400)) if turn.cut]
    early, late = cuts[2:6], cuts[-4:]
    assert sum(late) <= 2 * sum(early)


#: Whose functions are counted.
WIRE = Path(everlong.wire.__file__).parent


@rolling
@pytest.mark.parametrize("fmt", FORMATS)
def test_law10_in_one_long_tool_loop_a_step_is_checked_by_itself(preset: str, fmt: str) -> None:
    """No user speaks for hundreds of messages: the round is as long as the conversation."""
    wish = wish_of(PRESETS[preset], fmt, 10**6, window=10**6)
    history: History = (Message(Role.USER, (Text("Go through all parts."),)),)
    view = view_of(history, wish)
    costs = []
    for asked in rounds(150):
        history += asked[1:3]
        with Calls(folder=WIRE) as calls:
            view = view_of(history, wish, view)
        costs.append(calls.made)
    assert view.messages == history
    assert max(costs[-20:]) <= 1.5 * max(costs[10:30])
