"""Where a prefix broke and whether a compaction was due: named cases, as items of a client and items at its model."""

import json
from typing import Any

import pytest

from everlong.lab.clients.prefixes import Continued, Pair, continued, law_faults, pairs_of
from everlong.lab.clients.witness import MARK, Exchange
from everlong.llm import ReceivedRequest

MOVABLE = 1_000


def pair(number: int, asked: str, sent: str, **more: Any) -> Pair:
    """A pair whose items are letters; the first is everything before messages."""
    return Pair(number=number, asked=tuple(asked), sent=tuple(sent), movable=MOVABLE, **more)


def followed(*pairs: Pair) -> Continued:
    """The last of the pairs with what it continues."""
    return continued(pairs)[-1]


@pytest.mark.parametrize(
    ("pairs", "before", "broke"),
    [
        ([pair(0, "Sab", "Sab"), pair(1, "Sabcd", "Sabcd")], 0, False),
        ([pair(0, "Sab", "Sab"), pair(1, "Sab", "Sab")], 0, False),
        ([pair(0, "Sab", "Sab"), pair(1, "Sabcd", "Sxcd")], 0, True),
        ([pair(0, "Sab", "Sxb"), pair(1, "Sabcd", "Sxbcd")], 0, False),
        ([pair(0, "Sab", "Sxb"), pair(1, "Sabcd", "Sybcd")], 0, True),
        ([pair(0, "Sab", "Sab"), pair(1, "Sabcd", "Tabcd")], 0, True),
        ([pair(0, "Sabr", "Sabr"), pair(1, "Sabcdr", "Sabcdr")], 0, False),
        ([pair(0, "Sabr", "Sxbr"), pair(1, "Sabcdr", "Sxbcdr")], 0, False),
        ([pair(0, "Sabr", "Sxbr"), pair(1, "Sabcdr", "Sxcdr")], 0, True),
        ([pair(0, "Sabcfqr", "Sxqr"), pair(1, "Sabcdegst", "Sxst")], 0, False),
        ([pair(0, "Sabcfqr", "Sxqr"), pair(1, "Sabcdegst", "Syst")], 0, True),
        ([pair(0, "Sab", "Sab"), pair(1, "Txy", "Txy")], None, False),
        ([pair(0, "Sab", "Sab"), pair(1, "Sxy", "Sxy")], None, False),
        ([pair(0, "Sab", "Sab"), pair(1, "Txy", "Txy"), pair(2, "Sabcd", "Sabcd")], 0, False),
        ([pair(0, "Sab", "Sab"), pair(1, "Sabcd", "Sabcd"), pair(2, "Sabcdef", "Sabcdef")], 1, False),
        ([pair(0, "Sab", "Sab"), pair(1, "Sabcd", "Sxcd"), pair(2, "Sabef", "Sabef")], 1, True),
        ([pair(0, "Sabcdefg", "Sxfg"), pair(1, "Sakl", "Sakl")], None, False),
    ],
    ids=[
        "appended",
        "the same again",
        "cut",
        "cut before, the cut stands",
        "cut before, cut anew",
        "system text changed on the way",
        "a reminder at the end moves on",
        "a reminder after a cut moves on",
        "a reminder, and a message is gone",
        "files at the end are replaced, one of them was left out",
        "files at the end are replaced, what stood before them too",
        "another conversation",
        "another conversation with the same system text",
        "another conversation in between",
        "the longest beginning counts",
        "a branch continues the newest that shares as much",
        "the client left out most of it by itself",
    ],
)
def test_a_prefix_breaks_where_it_does_not_begin_what_follows(
    pairs: list[Pair], before: int | None, broke: bool
) -> None:
    last = followed(*pairs)
    assert (None if last.before is None else last.before.number, last.broke) == (before, broke)


def test_a_break_without_a_compaction_is_a_fault_and_one_with_it_is_none() -> None:
    first, second = pair(0, "Sab", "Sab"), ("Sabcd", "Sxcd")
    silent = continued([first, pair(1, *second)])
    assert list(law_faults(silent)) == ["request 1 begins otherwise than request 0, without a compaction"]
    assert list(law_faults(continued([first, pair(1, *second, compactions=1)]))) == []


@pytest.mark.parametrize(
    ("tokens", "more", "faults"),
    [
        (2_400, {}, []),
        (2_360, {}, []),
        (2_359, {}, ["request 2 was compacted again after 359 new tokens, 400 are due at least"]),
        (2_359, {"learned": True}, []),
        (2_400, {"behind": True}, []),
        (2_359, {"behind": True}, ["request 2 was compacted again after 359 new tokens, 400 are due at least"]),
        (2_000, {"compactions": 0, "sent": tuple("Sxcdef")}, []),
    ],
    ids=[
        "40 % are new",
        "as counters differ",
        "too soon",
        "a window was learned",
        "behind",
        "behind, too soon",
        "no compaction",
    ],
)
def test_between_two_compactions_two_fifths_of_what_can_be_moved_are_new(
    tokens: int, more: dict[str, Any], faults: list[str]
) -> None:
    first = pair(0, "Sab", "Sab", tokens=1_900)
    second = pair(1, "Sabcd", "Sxcd", tokens=2_000, compactions=1)
    third = {"asked": tuple("Sabcdef"), "sent": tuple("Syf"), "tokens": tokens, "compactions": 1, **more}
    pairs = [first, second, Pair(number=2, movable=MOVABLE, **third)]
    assert list(law_faults(continued(pairs))) == faults


def test_what_is_new_counts_from_the_answer_behind_which_the_last_compaction_was_made() -> None:
    made = pair(1, "Sabcd", "Sxcd", tokens=2_000, compactions=1, behind=True)
    again = pair(2, "Sabcdef", "Syf", tokens=2_300, compactions=1)
    assert followed(pair(0, "Sab", "Sab", tokens=1_900), made, again).new == 400


@pytest.mark.parametrize(
    ("asked", "new"),
    [("Sabcdef", 7), ("SabcdEf", 7), ("SabXdef", None)],
    ids=["appended", "tail replaced", "rewritten"],
)
def test_a_client_that_changes_what_a_compaction_covered_makes_another_one_due(asked: str, new: int | None) -> None:
    first = pair(0, "Sabcde", "Sxde", tokens=100, compactions=1)
    assert followed(first, pair(1, asked, "Syf", tokens=107, compactions=1)).new == new


def test_a_compaction_of_another_conversation_does_not_count() -> None:
    pairs = [
        pair(0, "Sab", "Sx", tokens=1_000, compactions=1),
        pair(1, "Tcd", "Ty", tokens=1_001, compactions=1),
    ]
    assert [one.new for one in continued(pairs)] == [None, None]


# --- reading the records -----------------------------------------------------------------------------

PATH = "/v1/chat/completions"


def chat(*texts: str, **more: Any) -> bytes:
    roles = ("system", "user", "assistant")
    messages = [{"role": roles[min(at, 1 + (at + 1) % 2)], "content": text} for at, text in enumerate(texts)]
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


def reached(mark: str, body: bytes) -> ReceivedRequest:
    headers = {MARK: mark} if mark else {}
    return ReceivedRequest(number=0, model="m", messages=(), body=body, headers=headers, fmt="openai-chat")


def test_a_request_is_paired_with_the_last_one_that_it_became() -> None:
    asked = chat("Be kind.", "Hello", "Hi")
    answer = {"X-Everlong-Compactions": "2", "X-Everlong-Recovered": "1"}
    exchanges = [
        Exchange("GET", "/v1/models", {}, b"", status=200),
        Exchange("POST", PATH, {}, asked, status=200, answer_headers=answer),
        Exchange("POST", PATH, {}, asked, status=400, trouble="too long"),
        Exchange("POST", PATH, {}, asked, status=200),
    ]
    requests = [reached("1", asked), reached("", chat("Summarise")), reached("1", chat("Be kind.", "Hi"))]
    (one,) = pairs_of(exchanges, requests, window=10_000)
    assert (one.number, one.head, one.compactions, one.learned) == (1, 2, 2, True)
    assert (len(one.asked), len(one.sent)) == (4, 3)
    assert one.tokens > 0


def test_a_lone_text_is_the_same_as_a_block_or_as_words_and_cache_marks_do_not_count() -> None:
    block = {"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}
    bodies = [
        json.dumps({"model": "m", "system": "Be kind.", "messages": [{"role": "user", "content": content}]}).encode()
        for content in ("Hello", [block], [{"type": "text", "text": "Hello"}])
    ]
    exchanges = [Exchange("POST", "/v1/messages?beta=true", {}, body, status=200) for body in bodies]
    requests = [reached(str(number), body) for number, body in enumerate(bodies)]
    assert len({one.asked for one in pairs_of(exchanges, requests, window=10_000)}) == 1


@pytest.mark.parametrize(
    ("length", "share"),
    [(None, 0.85), (4_000, 0.85), (32_000, 0.49)],
    ids=["nothing asked", "a short answer", "more than the window"],
)
def test_the_answer_takes_at_most_half_of_what_the_prompt_leaves(length: int | None, share: float) -> None:
    more = {} if length is None else {"max_tokens": length}
    body = chat("Be kind.", "Hello", **more)
    exchange = Exchange("POST", PATH, {}, body, status=200)
    (one,) = pairs_of([exchange], [reached("0", body)], window=32_000)
    assert one.movable == pytest.approx(32_000 * share, rel=0.03)
