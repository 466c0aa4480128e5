"""What a provider's cache makes of a row of requests, by tables that can be reckoned by hand."""

from dataclasses import dataclass

import pytest

from everlong.core import History, Message, Role, Text
from everlong.lab.replay.caches import Cache, Outgoing, Rules, shared
from tests.lab.folders import said

AUTOMATIC = Rules(kind="automatic", least=1_000, step=100, seconds=300)
MARKED = Rules(kind="marked", least=1_000, seconds=300)
FRONT = 2_000
A, B, C, D = (said(Role.USER, letter) for letter in "abcd")
SIZES = {A: 500, B: 250, C: 130, D: 70}


@dataclass(frozen=True)
class Sent:
    """A request at a moment, and the tokens that must be read and written for it."""

    messages: History
    read: int
    written: int
    at: float = 0
    marks: tuple[int, ...] | None = None
    front: int = FRONT


#: name -> rules and requests. The front is 2000 tokens, A 500, B 250, C 130, D 70.
ROWS: dict[str, tuple[Rules, tuple[Sent, ...]]] = {
    "nothing is cached": (Rules(kind="none"), (Sent((A,), 0, 0), Sent((A, B), 0, 0))),
    "automatic: what begins alike, in whole steps": (
        AUTOMATIC,
        (Sent((A, B), 0, 2_750), Sent((A, B, C), 2_700, 180), Sent((A, B, C, D), 2_800, 150)),
    ),
    "automatic: up to the first change": (AUTOMATIC, (Sent((A, B), 0, 2_750), Sent((A, C, B), 2_500, 380))),
    "automatic: the front alone": (AUTOMATIC, (Sent((A,), 0, 2_500), Sent((B,), 2_000, 250))),
    "automatic: another front shares nothing": (AUTOMATIC, (Sent((A,), 0, 2_500), Sent((A,), 0, 2_600, front=2_100))),
    "automatic: too short to be kept": (
        AUTOMATIC,
        (Sent((A,), 0, 0, front=400), Sent((A, B), 0, 1_150, front=400), Sent((A, B), 1_100, 50, front=400)),
    ),
    "automatic: too short to be read": (
        AUTOMATIC,
        (Sent((A, B), 0, 1_050, front=300), Sent((A, C, D), 0, 1_000, front=300)),
    ),
    "automatic: forgotten": (AUTOMATIC, (Sent((A,), 0, 2_500), Sent((A, B), 0, 2_750, at=301))),
    "automatic: just not forgotten": (AUTOMATIC, (Sent((A,), 0, 2_500), Sent((A, B), 2_500, 250, at=300))),
    "automatic: each use begins its time anew": (
        AUTOMATIC,
        (Sent((A,), 0, 2_500), Sent((A,), 2_500, 0, at=200), Sent((A, B), 2_500, 250, at=400)),
    ),
    "automatic: only what is used lives on": (
        AUTOMATIC,
        (
            Sent((A, B), 0, 2_750),
            Sent((A, C), 2_500, 130, at=200),
            Sent((A, B, D), 2_500, 320, at=400),  # A was used at 200, B was not
        ),
    ),
    "automatic: an older request is found again": (
        AUTOMATIC,
        (Sent((A, B), 0, 2_750), Sent((C,), 2_000, 130), Sent((A, B, D), 2_700, 120)),
    ),
    "ideal marks: to the token": (
        MARKED,
        (Sent((A, B), 0, 2_750), Sent((A, B, C), 2_750, 130), Sent((A, C), 2_500, 130)),
    ),
    "marks: what ends at one is read from one": (
        MARKED,
        (Sent((A, B), 0, 2_750, marks=(0, 2)), Sent((A, B, C), 2_750, 130, marks=(0, 3))),
    ),
    "marks: what ends at none is not": (
        MARKED,
        (Sent((A, B), 0, 2_750, marks=(0, 2)), Sent((A, C), 2_000, 630, marks=(0, 2))),
    ),
    "marks: behind the last one nothing is written": (
        MARKED,
        (Sent((A, B), 0, 2_500, marks=(1,)), Sent((A, B), 2_500, 0, marks=(1,))),
    ),
    "marks: without any nothing is kept or read": (
        MARKED,
        (Sent((A, B), 0, 2_750, marks=(2,)), Sent((A, B), 0, 0, marks=()), Sent((A, B), 2_750, 0, marks=(2,))),
    ),
    "marks: one before the least is none": (
        MARKED,
        (Sent((A, B), 0, 1_150, marks=(0, 1, 2), front=400), Sent((A, C), 0, 1_030, marks=(1, 2), front=400)),
    ),
    "marks: each is forgotten by itself": (
        MARKED,
        (
            Sent((A, B), 0, 2_750, marks=(1, 2)),
            Sent((A, C), 2_500, 130, at=200, marks=(1, 2)),
            Sent((A, B, D), 2_500, 320, at=400, marks=(1, 3)),
        ),
    ),
}


@pytest.mark.parametrize(("rules", "row"), ROWS.values(), ids=ROWS)
def test_what_is_read_and_written(rules: Rules, row: tuple[Sent, ...]) -> None:
    cache = Cache(rules)
    for sent in row:
        outgoing = Outgoing.of(sent.front, sent.messages, [SIZES[message] for message in sent.messages], sent.marks)
        usage = cache.take(outgoing, sent.at, output=7)
        assert (usage.cached, usage.cache_written) == (sent.read, sent.written), sent
        assert (usage.prompt, usage.output) == (sent.front + sum(SIZES[message] for message in sent.messages), 7)


def blocks(many: int) -> Message:
    return Message(Role.USER, tuple(Text(f"block {number}") for number in range(many)))


@pytest.mark.parametrize(("many", "found"), [(1, True), (19, True), (20, False), (40, False)])
def test_a_mark_is_found_from_at_most_twenty_blocks_behind_it(many: int, found: bool) -> None:
    cache = Cache(MARKED)
    cache.take(Outgoing.of(FRONT, (A,), [500], (1,)), 0)
    longer = cache.take(Outgoing.of(FRONT, (A, blocks(many)), [500, 900], (2,)), 1)
    assert (longer.cached, longer.cache_written) == ((2_500, 900) if found else (0, 3_400))


def test_a_second_mark_where_the_request_before_ended_finds_it_from_any_distance() -> None:
    cache = Cache(MARKED)
    cache.take(Outgoing.of(FRONT, (A,), [500], (1,)), 0)
    longer = cache.take(Outgoing.of(FRONT, (A, blocks(40)), [500, 900], (1, 2)), 1)
    assert (longer.cached, longer.cache_written) == (2_500, 900)


def test_where_an_old_request_ended_is_known_as_long_as_it_lives_however_many_came_since() -> None:
    """A summary is asked behind the beginning of a long round: there a request ended that many others extended."""
    cache = Cache(MARKED)
    row = tuple(said(Role.USER, f"{number}") for number in range(60))
    for end in range(1, 60):
        cache.take(Outgoing.of(FRONT, row[:end], [100] * end, (0, end)), float(end))
    asked = Outgoing.of(FRONT, (*row[:5], A), [100] * 6, (0, 5))
    assert cache.take(asked, 60.0).cached == 2_500
    assert cache.take(asked, 400.0).cached == 0


def test_messages_are_shared_by_what_they_say() -> None:
    again = said(Role.USER, "a")
    assert again is not A
    assert [shared((A, B), (again, B, C)), shared((A, B), (A, C)), shared((), (A,)), shared((A,), (B,))] == [2, 1, 0, 0]
