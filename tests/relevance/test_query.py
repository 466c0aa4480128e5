"""What the end of a conversation is about."""

from everlong.relevance.query import newest_results, query_of
from tests.core.build import assistant, calls, result, user

ACTED = (assistant("Thought: I look.\nAction: ls"), user("Observation:\nseal found"))


def test_what_is_asked_is_what_a_user_said_and_not_what_a_tool_answered() -> None:
    asked = query_of((user("Find the pump."), *ACTED))
    assert asked["pump"] > asked["seal"] > 0.0


def test_the_newest_results_may_come_in_a_users_role() -> None:
    assert newest_results((user("a"), calls("1"), result("1", "boat"), *ACTED)) == "Observation:\nseal found"
    assert newest_results((user("a"), *ACTED, calls("1"), result("1", "boat"))) == "boat"
    assert newest_results((user("a"), assistant("b"))) == ""
