"""A server that dropped the head of a prompt: the window it serves, exactly at the limits of what counts as one."""

import pytest

from everlong.wire import Usage, truncated_window

ROWS = {
    "exactly six tenths were read": (4_095, 6_825, 4_096),
    "a little less than six tenths": (4_096, 6_827, 4_096),
    "a little more than six tenths": (4_096, 6_826, None),
    "98 in a hundred of the window": (4_015, 20_000, 4_096),
    "a little less": (4_014, 20_000, None),
    "16 tokens above the window": (4_112, 20_000, 4_096),
    "17 above": (4_113, 20_000, None),
    "the smallest window": (2_048, 20_000, 2_048),
    "half of it": (1_024, 20_000, None),
    "the largest": (1_048_576, 2_000_000, 1_048_576),
    "twice that": (2_097_152, 4_000_000, None),
}


@pytest.mark.parametrize(("reported", "estimate", "window"), ROWS.values(), ids=ROWS)
def test_a_truncated_window_exactly_at_its_boundary(reported: int, estimate: int, window: int | None) -> None:
    assert truncated_window(Usage(prompt=reported), estimate) == window
