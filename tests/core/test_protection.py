"""Law 4's list: system text, the last user message, unread results, pins."""

from everlong.core.rounds import Protection, protected
from tests.core.build import assistant, calls, result, system, user


def test_what_is_protected_and_why() -> None:
    history = (system("s"), user("old"), calls("1"), result("1"), user("now"), calls("2"), result("2"))
    assert protected(history) == {0: Protection.SYSTEM, 4: Protection.ASKED, 6: Protection.UNREAD}


def test_a_result_is_read_once_the_assistant_spoke() -> None:
    assert 2 not in protected((user("a"), calls("1"), result("1"), assistant("b")))


def test_a_user_message_after_results_leaves_them_unread() -> None:
    history = (user("a"), calls("1"), result("1"), user("wait"))
    assert protected(history) == {2: Protection.UNREAD, 3: Protection.ASKED}


def test_pins_outside_the_history_name_nothing() -> None:
    history = (user("a"), assistant("b"), user("c"))
    assert protected(history, [1, 9, -1]) == {1: Protection.PINNED, 2: Protection.ASKED}


def test_nothing_asked_nothing_protected() -> None:
    assert protected(()) == {}
    assert protected((assistant("a"),)) == {}
