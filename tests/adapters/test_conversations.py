"""Conversations without ids: each request finds the one that it repeats, and no other."""

from typing import Any

from hypothesis import given, settings, strategies as st

from everlong.adapters.conversations import Conversations


def said(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


def test_what_grows_is_the_same_conversation() -> None:
    known = Conversations()
    assert known.name(said("a")) == known.name(said("a", "b")) == known.name(said("a", "b", "c"))


def test_two_that_begin_alike_are_told_apart_as_soon_as_they_differ() -> None:
    known = Conversations()
    first, second = known.name(said("a", "b")), known.name(said("a", "c"))
    assert first != second
    assert known.name(said("a", "b", "d")) == first
    assert known.name(said("a", "c", "d")) == second


def test_scopes_share_nothing_and_names_say_nothing() -> None:
    known = Conversations()
    names = {known.name(said("a"), scope=scope) for scope in ("one key", "another key", "")}
    assert len(names) == 3
    assert not any("key" in name for name in names)


def test_the_first_of_an_opening_has_the_same_name_in_every_process() -> None:
    assert Conversations().name(said("a", "b")) == Conversations().name(said("a", "c"))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=3)), max_size=20))
def test_conversations_that_take_turns_never_meet(turns: list[tuple[int, str]]) -> None:
    known, histories, names = Conversations(), {at: [f"opening {at}"] for at in range(4)}, dict[int, str]()
    for at, text in turns:
        histories[at].append(text)
        name = known.name(said(*histories[at]))
        assert names.setdefault(at, name) == name
    assert len(set(names.values())) == len(names)
