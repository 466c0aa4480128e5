"""Law 4's list: system text, the last user message, unread results, pins, the task, what a client sends again."""

import pytest

from everlong.core.messages import History
from everlong.core.rounds import Protection, protected
from tests.core.build import assistant, calls, result, system, user


def test_what_is_protected_and_why() -> None:
    history = (system("s"), user("old"), calls("1"), result("1"), user("now"), calls("2"), result("2"))
    kept = {0: Protection.SYSTEM, 4: Protection.ASKED, 6: Protection.UNREAD}
    assert protected(history) == {**kept, 1: Protection.TASK}
    assert protected(history, keeps_task=False) == kept


def test_a_result_is_read_once_the_assistant_spoke() -> None:
    assert 2 not in protected((user("a"), calls("1"), result("1"), assistant("b")))


def test_a_user_message_after_results_leaves_them_unread() -> None:
    history = (user("a"), calls("1"), result("1"), user("wait"))
    assert protected(history) == {0: Protection.TASK, 2: Protection.UNREAD, 3: Protection.ASKED}


def test_pins_outside_the_history_name_nothing() -> None:
    history = (user("a"), assistant("b"), user("c"))
    assert protected(history, [1, 9, -1]) == {0: Protection.TASK, 1: Protection.PINNED, 2: Protection.ASKED}


def test_nothing_asked_nothing_protected() -> None:
    assert protected(()) == {}
    assert protected((assistant("a"),)) == {}


THOUGHT = "Thought: I look.\nAction: ls"
OBSERVED = "Observation:\na.py b.py"
FILES = "I have *added these files to the chat* so you can go ahead and edit them.\n\na.py\n```\n{}\n```"
OURS = "<background-0123abcd>\nQuoted …\n</background-0123abcd>"


def test_system_text_stays_wherever_it_stands() -> None:
    history = (system("s"), user("a"), assistant("b"), system("from now on: brief"), user("c"), system("now"))
    assert [at for at, why in protected(history, keeps_task=False).items() if why is Protection.SYSTEM] == [0, 3, 5]


def test_an_observation_is_an_unread_result_and_not_the_last_word() -> None:
    history = (system("s"), user("task"), assistant(THOUGHT), user(OBSERVED), assistant(THOUGHT), user(OBSERVED))
    assert protected(history) == {0: Protection.SYSTEM, 1: Protection.ASKED, 5: Protection.UNREAD}


def tasks(history: History, *pins: int) -> list[int]:
    return [at for at, why in protected(history, pins).items() if why is Protection.TASK]


@pytest.mark.parametrize("nudge", ["continue", "yes", "go on", "继续"])
def test_a_nudge_leaves_the_task_that_it_refers_to(nudge: str) -> None:
    history = (user("first"), assistant("a"), user("second"), assistant("b"), user("ok"), assistant("c"), user(nudge))
    assert sorted(tasks(history)) == [0, 2]
    assert tasks((*history[:-1], user("third"))) == [0]


def test_what_is_ours_or_the_clients_is_no_task() -> None:
    assert tasks((user(OURS), user(FILES.format(1)), user("the task"), assistant("a"), user("b"))) == [2]


def test_examples_before_another_code_base_are_no_task() -> None:
    switched = user(
        "I switched to a new code base. Please don't consider the above files or try to edit them any longer."
    )
    assert tasks((user("example"), assistant("x"), switched, assistant("Ok."), user("the task"), user("more"))) == [4]


def test_texts_that_were_pinned_stand_before_the_task() -> None:
    history = (user("always in French"), user("the task"), assistant("a"), user("b"))
    assert tasks(history, 0) == [1]
    assert tasks(history, 0, 1) == []  # it is pinned: byte for byte
    assert tasks(history) == [0]


def test_of_what_a_client_sends_again_only_the_newest_form_stays() -> None:
    history = (user(FILES.format(1)), assistant("Ok."), user("a"), user(FILES.format(2)), assistant("Ok."), user("b"))
    assert [at for at, why in protected(history).items() if why is Protection.CONTEXT] == [3]
    assert Protection.CONTEXT not in protected(history, keeps_task=False).values()


def test_where_no_user_spoke_the_last_of_their_role_counts() -> None:
    history = (assistant(THOUGHT), user(OBSERVED), assistant(THOUGHT), user(OBSERVED))
    assert protected(history) == {3: Protection.ASKED}
