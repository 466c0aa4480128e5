"""A strategy of one's own: what it leaves out or adds is reported, what is protected stays."""

import pytest

from everlong.compress.draft import OURS, Draft, Task, draft_of
from everlong.compress.steps.custom import Compressor, step_from
from everlong.core import Action, History, pairs_of
from everlong.tokens import Counter
from tests.core.build import assistant, calls, result, system, user

COUNTER = Counter("gpt-4o")
HISTORY: History = (
    system("Be careful."),
    user("first"),
    calls("1"),
    result("1", "one"),
    assistant("done"),
    user("second"),
    calls("2"),
    result("2", "two"),
)
PINNED = 3


def applied(strategy: Compressor, history: History = HISTORY) -> Draft:
    task = Task(target=1, counter=COUNTER, pins=frozenset({PINNED}))
    return step_from(strategy, "mine")(draft_of(history, task), task)


STRATEGIES: dict[str, Compressor] = {
    "leaves out everything": lambda _history, _target: (),
    "keeps the end": lambda history, _target: history[-1:],
    "keeps what may go": lambda history, _target: (history[1], history[4]),
    "says something else": lambda _history, _target: (user("a summary"),),
    "turns it round": lambda history, _target: history[::-1],
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_law4_what_is_protected_stays_with_its_calls(name: str) -> None:
    draft = applied(STRATEGIES[name])
    for message in (HISTORY[0], *HISTORY[2:4], *HISTORY[5:]):
        assert message in draft.messages
    assert len(pairs_of(draft.messages)) >= 2
    assert draft.total == COUNTER.messages(draft.messages)


@pytest.mark.parametrize("name", STRATEGIES)
def test_law5_what_is_not_sent_has_an_edit(name: str) -> None:
    draft = applied(STRATEGIES[name])
    dropped = {edit.at for edit in draft.edits if edit.action is Action.DROP}
    assert dropped | {slot.at for slot in draft.slots if slot.at != OURS} == set(range(len(HISTORY)))
    assert all(edit.ref for edit in draft.edits if edit.action is Action.DROP)


def test_what_it_adds_is_ours() -> None:
    draft = applied(STRATEGIES["says something else"])
    assert [slot.message.text for slot in draft.slots if slot.at == OURS] == ["a summary"]
    assert [edit.at for edit in draft.edits if edit.action is Action.INSERT] == [0]


def test_equal_messages_are_told_apart_by_their_order() -> None:
    history = tuple(user("again") for _ in range(5))
    draft = applied(lambda messages, _target: messages[:3], history)
    assert [slot.at for slot in draft.slots] == [0, 1, 2, PINNED, 4]
