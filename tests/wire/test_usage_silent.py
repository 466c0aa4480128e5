"""Replies that look like a success and were none: what the figures give away."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.wire.usage import SilentOverflow, Usage, silent_overflow, truncated_window

SILENT = [
    pytest.param(
        Usage(prompt=200_001, output=300), "stop", None, SilentOverflow.ABOVE_WINDOW, id="z.ai takes too much"
    ),
    pytest.param(Usage(prompt=199_990), "length", None, SilentOverflow.NO_ROOM, id="xiaomi fills the window"),
    pytest.param(Usage(prompt=199_990, output=9), "max_tokens", 0, SilentOverflow.NO_ROOM, id="only thinking came"),
    pytest.param(Usage(prompt=190_000, output=10_000), "length", None, SilentOverflow.REPLY_CUT, id="lm studio stops"),
    pytest.param(
        Usage(prompt=150_000, output=3), "model_context_window_exceeded", None, SilentOverflow.SAID_SO, id="stop"
    ),
    pytest.param(Usage(prompt=200_000, output=1), "stop", None, None, id="exactly full is a success"),
    pytest.param(Usage(prompt=100_000), "length", None, None, id="half full"),
    pytest.param(Usage(prompt=100_000, output=4_096), "length", None, None, id="the reply limit was reached"),
    pytest.param(Usage(prompt=199_990, output=5), "stop", None, None, id="a short answer at the end"),
]


@pytest.mark.parametrize(("usage", "finish", "output", "expected"), SILENT)
def test_figures_give_a_silent_overflow_away(
    usage: Usage, finish: str, output: int | None, expected: SilentOverflow | None
) -> None:
    assert silent_overflow(usage, 200_000, finish=finish, output=output) is expected


TRUNCATED = [
    pytest.param(16_387, 160_000, 16_384, id="ollama 3839"),
    pytest.param(2_050, 2_685 * 2, 2_048, id="half a window for each slot"),
    pytest.param(4_096, 20_000, 4_096, id="the default"),
    pytest.param(4_030, 20_000, 4_096, id="whole messages dropped"),
    pytest.param(3_000, 20_000, None, id="no window ends there"),
    pytest.param(4_096, 5_000, None, id="an estimate may be that far off"),
    pytest.param(0, 20_000, None, id="nothing reported"),
    pytest.param(20_000, 20_000, None, id="all was read"),
]


@pytest.mark.parametrize(("reported", "estimate", "window"), TRUNCATED)
def test_a_server_that_read_too_little_betrays_its_window(reported: int, estimate: int, window: int | None) -> None:
    assert truncated_window(Usage(prompt=reported), estimate) == window


@settings(deadline=None)
@given(prompt=st.integers(0, 2_000_000), estimate=st.integers(0, 2_000_000))
def test_no_window_is_learned_from_a_prompt_that_was_read(prompt: int, estimate: int) -> None:
    window = truncated_window(Usage(prompt=prompt), estimate)
    if window is not None:
        assert window < estimate
        assert abs(window - prompt) <= 0.02 * window
