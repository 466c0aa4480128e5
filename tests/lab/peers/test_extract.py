"""The summary without a model: it quotes, in order, within its room, and says what is said often."""

from hypothesis import given, settings, strategies as st

from everlong.lab.peers.extract import extract, room_for_summary

LINES = st.lists(
    st.sampled_from(("the quay", "oak keel laid again", "we will paint the oak keel red", "粉刷 红色 龙骨 木板"))
)


def words(text: str) -> int:
    return len(text.split())


def test_names_numbers_and_long_words_are_kept_and_chatter_is_not() -> None:
    facts = ["we sail the Oxford Road 42 ferry on Friday", "the config stands in src/keel/paint_mixer.py now"]
    chatter = ["wow that is so good to hear", "what do you like the most of it all"]
    kept = extract("\n".join([chatter[0], facts[0], chatter[1], facts[1]]), 18, words)
    assert kept.splitlines() == facts


@settings(max_examples=60, deadline=None)
@given(LINES, st.integers(1, 40))
def test_it_quotes_in_order_within_its_room(lines: list[str], room: int) -> None:
    kept = extract("\n".join(lines), room, words)
    if kept == "Nothing of note.":
        return
    assert words(kept) <= room
    places = [lines.index(line) for line in kept.splitlines()]
    assert places == sorted(places)


def test_a_small_budget_gives_a_quarter_and_a_large_one_no_more_than_two_thousand() -> None:
    assert [room_for_summary(budget) for budget in (2_000, 8_000, 32_000)] == [500, 2_000, 2_000]
