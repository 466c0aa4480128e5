"""The attack on the app's API in short: no answer of 500, and every error is one line."""

from tests.attack.fuzz_app import AppFinding, attack_app
from tests.attack.fuzz_formats import REFUSED, VALID

INPUTS = 400


def test_no_request_to_the_app_is_answered_with_500() -> None:
    outcomes = list(attack_app(range(INPUTS)))
    assert [finding for finding in outcomes if isinstance(finding, AppFinding)] == []
    assert min(outcomes.count(VALID), outcomes.count(REFUSED)) > INPUTS // 5
