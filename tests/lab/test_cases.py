"""Cases: every nth of them."""

import pytest

from everlong.lab.cases import every
from everlong.lab.measures.probes import probe_cases
from tests.lab.folders import DATA


@pytest.mark.parametrize("step", [1, 2, 3, 10])
def test_every_nth_case_over_all_conversations(step: int) -> None:
    found = probe_cases(DATA, ("office",))
    flat = [case for group in found for case in group.cases]
    assert [case for group in every(found, step) for case in group.cases] == flat[::step]
