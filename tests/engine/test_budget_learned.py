"""What is kept about an endpoint: taken where it makes sense, learned anew where it does not."""

from dataclasses import replace

import pytest

from everlong.core import EventKind
from everlong.engine.blocking_engine import BlockingEngine
from everlong.engine.budget import Limits, calibration_of, learn_window, learned_limits, learned_window
from everlong.engine.contracts import Call, Prepared
from everlong.engine.engine import Engine
from everlong.engine.settings import Settings
from everlong.errors import ContextOverflow
from everlong.store import MemoryThreads
from everlong.tokens import Calibration, Counter
from tests.core.build import assistant, user

CALL = Call(model="m", endpoint="http://a/v1")
KEY = '["http://a/v1", "m"]'


@pytest.mark.parametrize("kept", ["", "nonsense", "null", "true", "0", "-5", "8000.5", '"8000"', "[8000]", "{}"])
def test_a_window_that_cannot_be_one_is_none(kept: str) -> None:
    threads = MemoryThreads()
    threads.keep_fact("window", KEY, kept)
    assert learned_window(threads, CALL) is None
    assert learn_window(threads, CALL, 8_000)
    assert not learn_window(threads, CALL, 8_000)
    assert learned_window(threads, CALL) == 8_000


def test_a_calibration_that_cannot_be_one_is_learned_anew() -> None:
    threads = MemoryThreads()
    threads.keep_fact("calibration", KEY, '{"ratios": [0, -1, "x"]}')
    counter = Counter("gpt-4o")
    assert calibration_of(threads, CALL, counter) == Calibration(counter.vocabulary.spread)


def test_endpoints_and_models_do_not_share() -> None:
    threads = MemoryThreads()
    learn_window(threads, CALL, 8_000)
    assert learned_window(threads, Call(model="m", endpoint="http://b/v1")) is None
    assert learned_window(threads, Call(model="n", endpoint="http://a/v1")) is None


# --- refusals without a figure --------------------------------------------------------------------------------------


def _refused(window: int | None = None, *, limit: int | None = None) -> tuple[BlockingEngine, Prepared]:
    """A thread whose request was refused, and what is sent next."""
    engine = Engine(MemoryThreads(), settings=Settings(window=window)).blocking
    for number in range(20):
        engine.append("t", [user(f"Question {number}? " + "word " * 400), assistant("Yes. " + "thing " * 400)])
    engine.append("t", [user("And now?")])
    prepared = engine.prepare("t", CALL)
    return engine, engine.recover(prepared, ContextOverflow("prompt is too long", limit=limit))


def test_a_refusal_without_a_figure_is_learned_and_told() -> None:
    engine, again = _refused()
    learned = learned_window(engine.context.threads, CALL)
    assert learned is not None
    assert (again.window.context, again.window.source) == (learned, "learned")
    assert learned < 128_000
    [event] = engine.context.threads.events("t", kinds=[EventKind.WINDOW_LEARNED])
    assert (event.tokens_after, event.reason) == (learned, "larger requests were refused")


def test_a_figure_beats_bounds() -> None:
    engine, _ = _refused()
    assert learn_window(engine.context.threads, CALL, 9_000)
    assert learned_window(engine.context.threads, CALL) == 9_000


@pytest.mark.parametrize("limit", [None, 12_000], ids=["no figure", "a figure"])
def test_a_refusal_below_the_users_figure_lowers_it_here_and_both_are_shown(limit: int | None) -> None:
    engine, again = _refused(40_000, limit=limit)
    assert again.window.source == "learned"
    assert again.window.context < 40_000
    assert ("user", 40_000) in again.window.conflicts
    elsewhere = engine.prepare("t", replace(CALL, endpoint="http://b/v1"))
    assert (elsewhere.window.context, elsewhere.window.source) == (40_000, "user")


def test_a_new_figure_of_the_user_counts_until_it_is_refused_as_well() -> None:
    engine, _ = _refused(40_000)
    threads = engine.context.threads
    threads.change("t", settings='{"window": 60000}')
    raised = engine.prepare("t", CALL)
    assert (raised.window.context, raised.window.source) == (60_000, "user")
    again = engine.recover(raised, ContextOverflow("prompt is too long"))
    assert again.window.source == "learned"


@pytest.mark.parametrize("kept", ["", "nonsense", "null", "7", "[]", '{"total": 5, "refuted": "x"}'])
def test_limits_that_cannot_be_read_are_none(kept: str) -> None:
    threads = MemoryThreads()
    threads.keep_fact("limits", KEY, kept)
    assert learned_limits(threads, CALL) == Limits()
