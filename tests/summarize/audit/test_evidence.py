"""Evidence: what users agreed to, said and counted."""

import pytest

from everlong.summarize.audit.evidence import evidence_of
from tests.core.build import assistant, user

ASKED = assistant("Should I deploy the shop?")
YES = {
    "a choice": "2",
    "four characters": "plan",
    "two words": "go ahead",
    "中文": "可以",
    "a long yes": "ok " + "x" * 197,
}
NO = {
    "five characters": "plans",
    "a no": "no",
    "a no further on": "ok but not today",
    "wait": "等等",
    "longer than a short answer": "ok " + "x" * 198,
}


@pytest.mark.parametrize("reply", YES.values(), ids=YES)
def test_a_short_yes_agrees_to_the_question_before_it(reply: str) -> None:
    (statement,) = evidence_of([ASKED, user(reply)], None).statements
    assert statement.assents
    assert ("publish", False) in statement.acts


@pytest.mark.parametrize("reply", NO.values(), ids=NO)
def test_anything_else_agrees_to_nothing(reply: str) -> None:
    statements = evidence_of([ASKED, user(reply)], None).statements
    assert not any(statement.assents for statement in statements)
    assert not any(("publish", False) in statement.acts for statement in statements)


def test_figures_are_known_with_and_without_their_unit_and_in_pieces() -> None:
    figures = evidence_of([user("1,500 rows, 2.5k users, 3万 yuan, on 2026-11-15")], None).figures
    assert {"1500", "2500", "30000", "2026-11-15", "2026", "11", "15"} <= figures
