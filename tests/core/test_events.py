"""Events: a start has its outcomes, an outcome its start."""

import pytest

from everlong.core.events import OUTCOMES, STARTS, EventKind, starts

NAMES = {
    EventKind.TURN_STARTED: {"turn.finished", "turn.failed"},
    EventKind.SUMMARY_STARTED: {"summary.applied", "summary.skipped", "summary.failed"},
    EventKind.OVERFLOW_DETECTED: {"overflow.recovered", "overflow.failed"},
}


def test_what_starts_has_an_outcome() -> None:
    assert {kind: set(outcomes) for kind, outcomes in OUTCOMES.items()} == NAMES
    assert [kind for kind in EventKind if starts(kind)] == list(NAMES)


@pytest.mark.parametrize("kind", EventKind)
def test_an_outcome_ends_the_start_that_lists_it(kind: EventKind) -> None:
    assert STARTS.get(kind) == next((start for start, ends in OUTCOMES.items() if kind in ends), None)
    assert not (kind in STARTS and starts(kind))
