"""One conversation under one policy: bills reckoned by hand, what is lost and read again, and the sums."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from everlong.core import History, Role
from everlong.lab.cases import Case
from everlong.lab.replay.courses import Beside, Policy, Sending, Terms
from everlong.lab.replay.plan import ReplayPlan, replayed, summed
from everlong.lab.replay.playback import READING_OUTPUT, SUMMARIES_KEEP, played
from everlong.lab.replay.policies import policy_named
from everlong.lab.replay.results import Paid, Played, ProbeOutcome, SessionFacts
from everlong.lab.replay.sessions import Pauses, Session, moments_of
from everlong.lab.replay.tariffs import TARIFFS
from tests.lab.folders import said, step
from tests.lab.replays import session, talk, told_policy, words

FRONT = 2_000
#: Five requests behind a front of 2000: 3000, 3500, 4000, 4500, 5000 tokens, and answers of 100.
FIVE = session(talk(1_000, 100, 400, 100, 400, 100, 400, 100, 400, 100))
PROMPTS = [3_000, 3_500, 4_000, 4_500, 5_000]


def terms(tariff: str = "anthropic", window: int = 64_000) -> Terms:
    return Terms(window=window, tariff=TARIFFS[tariff], front=FRONT)


def whole(one: Session, tariff: str = "anthropic", pauses: Pauses = "none") -> Played:
    return played(one, policy_named("whole"), terms(tariff), pauses)


#: tariff and pauses -> what each request reads and writes, and the dollars of all.
BILLS: dict[str, tuple[str, Pauses, list[int], list[int], float]] = {
    # 5000 written at 3.75, 15000 read at 0.30, 500 said at 15
    "anthropic": ("anthropic", "none", [0, 3_000, 3_500, 4_000, 4_500], [3_000, 500, 500, 500, 500], 0.03075),
    # in steps of 128: 14848 read at 1.25, 5152 at 2.50, 500 said at 10
    "openai-half": ("openai-half", "none", [0, 2_944, 3_456, 3_968, 4_480], [3_000, 556, 544, 532, 520], 0.03644),
    # in steps of 64, the same here: 14848 at 0.028, 5152 at 0.28, 500 at 0.42
    "deepseek": ("deepseek", "none", [0, 2_944, 3_456, 3_968, 4_480], [3_000, 556, 544, 532, 520], 0.002068304),
    # 20000 at 3, 500 at 15
    "uncached": ("uncached", "none", [0] * 5, [0] * 5, 0.0675),
    # forgotten before each user message: 20000 written at 3.75, 500 said at 15
    "anthropic, a pause at every turn": ("anthropic", "turns", [0] * 5, PROMPTS, 0.0825),
}


@pytest.mark.parametrize(("tariff", "pauses", "read", "written", "dollars"), BILLS.values(), ids=BILLS)
def test_the_bill_of_five_requests(
    tariff: str, pauses: Pauses, read: list[int], written: list[int], dollars: float
) -> None:
    found = whole(FIVE, tariff, pauses)
    assert [one.at for one in found.paid] == [1, 3, 5, 7, 9]
    assert [one.prompt for one in found.paid] == PROMPTS
    assert [one.output for one in found.paid] == [100] * 5
    assert [one.read for one in found.paid] == read
    assert [one.written for one in found.paid] == written
    assert found.dollars == pytest.approx(dollars)
    assert not any(one.cut or one.reset or one.over or one.problems for one in found.paid)


MOMENTS: dict[str, tuple[Pauses, tuple[float | None, ...], list[float]]] = {
    "none": ("none", (), [1, 2, 3]),
    "turns": ("turns", (), [1, 302, 603]),
    "as recorded": ("recorded", (0, 5, 60, 70, 900, 905), [1, 61, 901]),
    "never less than a beat": ("recorded", (0, 0, 0.2, 0.2, 0.3, 0.4), [1, 2, 3]),
    "recorded nowhere": ("recorded", (), [1, 2, 3]),
    "recorded at times": ("recorded", (0, None, None, None, 900, None), [1, 2, 902]),
}


@pytest.mark.parametrize(("pauses", "times", "moments"), MOMENTS.values(), ids=MOMENTS)
def test_when_requests_are_made(pauses: Pauses, times: tuple[float | None, ...], moments: list[float]) -> None:
    one = session(talk(10, 10, 10, 10, 10, 10), times=times)
    assert list(moments_of(one, pauses, 300.0)) == pytest.approx(moments)


# --- what is lost ---------------------------------------------------------------------------------

KEY = "KEY-77"
LOST = Case(3, (KEY,), (("kind", "path"),))
#: The first message contains the key; its text is 1000 tokens less 4 of the frame.
SECRET = (said(Role.USER, KEY + " on" * 500), *talk(1_000, 100, 400, 100, 400, 100, 450, 100)[1:])


def everything(messages: History) -> Sending:
    return Sending(messages=messages)


def from_the(start: int, *, cut: bool = False, summarised: bool = False) -> Callable[[History], Sending]:
    return lambda messages: Sending(messages=messages[start:], cut=cut, summarised=summarised)


def test_what_was_lost_is_read_again_and_stands_until_the_next_cut() -> None:
    one = session(SECRET, LOST)
    text = terms().counter.text(SECRET[0].text)
    first = FRONT + terms().counter.message(SECRET[0])
    policy = told_policy(everything, from_the(2, cut=True), from_the(2), from_the(6, cut=True))
    found = played(one, policy, terms(), "none")
    assert [(paid.kind, paid.at) for paid in found.paid] == [
        ("answer", 1),
        ("reading", 3),
        ("answer", 3),
        ("answer", 5),
        ("answer", 7),
    ]
    assert [(paid.prompt, paid.read, paid.written) for paid in found.paid] == [
        (first, 0, first),
        (2_400, 2_000, 400),  # the request, for a call that reads the text again
        (2_400 + text, 2_400, text),  # the same with what was read
        (2_900 + text, 2_400 + text, 500),  # which stands
        (2_450, 2_000, 450),  # until the cut
    ]
    assert found.paid[1].output == READING_OUTPUT
    assert [paid.cut for paid in found.paid] == [False, False, True, False, True]
    assert [paid.reset for paid in found.paid] == [False, False, True, False, True]
    assert found.probes == (ProbeOutcome(at=3, kind="path", kept=False, literal=False, likely=0.0),)


def test_what_was_read_again_is_lost_once_until_the_next_cut_takes_it() -> None:
    one = session(SECRET, LOST, replace(LOST, at=5), replace(LOST, at=7))
    policy = told_policy(everything, from_the(2, cut=True), from_the(2), from_the(6, cut=True))
    found = played(one, policy, terms(), "none")
    assert [paid.at for paid in found.paid if paid.kind == "reading"] == [3, 7]
    assert [(probe.kept, probe.literal) for probe in found.probes] == [(False, False), (True, True), (False, False)]


def test_without_reading_again_what_is_lost_is_lost_each_time() -> None:
    one = session(SECRET, LOST, replace(LOST, at=5))
    policy = told_policy(everything, from_the(2, cut=True), from_the(2), from_the(2))
    found = played(one, policy, terms(), "none", reading=False)
    assert [probe.kept for probe in found.probes] == [False, False]


def test_a_cache_that_forgot_has_forgotten_what_was_read_again() -> None:
    one = session(SECRET, LOST)
    policy = told_policy(everything, from_the(2, cut=True), from_the(2), from_the(2))
    paid = played(one, policy, terms(), "turns").paid[3]
    assert (paid.read, paid.written) == (0, paid.prompt)


def test_nothing_is_read_again_where_that_is_not_wanted() -> None:
    policy = told_policy(everything, from_the(2, cut=True), from_the(2), from_the(2))
    found = played(session(SECRET, LOST), policy, terms(), "none", reading=False)
    assert [paid.kind for paid in found.paid] == ["answer"] * 4


def test_a_summary_has_credit_by_kind_for_what_is_not_there() -> None:
    kept = Case(3, ("on",), (("kind", "path"),))
    policy = told_policy(everything, from_the(2, summarised=True), everything, everything)
    found = played(session(SECRET, LOST, kept, replace(LOST, groups=())), policy, terms(), "none")
    assert [probe.likely for probe in found.probes] == [SUMMARIES_KEEP["path"], 1.0, 0.0]
    assert [probe.kept for probe in found.probes] == [False, True, False]


#: A string, with its place among a hundred -> how many of a hundred summaries keep it, by its kind, and if it is read.
LIKELY = {
    "5: even of lines ten are kept": ("KEY-63", "edit_line", False),
    "22: of lines no more": ("KEY-66", "edit_line", True),
    "22: of codes 42": ("KEY-66", "code", False),
    "61: of codes no more": ("KEY-77", "code", True),
    "61: of paths 66": ("KEY-77", "path", False),
    "82: not even of paths": ("KEY-70", "path", True),
    "5: of no kind": ("KEY-63", "", True),
}


def readings(found: Played) -> int:
    return sum(paid.kind == "reading" for paid in found.paid)


@pytest.mark.parametrize(("key", "kind", "read"), LIKELY.values(), ids=LIKELY)
def test_what_a_summary_is_likely_to_tell_is_not_read_again(key: str, kind: str, read: bool) -> None:
    messages = (said(Role.USER, key + " on" * 500), *SECRET[1:4])
    one = session(messages, Case(3, (key,), (("kind", kind),)))
    summary, cut = from_the(2, cut=True, summarised=True), from_the(2, cut=True)
    found = played(one, told_policy(everything, summary), terms(), "none")
    assert readings(found) == read
    assert [probe.kept for probe in found.probes] == [False]
    assert readings(played(one, told_policy(everything, cut), terms(), "none")) == 1  # without a summary, any of them


def hundred_keys(kind: str) -> Session:
    """A hundred messages with a string in each, and then all of them asked for at once."""
    keys = [f"KEY-{number}" for number in range(100)]
    told = tuple(words(200, (Role.USER, Role.ASSISTANT)[at % 2], f"{key}:") for at, key in enumerate(keys))
    cases = (Case(101, (f"{key}:",), (("kind", kind),)) for key in keys)
    return session((*told, *talk(12_000, 100)), *cases)


def test_a_summary_reads_less_again_the_more_it_keeps_of_a_kind() -> None:
    """A window of 32 000: the summary is due at the last request, and the newest message leaves no room for others."""
    read = {
        kind: readings(played(hundred_keys(kind), policy_named("summary@.95"), terms(window=32_000), "none"))
        for kind in ("", *SUMMARIES_KEEP)
    }
    assert read[""] == 100
    for kind, share in SUMMARIES_KEEP.items():
        assert read[kind] == pytest.approx(100 * (1 - share), abs=10), kind
    assert readings(played(hundred_keys("path"), policy_named("drop@.95/.3"), terms(window=32_000), "none")) == 100


def test_a_call_beside_is_paid_for_and_begins_with_the_front_unless_it_stands_alone() -> None:
    asking = words(100)

    def beside(messages: History) -> Sending:
        return Sending(
            messages=messages,
            beside=(
                Beside(messages=(*messages[:1], asking), output=50),
                Beside(messages=(asking,), output=60, marks=(), alone=True),
            ),
        )

    found = played(session(FIVE.messages[:4]), told_policy(everything, beside), terms(), "none")
    assert [(one.kind, one.prompt, one.read, one.written, one.output) for one in found.paid] == [
        ("answer", 3_000, 0, 3_000, 100),
        ("summary", 3_100, 3_000, 100, 50),
        ("summary", 100, 0, 0, 60),
        ("answer", 3_500, 3_000, 500, 100),
    ]


def test_the_last_call_beside_is_paid_for_too_at_the_last_moment() -> None:
    asking = words(100)
    over = (
        Beside(messages=(*FIVE.messages[:3], asking), output=50),
        Beside(messages=(asking,), output=60, marks=(), alone=True),
    )
    policy = told_policy(everything, everything, last=over)
    found = played(session(FIVE.messages[:4]), policy, terms(), "turns")
    assert [(one.kind, one.at, one.prompt, one.read, one.written, one.output) for one in found.paid] == [
        ("answer", 1, 3_000, 0, 3_000, 100),
        ("answer", 3, 3_500, 0, 3_500, 100),
        ("summary", 3, 3_600, 3_500, 100, 50),  # the cache is warm: it is the moment of the last request
        ("summary", 3, 100, 0, 0, 60),
    ]
    assert summed([found], [found]).summaries == 2


def test_the_answer_is_said_once_before_what_follows_it_also_after_a_refusal() -> None:
    heard: list[History] = []

    def listening(messages: History) -> Sending:
        heard.append(messages)
        return Sending(messages=messages) if len(heard) != 2 else Sending(refused="too much")

    played(FIVE, told_policy(*[listening] * 5), terms(), "none")
    assert heard == [FIVE.messages[:at] for at in FIVE.requests]


# --- what cannot be sent --------------------------------------------------------------------------

HUGE = said(Role.USER, "data:" + " on" * 30_000)


@pytest.mark.parametrize("name", ["auto", "auto-trim", "nanobot", "tests.lab.own_strategies:finds_no_room"])
def test_a_message_larger_than_the_window_is_a_refused_request_and_the_conversation_goes_on(name: str) -> None:
    one = session((*FIVE.messages[:4], HUGE, *FIVE.messages[5:6]), Case(5, ("nowhere",)))
    found = played(one, policy_named(name), replace(terms(window=16_000), reply=1_000), "none")
    refused = found.paid[-1]
    assert [paid.at for paid in found.paid] == [1, 3, 5]
    assert (refused.over, refused.prompt, refused.output, refused.dollars) == (True, 0, 0, 0.0)
    assert len(refused.problems) == 1
    assert "tokens" in refused.problems[0]


def test_after_a_refused_request_the_next_is_compared_with_the_last_that_was_sent() -> None:
    policy = told_policy(everything, lambda _: Sending(refused="too much"), everything, from_the(1), everything)
    found = played(FIVE, policy, terms(), "none")
    assert [paid.prompt for paid in found.paid] == [3_000, 0, 4_000, 3_500, 5_000]
    assert [paid.reset for paid in found.paid] == [False, False, False, True, True]
    assert [paid.read for paid in found.paid] == [0, 0, 3_000, 2_000, 4_000]


def test_a_request_over_the_window_is_told() -> None:
    found = played(FIVE, policy_named("whole"), terms(window=4_000), "none")
    assert [paid.over for paid in found.paid] == [False, False, False, True, True]


def test_only_with_marks_must_the_user_speak_first() -> None:
    for tariff, told in (("anthropic", 1), ("openai", 0)):
        policy = told_policy(everything, from_the(1))
        found = played(session(FIVE.messages[:4]), policy, terms(tariff), "none")
        assert [len(paid.problems) for paid in found.paid] == [0, told]


def test_what_the_conversation_itself_has_wrong_is_no_fault_of_a_policy() -> None:
    orphans = tuple(message for number in range(6) for message in step(number, "x")[1:])
    found = whole(session((*orphans, *FIVE.messages)))
    assert not any(paid.problems for paid in found.paid)


# --- sums -----------------------------------------------------------------------------------------


def one_played(name: str, *dollars: float, **figures: bool) -> Played:
    paid = tuple(
        Paid(at=at, kind="answer", output=1, prompt=10, dollars=one, **figures) for at, one in enumerate(dollars)
    )
    return Played(
        session=SessionFacts(id=name, source="", messages=2, tokens=9),
        policy="p",
        window=9,
        front=0,
        tariff="t",
        paid=paid,
        probes=(ProbeOutcome(at=1, kind="path", kept=True, literal=False, likely=1.0),),
    )


def test_sums() -> None:
    uncut = [one_played("a", 1.0), one_played("b", 3.0)]
    result = summed([one_played("a", 0.5, 0.5, cut=True, reset=True), one_played("b", 1.0, reset=True)], uncut)
    assert (result.requests, result.prompt, result.output, result.dollars, result.uncut) == (3, 30, 3, 2.0, 4.0)
    assert (result.cuts, result.resets, result.broken) == (2, 3, 1)
    assert (result.probes, result.kept, result.literal, result.likely) == (2, 2, 0, 2.0)
    assert (result.ratio, result.kept_percent, result.literal_percent) == (0.5, 100.0, 0.0)


def test_a_request_is_refused_once_whatever_is_wrong_with_it() -> None:
    found = one_played("a", 1.0, 1.0, 1.0)
    over, both, invalid = found.paid
    over, both = replace(over, over=True), replace(both, over=True, problems=("x",))
    result = summed([replace(found, paid=(over, both, replace(invalid, problems=("x", "y"))))], [found])
    assert (result.over, result.invalid) == (2, 1)


@pytest.mark.parametrize(("dollars", "dearer"), [(0.9, 0), (1.0, 0), (1.009, 0), (1.02, 1), (2.0, 1)])
def test_dearer_is_over_one_percent_more_than_uncut(dollars: float, dearer: int) -> None:
    assert summed([one_played("a", dollars)], [one_played("a", 1.0)]).dearer == dearer


def test_needless_are_the_dearer_ones_that_would_have_fitted() -> None:
    uncut = [one_played("a", 1.0), one_played("b", 1.0), one_played("c", 1.0)]
    dear = [replace(one_played(name, dollars), window=11) for name, dollars in (("a", 2.0), ("b", 1.0), ("c", 3.0))]
    long = replace(uncut[2], paid=(replace(uncut[2].paid[0], prompt=11),))
    result = summed(dear, [uncut[0], uncut[1], long])
    assert (result.dearer, result.needless) == (2, ("a",))


def test_a_cut_that_comes_too_soon_after_another_is_counted() -> None:
    soon = one_played("a", 1.0, 1.0, 1.0, cut=True)
    paid = tuple(replace(one, new=new) for one, new in zip(soon.paid, (None, 0.39, 0.4), strict=True))
    assert summed([replace(soon, paid=paid)], [soon]).storms == 1


def test_new_between_two_cuts_is_what_requests_gained() -> None:
    """Five questions of 400 tokens with answers of 100; what the policy adds is new, and what follows an early cut."""

    def cut(messages: History) -> Sending:
        return Sending(messages=messages[-1:], cut=True)

    def news(*sendings: Callable[[History], Sending]) -> list[float | None]:
        movable = terms().movable(FIVE.messages[:3])
        found = played(FIVE, told_policy(everything, *sendings), terms(), "none")
        return [one.new if one.new is None else round(one.new * movable) for one in found.paid if one.cut]

    assert news(cut, from_the(2), cut, from_the(6)) == [None, 1_000]
    added = lambda messages: Sending(messages=(*messages[2:], words(300)))  # noqa: E731
    assert news(cut, added, cut, from_the(6)) == [None, 1_300]
    early = lambda messages: Sending(messages=messages[-1:], cut=True, early=True)  # noqa: E731
    assert news(early, from_the(2), cut, from_the(6)) == [None, 1_400], "the question came after the first cut"
    assert news(cut, from_the(2), early, from_the(6)) == [None, 600], "and here after the second"


def test_what_must_stay_cannot_move_and_a_call_stays_until_its_result_is_read() -> None:
    task, (call, result) = words(200), step(1, "x", '{"text": "' + "on " * 500 + '"}')
    counter, given = terms().counter, terms()
    empty = given.movable(())
    assert given.movable((task,)) == empty - 200
    unread = given.movable((task, call, result))
    assert empty - unread == pytest.approx(200 + counter.messages((call, result)), rel=0.05)
    assert given.movable((task, call, result, words(100, Role.ASSISTANT))) == empty - 200


# --- all of them ----------------------------------------------------------------------------------


def test_several_processes_find_what_one_finds_and_each_conversation_is_told() -> None:
    sessions = [replace(FIVE, facts=replace(FIVE.facts, id=name)) for name in "ab"]
    plan = ReplayPlan(
        policies=("whole", "drop"),
        windows=(5_000, 64_000),
        tariff=TARIFFS["openai"],
        model="gpt-4o",
        overheads=(FRONT,),
    )
    reported: list[int] = []
    found = replayed(sessions, plan, report=reported.append)
    assert [(one.policy, one.window) for one in found] == [
        ("whole", 5_000),
        ("drop", 5_000),
        ("whole", 64_000),
        ("drop", 64_000),
    ]
    assert sum(reported) == 2 * 4
    uncut = 2 * whole(FIVE, "openai").dollars
    assert [one.uncut for one in found] == pytest.approx([uncut] * 4)
    assert found[1].cuts > 0
    assert found[1].ratio == pytest.approx(found[1].dollars / uncut)
    assert replayed(sessions, plan, processes=2) == found


def test_every_overhead_is_played_by_itself_and_compared_with_its_own_uncut() -> None:
    plan = ReplayPlan(
        policies=("drop",), windows=(5_000, 64_000), tariff=TARIFFS["openai"], model="gpt-4o", overheads=(0, FRONT)
    )
    reported: list[int] = []
    found = replayed([FIVE], plan, report=reported.append)
    assert [(one.window, one.front) for one in found] == [(5_000, 0), (5_000, FRONT), (64_000, 0), (64_000, FRONT)]
    assert sum(reported) == 6
    with_front, without = (
        played(FIVE, policy_named("whole"), replace(terms("openai"), front=n), "none") for n in (FRONT, 0)
    )
    assert [one.uncut for one in found] == pytest.approx([without.dollars, with_front.dollars] * 2)


def test_a_policy_begins_anew_with_each_conversation() -> None:
    begun: list[Terms] = []
    policy = policy_named("drop@.9/.5")
    counting = Policy("drop", lambda given: (begun.append(given), policy.begin(given))[1])
    assert played(FIVE, counting, terms(), "none").paid == played(FIVE, counting, terms(), "none").paid
    assert len(begun) == 2
