"""What a threshold costs and keeps: the figures themselves, what lies between them, and where nothing is said."""

from itertools import pairwise
from math import isfinite
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from everlong.engine.preview import MEASURED, Outlook, outlook, outlook_of
from everlong.engine.settings import HIGHEST_THRESHOLD, LOWEST_THRESHOLD, Settings
from everlong.windows import Window, window

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "settings.md").read_text(encoding="utf-8")
WINDOWS = sorted(MEASURED)
THRESHOLDS = sorted(MEASURED[WINDOWS[0]])
CLOSE = 1e-9  # what reckoning with floats may be off
windows = st.integers(1, 10 * WINDOWS[-1]) | st.integers(1, 10**400)
thresholds = st.floats(LOWEST_THRESHOLD, HIGHEST_THRESHOLD)


def around(places: list[int] | list[float], at: float) -> tuple[float, float]:
    """The neighbours of a place; beyond all of them, the last one twice."""
    held = min(max(at, places[0]), places[-1])
    return max(place for place in places if place <= held), min(place for place in places if place >= held)


def test_every_window_was_measured_at_the_same_thresholds_from_the_lowest_to_the_highest() -> None:
    assert all(sorted(row) == list(row) == THRESHOLDS for row in MEASURED.values())
    assert list(MEASURED) == WINDOWS
    assert (THRESHOLDS[0], THRESHOLDS[-1]) == (LOWEST_THRESHOLD, HIGHEST_THRESHOLD)


@pytest.mark.parametrize("size", WINDOWS)
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_what_was_measured_is_said_as_it_is(size: int, threshold: float) -> None:
    assert outlook(size, threshold) == MEASURED[size][threshold]
    assert 0 < MEASURED[size][threshold].cost <= 1
    assert 0 < MEASURED[size][threshold].kept <= 1


@given(windows, thresholds)
def test_any_other_lies_between_its_neighbours(size: int, threshold: float) -> None:
    found = outlook(size, threshold)
    near = [MEASURED[int(w)][t] for w in around(WINDOWS, size) for t in around(THRESHOLDS, threshold)]
    for name in ("cost", "kept"):
        value = getattr(found, name)
        assert isfinite(value)
        values = [getattr(one, name) for one in near]
        assert min(values) - CLOSE <= value <= max(values) + CLOSE


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize(("small", "large"), [*pairwise(WINDOWS)])
def test_half_way_by_the_logarithm_is_the_middle(small: int, large: int, threshold: float) -> None:
    here, there = MEASURED[small][threshold], MEASURED[large][threshold]
    middle = outlook(round((small * large) ** 0.5), threshold)
    assert middle.cost == pytest.approx((here.cost + there.cost) / 2, abs=1e-4)
    assert middle.kept == pytest.approx((here.kept + there.kept) / 2, abs=1e-4)


@pytest.mark.parametrize(("size", "as_at"), [(1, WINDOWS[0]), (16_384, WINDOWS[0]), (10_000_000, WINDOWS[-1])])
def test_beyond_the_table_its_ends_hold(size: int, as_at: int) -> None:
    assert [outlook(size, threshold) for threshold in THRESHOLDS] == list(MEASURED[as_at].values())


KNOWN = window("mine", override=64_000)
SILENT: dict[str, tuple[Settings, Window]] = {
    "an unknown window": (Settings(), window("nobody-knows-this-model")),
    "another preset": (Settings(preset="chatbox"), KNOWN),
    "nothing is cut": (Settings(mode="off"), KNOWN),
    "cuts by rule alone": (Settings(mode="trim"), KNOWN),
    "no summaries": (Settings(summaries="off"), KNOWN),
    "a low mark of one's own": (Settings(low_mark=0.2), KNOWN),
}


@pytest.mark.parametrize("name", SILENT)
def test_where_nothing_was_measured_nothing_is_said(name: str) -> None:
    assert outlook_of(*SILENT[name]) is None


def test_settings_are_looked_at_with_their_window() -> None:
    assert outlook_of(Settings(threshold=0.6), KNOWN) == outlook(64_000, 0.6)
    assert outlook_of(Settings(threshold=0.6, soft_cap=50_000), KNOWN) == outlook(50_000, 0.6)
    assert outlook_of(Settings(threshold=0.6, soft_cap=40_000), KNOWN) is None, "so small a window was not measured"
    assert outlook_of(Settings(threshold=0.6, soft_cap=90_000), KNOWN) == outlook(64_000, 0.6)


def test_the_page_about_settings_has_the_table() -> None:
    def shown(one: Outlook) -> str:
        return " / ".join(map(str, one.percents))

    rows = [("window", *(f"{threshold:.2f}" for threshold in THRESHOLDS)), ("---",) * (len(THRESHOLDS) + 1)]
    rows += [(f"{size:,}", *map(shown, row.values())) for size, row in MEASURED.items()]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    assert f"\n{table}\n" in PAGE
