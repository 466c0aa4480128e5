"""Counted tokens against the provider's: whatever was observed, what is said to fit fits."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from everlong.engine.budget import Anchor, Gauge, calibration_from, calibration_to
from everlong.tokens import Calibration

REPORTS = st.lists(st.tuples(st.integers(0, 300_000), st.integers(-5, 1_200_000)), max_size=12)
LIMITS = st.integers(-100, 2_000_000)


@st.composite
def gauges(draw: st.DrawFn) -> Gauge:
    calibration = Calibration(draw(st.floats(0, 1)))
    for counted, reported in draw(REPORTS):
        calibration = calibration.observe(counted, reported)
    anchor = st.builds(
        Anchor,
        model=st.just("m"),
        compactions=st.just(0),
        counted=st.integers(1, 500_000),
        reported=st.integers(1, 500_000),
    )
    return Gauge(calibration, draw(st.none() | anchor))


@settings(max_examples=300, deadline=None)
@given(gauge=gauges(), limit=LIMITS)
def test_law2_what_may_be_counted_fits(gauge: Gauge, limit: int) -> None:
    countable = gauge.countable(limit)
    assert countable >= 0
    assert countable == 0 or gauge.true(countable) <= limit


@settings(max_examples=200, deadline=None)
@given(gauge=gauges(), limit=st.integers(0, 2_000_000), less=st.integers(0, 50_000))
def test_less_fits_too_and_a_larger_limit_takes_no_less(gauge: Gauge, limit: int, less: int) -> None:
    assert gauge.countable(limit) <= gauge.countable(limit + less)
    assert gauge.unanchored().true(max(0, gauge.unanchored().countable(limit) - less)) <= limit


@settings(max_examples=200, deadline=None)
@given(gauge=gauges(), limit=st.integers(1_000, 2_000_000))
def test_little_is_given_away(gauge: Gauge, limit: int) -> None:
    """One more than may be counted may not fit, by no more than rounding."""
    plain = gauge.unanchored()
    assert plain.true(plain.countable(limit) + 2) >= limit


@settings(max_examples=200, deadline=None)
@given(gauge=gauges(), counted=st.integers(0, 500_000), more=st.integers(0, 1_000))
def test_more_is_never_reckoned_less(gauge: Gauge, counted: int, more: int) -> None:
    assert gauge.unanchored().true(counted) <= gauge.unanchored().true(counted + more)


@settings(max_examples=100, deadline=None)
@given(gauge=gauges())
def test_a_calibration_is_kept_as_it_was(gauge: Gauge) -> None:
    kept = calibration_to(gauge.calibration)
    assert calibration_from(kept, gauge.calibration.prior) == gauge.calibration


@pytest.mark.parametrize(
    "kept",
    [None, "", "nonsense", "{}", "[]", "7", "null", '{"ratios": null}', '{"ratios": ["x"]}', '{"ratios": [0]}',
     '{"ratios": [-1, 1]}', '{"ratios": [NaN]}', '{"ratios": [Infinity, 1.0]}', '{"ratios": 7}',
     json.dumps({"ratios": [1e308] * 9})],
)  # fmt: skip
def test_what_cannot_be_a_calibration_is_learned_anew(kept: str | None) -> None:
    assert calibration_from(kept, 0.05) == Calibration(0.05)


def test_a_long_record_is_cut_to_its_end() -> None:
    kept = json.dumps({"ratios": [1.0 + n / 100 for n in range(50)]})
    assert calibration_from(kept, 0.0).ratios[-1] == 1.49
    assert len(calibration_from(kept, 0.0).ratios) == 9
