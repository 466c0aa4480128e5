"""What is asked of a call after a compaction, and what of it is found in what is sent."""

import json

import pytest
from hypothesis import given, strategies as st

from everlong.compress import WORDS
from everlong.core import CallId, History, Message, Role, Text, ToolCall, ToolResult
from everlong.lab.measures.presence import Sent
from everlong.lab.resume.record import Record
from everlong.lab.resume.results import Figures, Outcome, judged, summed_resume
from tests.lab.folders import said, step

OLD = "light(lamp)\nwait(night)"
TASK = said(Role.USER, "Light the lamp of pier_seven.")
FIRST = step(1, f"boats/red.txt\nboats/blue.txt\n{OLD}", '{"command": "look"}')
SECOND = step(2, "all is well", '{"command": "clock"}')
BETWEEN = step(3, "boats/blue.txt is new", '{"command": "look again"}')
COMPACTION, USED = 5, 7


def using(**arguments: object) -> History:
    """A session whose last call comes two steps behind a compaction for the request to message 5."""
    return (TASK, *FIRST, *SECOND, *BETWEEN, *step(9, "done", json.dumps(arguments)))


def needed(**arguments: object) -> list[str]:
    (asked,) = Record(using(**arguments)).asked(COMPACTION, USED, 1, 5)
    return [need.text for need in asked.needs]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"path": "boats/red.txt"}, ["boats/red.txt"]),
        ({"path": "boats/blue.txt"}, []),  # it was told again after the compaction
        ({"path": "boats/green.txt"}, []),  # it never stood anywhere
        ({"where": "pier_seven"}, ["pier_seven"]),
        ({"old": OLD}, ["light(lamp)", "wait(night)"]),
    ],
)
def test_a_need_stood_before_the_compaction_and_not_since(arguments: dict[str, str], wanted: list[str]) -> None:
    assert needed(**arguments) == wanted


def test_only_the_next_calls_have_needs_but_all_may_repeat_one() -> None:
    record = Record(using(path="boats/red.txt"))
    near, far = (record.asked(COMPACTION, USED, number, 5)[0] for number in (4, 5))
    assert (near.near, len(near.needs)) == (True, 1)
    assert (far.near, far.needs, far.edits) == (False, (), ())
    repeated = Record((TASK, *FIRST, *SECOND, *step(3, "all is well", '{"command": "clock"}')))
    (asked,) = repeated.asked(5, 5, 99, 5)
    assert asked.repeat is not None
    assert (asked.repeat.earlier, asked.repeat.same) == ("all is well", True)


def test_a_call_whose_result_changed_looked_for_a_reason() -> None:
    record = Record((TASK, *SECOND, *step(3, "a storm comes", '{"command": "clock"}')))
    (asked,) = record.asked(3, 3, 0, 5)
    assert asked.repeat is not None
    assert not asked.repeat.same
    for sent in (record.messages, ()):
        assert judged(asked, Sent(sent)).again == "changed"


def test_a_call_that_was_made_only_since_the_compaction_repeats_nothing() -> None:
    record = Record((TASK, *SECOND, *step(3, "one", '{"n": 1}'), *step(4, "one", '{"n": 1}')))
    assert record.asked(3, 5, 1, 5)[0].repeat is None


def test_of_two_calls_in_one_message_each_has_its_own_result() -> None:
    calls = tuple(ToolCall(CallId(key), "look", json.dumps({"at": key})) for key in "ab")
    told = tuple(Message(Role.TOOL, (ToolResult(CallId(key), (Text(f"seen {key}"),)),)) for key in "ab")
    both = (Message(Role.ASSISTANT, calls), *told)
    asked = Record((TASK, *both, *both)).asked(4, 4, 0, 5)
    assert [one.repeat.earlier for one in asked if one.repeat] == ["seen a", "seen b"]


def test_line_numbers_of_a_file_read_do_not_hide_a_text_that_is_replaced() -> None:
    numbered = "\n".join(f"  {at}→{line}" for at, line in enumerate(OLD.split("\n"), 1))
    record = Record((TASK, *step(1, numbered), *step(2, "done", json.dumps({"old": OLD}))))
    (asked,) = record.asked(3, 3, 0, 5)
    assert asked.edits == (OLD,)
    assert judged(asked, Sent(record.messages[:3])).edits == 1
    assert judged(asked, Sent(record.messages[:1])).edits == 0


def test_a_list_of_names_holds_a_need_but_not_strictly() -> None:
    naming = WORDS["en"][1]
    (asked,) = Record(using(path="boats/red.txt")).asked(COMPACTION, USED, 0, 5)
    found = judged(asked, Sent((said(Role.USER, f"<background-1>\nwords\n{naming}\nboats/red.txt\n"),)))
    assert found.needs == (("path", True, False),)
    assert (found.whole, found.strict) == (True, False)


WORDS_USED = st.sampled_from(["boats/red.txt", "boats/blue.txt", "pier_seven", OLD, "light_all", "48213"])


@given(
    st.lists(st.tuples(WORDS_USED, WORDS_USED), min_size=3, max_size=12),
    st.sets(st.integers(0, 30)),
    st.integers(1, 8),
)
def test_no_more_is_found_than_stood_there_and_no_more_strictly_than_at_all(
    steps: list[tuple[str, str]], kept: set[int], most: int
) -> None:
    work = [part for at, (told, used) in enumerate(steps) for part in step(at, told, json.dumps({"old": used}))]
    record = Record((TASK, *work))
    compaction = 1 + 2 * (len(steps) // 2)
    asked = [
        one
        for at in range(compaction, len(record.messages), 2)
        for one in record.asked(compaction, at, (at - compaction) // 2, most)
    ]
    before = record.messages[:compaction]
    results = {}
    for name, sent in (
        ("whole", before),
        ("some", tuple(message for at, message in enumerate(before) if at in kept)),
        ("none", ()),
    ):
        calls = tuple(judged(one, Sent(sent)) for one in asked)
        results[name] = summed_resume(("p", 1, 0), name, [Outcome("s", "ours", 9, 9, calls)], played=False).figures
    whole, some, none = results["whole"], results["some"], results["none"]
    assert (whole.whole_strict, whole.there_strict, whole.edits_whole) == (whole.calls, whole.needs, whole.edits)
    assert (whole.resumed, whole.gone, none.kept) == (1, 0, 0)
    assert (none.whole, none.there, none.edits_whole) == (0, 0, 0)
    for one in (some, none):
        assert one.whole_strict <= one.whole <= one.calls == whole.calls
        assert one.there_strict <= one.there <= one.needs == whole.needs
        assert one.edits_whole <= one.edits == whole.edits
        assert one.changed + one.kept + one.gone == one.repeated == whole.repeated <= one.after


def test_sums_are_those_of_their_sources() -> None:
    (asked,) = Record(using(path="boats/red.txt")).asked(COMPACTION, USED, 0, 5)
    calls = (judged(asked, Sent(FIRST)),)
    outcomes = [Outcome(f"s{at}", f"project {at % 2}", 10, 10 + at, calls) for at in range(3)]
    result = summed_resume(("auto", 8_000, 500), "own", outcomes, played=False)
    assert [figures.compactions for figures in result.sources.values()] == [2, 1]
    assert result.figures == Figures(
        compactions=3,
        resumed=3,
        calls=3,
        whole=3,
        whole_strict=3,
        needs=3,
        there=3,
        there_strict=3,
        after=3,
        kinds={"path": (3, 3, 3)},
    )
    assert (result.sessions, result.tokens, result.over, result.failed) == (3, 11, 2, 0)
