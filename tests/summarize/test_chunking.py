"""A history in parts that one call can read."""

import itertools

from hypothesis import given, settings, strategies as st

from everlong.core import Message, pairs_of, steps_of
from everlong.summarize.chunking import FRAME, chunks
from everlong.summarize.transcripts import transcript
from everlong.tokens import Counter
from tests.core.build import assistant, calls, result, user
from tests.properties.histories import histories

COUNTER = Counter("gpt-4o")


def joined(parts: list[tuple[Message, ...]]) -> tuple[Message, ...]:
    return tuple(message for part in parts for message in part)


@settings(max_examples=100, deadline=None)
@given(histories(), st.integers(80, 600))
def test_parts_are_whole_steps_in_order_and_each_fits(messages: tuple[Message, ...], room: int) -> None:
    parts = chunks(messages, counter=COUNTER, room=room)
    assert joined(parts) == messages
    assert all(parts)
    assert sum(len(steps_of(part)) for part in parts) >= len(parts)
    assert sum(len(pairs_of(part)) for part in parts) == len(pairs_of(messages))
    for part in parts:
        assert COUNTER.text(transcript(part, counter=COUNTER, limit=room, language="zh")) <= room


def test_nothing_to_read_is_no_part() -> None:
    assert chunks((), counter=COUNTER, room=100) == []


def test_what_fits_is_one_part() -> None:
    said = (user("fix it"), calls("1"), result("1"), assistant("done"))
    assert chunks(said, counter=COUNTER, room=1_000) == [said]


def test_a_call_stays_with_its_results() -> None:
    said = (user("a " * 80), calls("1", "2"), result("1", "b " * 80), result("2", "c " * 80), assistant("d " * 80))
    assert [len(part) for part in chunks(said, counter=COUNTER, room=150)] == [1, 3, 1]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=40), st.integers(400, 1_500))
def test_there_are_no_more_parts_than_needed(lengths: list[int], room: int) -> None:
    said = tuple(user("word " * length) for length in lengths)
    parts = chunks(said, counter=COUNTER, room=room)
    for part, after in itertools.pairwise(parts):
        whole = transcript((*part, after[0]), counter=COUNTER, limit=100_000, language="en")
        assert COUNTER.text(whole) > room - 2 * FRAME - len(part)


def test_a_huge_message_is_a_part_of_its_own_and_keeps_its_ends() -> None:
    said = (user("before"), user("START " + "word " * 60_000 + "END"), user("after"))
    parts = chunks(said, counter=COUNTER, room=2_000)
    assert joined(parts) == said
    text = "".join(transcript(part, counter=COUNTER, limit=2_000, language="en") for part in parts)
    assert all(word in text for word in ("before", "START", "END", "after"))
