"""Two summaries as one."""

from functools import reduce

from hypothesis import given, settings, strategies as st

from everlong.summarize.merging import merged
from everlong.summarize.summary import Facts, Summary
from everlong.summarize.writing import all_lines, written
from tests.summarize.honest import COUNTER


def merge(older: Summary, newer: Summary, limit: int = 2_000) -> Summary:
    return merged(older, newer, limit=limit, counter=COUNTER)


def size(summary: Summary) -> int:
    return COUNTER.text("\n".join(all_lines(summary)))


def test_newer_stands_after_older_and_nothing_twice() -> None:
    older = Summary(decisions=("use SQLite", "no cache"), constraints=("tabs",))
    newer = Summary(decisions=("No cache.", "add an index"), constraints=("small commits",))
    both = merge(older, newer)
    assert both.decisions == ("use SQLite", "No cache.", "add an index")
    assert both.constraints == ("tabs", "small commits")


def test_what_is_done_leaves_what_is_next() -> None:
    older = Summary(next=("write tests for the login page", "deploy to staging"))
    newer = Summary(done=("Wrote the tests for the login page, 12 pass.",), next=("review the index",))
    assert merge(older, newer).next == ("deploy to staging", "review the index")


def test_what_is_done_leaves_what_is_next_in_chinese() -> None:
    older = Summary(language="zh", next=("修复登录页面", "部署到测试环境"))
    newer = Summary(language="zh", done=("登录页面已修复",))
    assert merge(older, newer).next == ("部署到测试环境",)


def test_no_paragraph_stands_twice() -> None:
    older = Summary(style="free", context="The shop sells tea. The till is broken.")
    newer = Summary(style="free", context="The till is broken. A new one is ordered.")
    assert merge(older, newer).context == "The shop sells tea. The till is broken. A new one is ordered."


def test_the_newer_context_is_kept_whole_and_the_older_as_far_as_there_is_room() -> None:
    older = Summary(context="Old words. " * 30)
    newer = Summary(context="New words about the state of things.")
    both = merge(older, newer)
    assert both.context.endswith(newer.context)
    assert len(both.context) <= 200


def test_prose_does_not_turn_sections_into_prose() -> None:
    both = merge(Summary(decisions=("use SQLite",)), Summary(style="free", context="All went well."))
    assert (both.style, both.decisions, both.context) == ("structured", ("use SQLite",), "All went well.")


def test_the_focus_of_an_earlier_summary_is_not_carried_on() -> None:
    assert merge(Summary(context="a", focus="names"), Summary(context="b")).focus == ""
    assert merge(Summary(context="a"), Summary(context="b", focus="names", covers=7)).covers == 7


def test_facts_are_joined_and_the_newest_stay_when_room_is_short() -> None:
    older = Summary(facts=Facts(requests=("first request",), files_read=tuple(f"old_{n}.py" for n in range(50))))
    newer = Summary(facts=Facts(requests=("second request",), files_read=("new.py",)), next=("go on",))
    both = merge(older, newer, limit=120)
    assert both.facts.requests == ("first request", "second request")
    assert both.facts.files_read[-1] == "new.py"
    assert len(both.facts.files_read) < 51
    assert both.next == ("go on",)


WORDS = st.integers(0, 400).map(lambda number: f"step {number} of the work on part_{number % 7}.py")
LISTS = st.lists(WORDS, max_size=8).map(tuple)
SUMMARIES = st.builds(
    lambda context, done, decisions, following, requests: Summary(
        context=context, done=done, decisions=decisions, next=following, facts=Facts(requests=requests)
    ),
    WORDS,
    LISTS,
    LISTS,
    LISTS,
    LISTS,
)


@settings(max_examples=8)
@given(st.lists(SUMMARIES, min_size=50, max_size=50), st.integers(300, 900))
def test_fifty_merged_stay_bounded_and_keep_the_newest(many: list[Summary], limit: int) -> None:
    whole = reduce(lambda older, newer: merge(older, newer, limit), many)
    assert size(whole) <= limit
    assert whole.context.endswith(many[-1].context)
    if many[-1].decisions:
        assert whole.decisions[-1] == many[-1].decisions[-1]
    assert COUNTER.text(written(whole, counter=COUNTER, limit=limit)) <= limit


@settings(max_examples=60)
@given(SUMMARIES, SUMMARIES, st.integers(0, 400))
def test_merging_never_exceeds_even_a_tiny_limit_by_more_than_headings(
    older: Summary, newer: Summary, limit: int
) -> None:
    assert size(merge(older, newer, limit)) <= limit + 60
