"""Contract: pins, of a message or of a text."""

from collections.abc import Callable

import pytest

from everlong.engine import Threads
from everlong.errors import StoreError
from tests.store.contract.entries import CONVERSATION, HOSTILE_TEXTS, point

Reopen = Callable[[], Threads]


@pytest.fixture
def thread(store: Threads) -> str:
    store.create("t")
    store.append("t", [*CONVERSATION, point(4)])
    return "t"


def test_messages_and_texts_are_pinned_in_order(store: Threads, thread: str, reopen: Reopen) -> None:
    pins = (store.pin(thread, 4), store.pin(thread, None, "never use tabs"), store.pin(thread, 1))
    assert [(pin.order, pin.text) for pin in pins] == [(4, ""), (None, "never use tabs"), (1, "")]
    assert len({pin.id for pin in pins}) == 3
    assert store.pins(thread) == pins
    again = reopen()
    assert again.pins(thread) == pins
    assert again.open(thread).pins == pins


def test_the_same_pin_again_is_the_one_that_is_there(store: Threads, thread: str, reopen: Reopen) -> None:
    message, text = store.pin(thread, 1), store.pin(thread, None, "x")
    assert store.pin(thread, 1) == message
    again = reopen()
    assert again.pin(thread, None, "x") == text
    assert again.pins(thread) == (message, text)


def test_an_unpinned_pin_is_gone_and_may_come_back(store: Threads, thread: str, reopen: Reopen) -> None:
    first, second = store.pin(thread, 1), store.pin(thread, 3)
    store.unpin(thread, first.id)
    store.unpin(thread, first.id)
    store.unpin(thread, "no such pin")
    assert store.pins(thread) == (second,)
    store.pin(thread, 1)
    assert [pin.order for pin in reopen().pins(thread)] == [3, 1]


@pytest.mark.parametrize("text", [text for name, text in HOSTILE_TEXTS.items() if name != "empty"])
def test_pinned_texts_come_back_to_the_byte(store: Threads, thread: str, reopen: Reopen, text: str) -> None:
    store.pin(thread, None, text)
    assert reopen().pins(thread)[0].text == text


@pytest.mark.parametrize(("order", "text"), [(99, ""), (-1, ""), (6, ""), (2**70, ""), (None, "")])
def test_what_is_not_there_cannot_be_pinned(store: Threads, thread: str, order: int | None, text: str) -> None:
    with pytest.raises(StoreError):
        store.pin(thread, order, text)
    assert store.pins(thread) == ()


def test_pins_are_of_their_thread(store: Threads, thread: str) -> None:
    store.create("other")
    store.append("other", CONVERSATION)
    pin = store.pin(thread, 1)
    store.unpin("other", pin.id)
    assert store.pins("other") == ()
    assert store.pins(thread) == (pin,)


def test_before_a_message_its_pin_was_not_there(store: Threads, thread: str) -> None:
    store.pin(thread, 4)
    text = store.pin(thread, None, "x")
    assert store.open(thread, before=4).pins == (text,)
