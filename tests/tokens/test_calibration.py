"""Calibration follows the reports, not the odd one, and errs high."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.tokens.counter import KEPT, Calibration


def observed(*ratios: float, prior: float = 0.2) -> Calibration:
    calibration = Calibration(prior)
    for ratio in ratios:
        calibration = calibration.observe(10_000, round(10_000 * ratio))
    return calibration


def test_without_reports_the_count_stands_with_its_prior_spread() -> None:
    assert Calibration(0.2).expected(1_000) == 1_000
    assert Calibration(0.2).at_most(1_000) == 1_200


def test_C3_after_three_reports_the_error_is_below_five_percent() -> None:
    calibration = observed(1.31, 1.29, 1.30)
    assert calibration.expected(50_000) == pytest.approx(65_000, rel=0.05)


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("odd", [0.3, 3.5])
def test_one_odd_report_changes_nothing(at: int, odd: float) -> None:
    ratios = [1.1, 1.1, 1.1]
    ratios.insert(at, odd)
    assert observed(*ratios).factor == pytest.approx(1.1)
    assert observed(*ratios).spread < 0.05


@pytest.mark.parametrize(("prior", "ratio", "factor"), [(0.0, 2.0, 1.0), (0.1, 2.0, 2.0), (0.1, 0.5, 1.0)])
def test_a_single_report_corrects_an_estimate_upwards_only(prior: float, ratio: float, factor: float) -> None:
    assert Calibration(prior, (ratio,)).factor == factor


@pytest.mark.parametrize(
    ("counted", "reported"), [(50, 400), (10_000, 0), (10_000, 90_000), (10_000, -5), (10_000, 100)]
)
def test_reports_about_something_else_are_ignored(counted: int, reported: int) -> None:
    assert Calibration(0.2).observe(counted, reported) == Calibration(0.2)


def test_a_provider_that_changed_is_followed() -> None:
    assert observed(*[1.0] * 9, *[1.4] * KEPT).factor == pytest.approx(1.4)


@given(st.lists(st.floats(0.5, 2.0), min_size=3, max_size=12), st.integers(1_000, 10**6))
@settings(max_examples=200, deadline=None)
def test_decisions_use_at_least_what_is_expected(ratios: list[float], counted: int) -> None:
    calibration = observed(*ratios)
    assert calibration.at_most(counted) >= calibration.expected(counted)
    assert len(calibration.ratios) <= KEPT


@given(st.floats(0.6, 1.8), st.lists(st.floats(-0.05, 0.05), min_size=4, max_size=9))
@settings(max_examples=200, deadline=None)
def test_C3_all_but_one_of_the_reports_stay_under_the_upper_figure(true: float, noise: list[float]) -> None:
    calibration = observed(*(true * (1 + n) for n in noise))
    over = [ratio for ratio in calibration.ratios if calibration.at_most(10_000) < int(10_000 * ratio)]
    assert len(over) <= 1


@pytest.mark.parametrize(("counted", "kept"), [(199, 0), (200, 1)])
def test_reports_of_small_requests_are_ignored(counted: int, kept: int) -> None:
    assert len(Calibration().observe(counted, counted).ratios) == kept


@pytest.mark.parametrize(("ratio", "kept"), [(4.0, 1), (4.01, 0), (0.25, 1), (0.249, 0)])
def test_reports_about_another_request_are_ignored(ratio: float, kept: int) -> None:
    assert len(Calibration().observe(10_000, round(10_000 * ratio)).ratios) == kept


def test_the_measured_spread_counts_from_the_third_report_on() -> None:
    two = Calibration(prior=0.25, ratios=(1.0, 1.0))
    assert (Calibration(prior=0.25).spread, two.spread, two.observe(1_000, 1_000).spread) == (0.25, 0.05, 0.01)
