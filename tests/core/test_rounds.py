"""Where a history may be cut."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core.messages import CallId, History, Message, Role, Text, ToolResult
from everlong.core.rounds import head_length, last_user_index, pairs_of, rounds_of, safe_cuts, steps_of
from tests.core.build import assistant, calls, result, system, user


@dataclass(frozen=True)
class Case:
    id: str
    history: History
    cuts: tuple[int, ...]


CASES = [
    Case("nothing", (), (0,)),
    Case("plain talk may be cut anywhere", (user("a"), assistant("b")), (0, 1, 2)),
    Case("never between a call and its result", (user("a"), calls("1"), result("1"), user("b")), (0, 1, 3, 4)),
    Case("parallel results stay together", (calls("1", "2"), result("2"), result("1")), (0, 3)),
    Case("a user message between call and result goes with them", (calls("1"), user("x"), result("1")), (0, 3)),
    Case("a missing result binds nothing", (calls("1"), user("x")), (0, 1, 2)),
    Case("an orphan binds nothing", (result("9"), user("x")), (0, 1, 2)),
    Case("a result before its call is an orphan", (result("1"), calls("1")), (0, 1, 2)),
    Case("a second result binds too", (calls("1"), result("1"), result("1")), (0, 3)),
    Case(
        "ids counted from zero in every turn pair with the nearest call",
        (calls("0"), result("0"), calls("0"), result("0")),
        (0, 2, 4),
    ),
    Case(
        "an observation belongs to the action before it",
        (user("a"), assistant("Action: ls"), user("Observation: x"), assistant("Action: cat"), user("Observation: y")),
        (0, 1, 3, 5),
    ),
    Case(
        "two observations of one action stay with it",
        (user("a"), assistant("Action: ls"), user("Observation: x"), user("Observation: y"), user("b")),
        (0, 1, 4, 5),
    ),
    Case("interleaved calls close together", (calls("1"), calls("2"), result("1"), result("2")), (0, 4)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_safe_cuts(case: Case) -> None:
    assert safe_cuts(case.history) == case.cuts


def test_rounds_run_from_user_message_to_user_message() -> None:
    history = (system("s"), user("a"), calls("1"), result("1"), assistant("b"), user("c"))
    assert [(r.start, r.stop) for r in rounds_of(history)] == [(1, 5), (5, 6)]
    assert [(s.start, s.stop) for s in rounds_of(history)[0].steps] == [(1, 2), (2, 4), (4, 5)]


def test_neither_observations_nor_context_begin_a_round() -> None:
    files = user("I have *added these files to the chat* so you can go ahead and edit them.")
    acted = (assistant("Action: ls"), user("Observation: x"))
    history = (system("s"), user("a"), *acted, *acted, files, assistant("Ok."), user("b"))
    assert [(r.start, r.stop) for r in rounds_of(history)] == [(1, 8), (8, 9)]
    assert [(r.start, r.stop) for r in rounds_of((files, assistant("Ok."), user("b")))] == [(0, 2), (2, 3)]


def test_what_stands_at_ours_begins_no_round() -> None:
    assert [(r.start, r.stop) for r in rounds_of((user("a"), user("b"), user("c")), {1})] == [(0, 2), (2, 3)]


def test_a_history_without_a_user_message_is_one_round() -> None:
    assert [(r.start, r.stop) for r in rounds_of((system("s"), assistant("a"), assistant("b")))] == [(1, 3)]


def test_head_is_the_leading_system_text_only() -> None:
    assert head_length((system("s"), system("t"), user("a"), system("u"))) == 2
    assert head_length((system("s"),)) == 1


def test_results_beside_user_text_belong_to_their_call() -> None:
    mixed = Message(Role.TOOL, (ToolResult(CallId("1"), (Text("r"),)), Text("and stop that")))
    assert safe_cuts((user("a"), calls("1"), mixed)) == (0, 1, 3)


def test_last_user_message() -> None:
    assert last_user_index((user("a"), assistant("b"), user("c"), assistant("d"))) == 2
    assert last_user_index((assistant("b"),)) is None
    assert last_user_index((user("a"), assistant("Action: ls"), user("Observation: x"))) == 0
    assert last_user_index((assistant("Action: ls"), user("Observation: x"))) == 1


MAKERS = (
    lambda n: user(f"u{n}"),
    lambda n: assistant(f"a{n}"),
    lambda n: calls(str(n % 4)),
    lambda n: calls(str(n % 4), str((n + 1) % 4)),
    lambda n: result(str(n % 4)),
    lambda n: system(f"s{n}"),
    lambda n: assistant(f"Thought: {n}\nAction: ls"),
    lambda n: user(f"Observation:\n{n}"),
)
histories = st.lists(st.tuples(st.integers(0, len(MAKERS) - 1), st.integers(0, 9)), max_size=24).map(
    lambda picks: tuple(MAKERS[kind](n) for kind, n in picks)
)


@given(histories)
@settings(max_examples=300, deadline=None)
def test_a_cut_between_any_two_steps_leaves_every_call_with_its_results(history: History) -> None:
    pairs = pairs_of(history)
    for cut in safe_cuts(history):
        assert all((pair.call[0] < cut) == (pair.result[0] < cut) for pair in pairs)


@given(histories)
@settings(max_examples=300, deadline=None)
def test_steps_and_rounds_cover_the_history_once(history: History) -> None:
    steps = steps_of(history)
    assert [at for step in steps for at in range(step.start, step.stop)] == list(range(len(history)))
    rounds = rounds_of(history)
    assert [at for r in rounds for at in range(r.start, r.stop)] == list(range(head_length(history), len(history)))
    assert all(messages_before_are_closed(history, r.start) for r in rounds)


def messages_before_are_closed(history: History, cut: int) -> bool:
    return pairs_of(history[:cut]) + tuple(pair for pair in pairs_of(history) if pair.call[0] >= cut) == pairs_of(
        history
    )
