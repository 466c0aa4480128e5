"""Where the beginning of a request is marked for its provider: where an earlier request ended."""

import pytest

from everlong.core import History
from everlong.engine.contracts import Caching, Request
from everlong.engine.requests.placement import beginning
from tests.core.build import assistant, system, user

TALK: History = (system("s"), user("left by a cut"), user("a"), assistant("b"), user("c"))


def asking(messages: History, caching: Caching | None) -> Request:
    return Request(model="m", messages=messages, caching=caching)


#: The first so many messages of a request, and how far they are marked.
BEGINNINGS: dict[str, tuple[History, int, int, int]] = {
    "an answer was never the end": (TALK, 5, 4, 3),
    "a question was": (TALK, 5, 3, 3),
    "all of it": (TALK, 5, 5, 5),
    "up to the volatile text, be it an answer": (TALK, 4, 4, 4),
    "beyond it": (TALK, 4, 5, 4),
    "answers alone": (TALK[3:4] * 3, 3, 2, 0),
}


@pytest.mark.parametrize(("messages", "lasting", "until", "marked"), BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_beginning_is_marked_where_an_earlier_request_ended(
    messages: History, lasting: int, until: int, marked: int
) -> None:
    cut = beginning(asking(messages, Caching(lasting=lasting)), until)
    assert cut.messages == messages[:until]
    assert cut.caching == Caching(lasting=marked)


def test_a_beginning_of_what_is_not_marked_is_not() -> None:
    assert beginning(asking(TALK, None), 2) == asking(TALK[:2], None)
