"""What is kept about an endpoint: taken where it makes sense, learned anew where it does not."""

import pytest

from everlong.engine.budget import calibration_of, learn_window, learned_window
from everlong.engine.contracts import Call
from everlong.store import MemoryThreads
from everlong.tokens import Calibration, Counter

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
