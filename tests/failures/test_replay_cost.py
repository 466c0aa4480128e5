"""Failure modes of cost, by replay: D1 a smaller request that costs more, D2 a prefix that changes, D4 no limit."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from random import Random
from statistics import fmean

import pytest

from everlong.core import History, Message, Role
from everlong.lab import TARIFFS, Beside, Session, Terms, counter, played, policy_named
from everlong.lab.replay.courses import Course, Policy, Sending
from everlong.lab.replay.results import Paid, Played
from everlong.wire import Usage
from tests.lab.folders import said, step
from tests.lab.replays import session

TURNS = 200
POLICIES = ("auto", "auto-trim")
TABLES = ("anthropic", "openai-half", "deepseek")
WINDOW, REPLY, FRONT = 32_000, 2_000, 3_000
#: Of the room: where much less than this lies between two cuts, it costs more than never to cut.
BAND = 0.25
WORDS = ("archive", "beacon", "cedar", "drift", "ember", "fjord", "glacier", "harbour", "inlet", "juniper", "kelp")


@cache
def work() -> Session:
    """A long piece of work: a user's wish every tenth turn, between them calls with short and long results."""
    dice = Random(7)
    messages: list[Message] = [said(Role.SYSTEM, "You look after the harbour's files. Answer briefly.")]
    for turn in range(TURNS):
        if turn % 10 == 0:
            messages.append(
                said(Role.USER, f"Now see to {dice.choice(WORDS)} {turn}, and tell me what you find there.")
            )
        path = f"{dice.choice(WORDS)}/{dice.choice(WORDS)}_{turn}.txt"
        lines = (f"{number}: {' '.join(dice.choices(WORDS, k=9))} {dice.randrange(10**6)}" for number in _lines(dice))
        messages += step(turn, "\n".join(lines), f'{{"path": "{path}"}}')
        if turn % 10 == 9:
            messages.append(said(Role.ASSISTANT, f"Done with {path}: all of it is in order."))
    return session(messages)


def _lines(dice: Random) -> range:
    return range(dice.choice((3, 10, 25, 60)))


class Watched:
    """A policy under way, and everything that it sent."""

    def __init__(self, course: Course, sent: list[Sending]) -> None:
        self.course, self.sent = course, sent

    def say(self, messages: History) -> None:
        self.course.say(messages)

    def ask(self, moment: float) -> Sending:
        self.sent.append(self.course.ask(moment))
        return self.sent[-1]

    def receive(self, usage: Usage, answer: Message) -> None:
        self.course.receive(usage, answer)

    def close(self) -> tuple[Beside, ...]:
        return self.course.close()


@cache
def replay(policy: str, tariff: str, window: int = WINDOW) -> tuple[Played, tuple[Sending, ...]]:
    sent: list[Sending] = []
    named = policy_named(policy)
    watched = Policy(policy, lambda terms: Watched(named.begin(terms), sent))
    terms = Terms(window=window, reply=REPLY, front=FRONT, tariff=TARIFFS[tariff])
    return played(work(), watched, terms, "none"), tuple(sent)


def answers(found: Played) -> list[Paid]:
    return [paid for paid in found.paid if paid.kind == "answer"]


cases = pytest.mark.parametrize(("policy", "tariff"), [(policy, table) for policy in POLICIES for table in TABLES])


@cases
def test_D1_between_cuts_every_request_begins_with_all_of_the_one_before(policy: str, tariff: str) -> None:
    found, sent = replay(policy, tariff)
    assert len(sent) == len(answers(found)) == len(work().requests) >= TURNS
    for before, after in pairwise(sent):
        same = after.messages[: len(before.messages)] == before.messages
        assert same or after.cut
    assert not any(paid.reset and not paid.cut for paid in found.paid)


@cases
def test_D1_there_is_one_reset_for_a_cut_and_none_without(policy: str, tariff: str) -> None:
    found, _ = replay(policy, tariff)
    cuts, resets = (sum(getattr(paid, name) for paid in found.paid) for name in ("cut", "reset"))
    assert 0 < resets <= cuts


@cases
def test_D1_it_never_costs_more_than_nothing_cut(policy: str, tariff: str) -> None:
    found, _ = replay(policy, tariff)
    uncut, _ = replay("whole", tariff)
    assert found.dollars <= uncut.dollars


@cases
def test_D1_no_cut_follows_another_before_much_new_was_said(policy: str, tariff: str) -> None:
    """No flip-flop at the threshold: what comes between two cuts is no less than the narrowest band that pays."""
    found, _ = replay(policy, tariff)
    at = [paid.at for paid in answers(found) if paid.cut]
    assert len(at) > 2
    between = [counter().messages(work().messages[start:end]) for start, end in pairwise(at)]
    assert min(between) >= BAND * (WINDOW - REPLY - FRONT)


@cases
def test_D1_every_request_is_valid_and_fits(policy: str, tariff: str) -> None:
    found, _ = replay(policy, tariff)
    assert not any(paid.over or paid.problems for paid in found.paid)
    assert max(paid.prompt for paid in found.paid) <= WINDOW - REPLY


def thirds(paid: Sequence[Paid]) -> tuple[float, float]:
    """Mean dollars of a request in the middle and in the last third; calls beside it belong to it."""
    by_request: dict[int, float] = {}
    for one in paid:
        by_request[one.at] = by_request.get(one.at, 0.0) + one.dollars
    dollars = list(by_request.values())
    third = len(dollars) // 3
    return fmean(dollars[third : 2 * third]), fmean(dollars[2 * third :])


@cases
def test_D4_the_cost_of_a_request_does_not_grow_with_the_conversation(policy: str, tariff: str) -> None:
    middle, last = thirds(replay(policy, tariff)[0].paid)
    assert last <= 1.1 * middle
    middle, last = thirds(replay("whole", tariff)[0].paid)
    assert last > 1.3 * middle


@pytest.mark.parametrize("policy", POLICIES)
def test_D2_the_moment_of_a_request_changes_nothing_in_it(policy: str) -> None:
    """The same work at another pace, a minute from one request to the next: the same bytes."""
    _, sent = replay(policy, "deepseek")
    slow = Session(
        facts=work().facts, messages=work().messages, times=tuple(61.0 * at for at in range(len(work().messages)))
    )
    again: list[Sending] = []
    named = policy_named(policy)
    watched = Policy(policy, lambda terms: Watched(named.begin(terms), again))
    terms = Terms(window=WINDOW, reply=REPLY, front=FRONT, tariff=TARIFFS["deepseek"])
    played(slow, watched, terms, "recorded")
    assert [one.messages for one in again] == [one.messages for one in sent]
