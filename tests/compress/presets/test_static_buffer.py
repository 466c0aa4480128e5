"""Where the buffer of `static-buffer` begins."""

import pytest

from everlong.compress.presets.static_buffer import buffer_start
from everlong.core import Message
from tests.core.build import assistant, calls, result, system, user


def pairs(messages: int) -> list[Message]:
    return [user(f"u{at}") if at % 2 == 0 else assistant(f"a{at}") for at in range(messages)]


@pytest.mark.parametrize(
    ("messages", "start"),
    [(0, 0), (11, 0), (50, 0), (51, 40), (55, 40), (90, 40), (91, 80), (92, 80)],
)
def test_the_buffer_shrinks_when_it_is_too_long_and_grows_again(messages: int, start: int) -> None:
    assert buffer_start(pairs(messages)) == start


def test_the_buffer_never_begins_inside_a_round_and_system_text_is_not_in_it() -> None:
    loop = [user("go"), *(m for n in range(40) for m in (calls(f"c{n}"), result(f"c{n}"))), assistant("done")]
    assert buffer_start([system("s"), *loop, user("next")]) == 1  # nothing older than one long round can go
    assert buffer_start([system("s"), user("a"), *loop, user("next")]) == 2


def test_the_buffer_begins_at_a_users_words_and_not_at_an_observation() -> None:
    acted = (assistant("Thought: I look.\nAction: ls"), user("Observation: a.py"))
    history = (user("first"), *acted * 3, user("second"), *acted * 3, user("third"))
    assert history[buffer_start(history, limit=8, least=2)].text == "second"
