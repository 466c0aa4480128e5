"""The grid of continuity: what a policy leaves standing at each of its cuts, window by window."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from everlong.core import History, Role
from everlong.lab.measures.continuity import Standing
from everlong.lab.replay.courses import OVERHEAD_FORMS, OverheadForm, Policy, Sending, Terms
from everlong.lab.replay.grid import (
    Cell,
    GridPlan,
    as_observations,
    cells_of,
    observed_in,
    summed_cell,
    walk_grid,
    walked,
)
from everlong.lab.replay.policies import policy_named
from everlong.lab.replay.sessions import Session
from everlong.lab.replay.tariffs import TARIFFS
from tests.lab.folders import said, step
from tests.lab.replays import session, told_policy, words

TASK, ASKED = said(Role.USER, "Look after the harbour."), said(Role.USER, "Now paint the boats.")
TERMS = Terms(window=16_000, reply=4_096, front=2_000, tariff=TARIFFS["anthropic"])
REQUESTS = 12


def worked(steps: int, lines: int = 30) -> Session:
    """A session of so many steps under one task."""
    work = (
        message
        for number in range(steps)
        for message in step(number, "\n".join(f"page {number}, line {line}: {line * 7_919}" for line in range(lines)))
    )
    return session((TASK, *work, said(Role.ASSISTANT, "Done.")))


def cutting(keep: Callable[[History], History], every: int = 4, requests: int = REQUESTS + 1) -> Policy:
    """A policy that sends what `keep` leaves; every so many requests it says that it cut."""

    def sending(number: int) -> Callable[[History], Sending]:
        return lambda messages: Sending(messages=keep(messages), cut=number % every == 0 and number > 0)

    return told_policy(*(sending(number) for number in range(requests)))


KEEPS: dict[str, tuple[Callable[[History], History], tuple[int, int, int]]] = {
    "the identity": (lambda messages: messages, (3, 3, 3)),
    "all but the task": (lambda messages: messages[1:], (0, 3, 0)),
    "the task and three steps": (lambda messages: (messages[0], *messages[-6:]), (3, 3, 3)),
    "the task and two steps": (lambda messages: (messages[0], *messages[-4:]), (3, 0, 3)),
    "nothing": (lambda messages: (), (0, 0, 0)),
}


@pytest.mark.parametrize(("keep", "stood"), KEEPS.values(), ids=KEEPS)
def test_what_stood_after_each_cut(keep: Callable[[History], History], stood: tuple[int, int, int]) -> None:
    found = walked(worked(REQUESTS), cutting(keep), TERMS)
    result = summed_cell(Cell("told", 16_000, 2_000), [found])
    assert (result.sessions, result.requests, result.compactions) == (1, REQUESTS + 1, 3)
    assert (result.task, result.steps, result.words) == stood
    assert (result.between_least, result.between_median) == (4, 4)
    assert bool(result.examples) == bool(result.missing) == (stood != (3, 3, 3))


@pytest.mark.parametrize("keep", [lambda messages: messages, lambda messages: messages[1:]])
def test_a_policy_that_never_cuts_is_not_judged(keep: Callable[[History], History]) -> None:
    result = summed_cell(Cell("told", 16_000, 2_000), [walked(worked(REQUESTS), cutting(keep, 1_000), TERMS)])
    assert result.compactions == result.task == 0
    assert (result.between_least, result.new_least, result.storms) == (None, None, 0)


def test_a_cut_that_comes_too_soon_is_a_storm() -> None:
    """10 000 tokens can move: two cuts with 3 854 new tokens between them are too close, with 4 208 they are not."""
    terms = replace(TERMS, window=16_000, reply=2_000, front=3_570)
    talk = [words(54)]
    assert terms.movable((*talk, words(100, Role.ASSISTANT), words(54))) == 10_000, "task and last words stay"
    for size in (100, 3_800, 100, 4_000, 100):
        talk += [words(size, Role.ASSISTANT), words(54)]
    moved = session((*talk, words(10, Role.ASSISTANT)))

    def cut(messages: History) -> Sending:
        return Sending(messages=messages, cut=True)

    def uncut(messages: History) -> Sending:
        return Sending(messages=messages)

    found = walked(moved, told_policy(uncut, cut, cut, uncut, cut, cut), terms)
    assert [crossing.new for crossing in found.crossings] == pytest.approx([None, 0.3854, 0.4208, 0.0154])
    assert found.storms == 2
    assert found.between == (1, 2, 1)


def test_what_cannot_be_sent_is_refused_and_not_judged() -> None:
    huge = session((said(Role.USER, "word " * 40_000), said(Role.ASSISTANT, "Yes."), TASK, said(Role.ASSISTANT, "No.")))
    found = walked(huge, policy_named("auto"), TERMS)
    assert found.refused >= 1
    assert all(isinstance(crossing.standing, Standing) for crossing in found.crossings)
    result = summed_cell(Cell("auto", 16_000, 2_000), [found])
    assert result.refused == found.refused


@pytest.mark.parametrize("form", OVERHEAD_FORMS)
def test_the_engine_is_walked_as_in_production(form: OverheadForm) -> None:
    found = walked(worked(60), policy_named("auto"), replace(TERMS, form=form, front=3_000))
    assert found.requests == 61
    assert found.crossings
    assert found.refused == found.broken == found.invalid == 0
    assert all(crossing.standing.words for crossing in found.crossings)


# --- the grid -------------------------------------------------------------------------------------

PLAN = GridPlan(
    policies=("auto-trim", "drop@.95/.5"),
    windows=(8_000, 16_000),
    overheads=(2_000, 6_000),
    tariff=TARIFFS["anthropic"],
    model="gpt-4o",
    reply=1_000,
)


def test_a_window_that_the_overhead_nearly_fills_is_left_out() -> None:
    places = [(cell.window, cell.overhead) for cell in cells_of(PLAN) if cell.policy == "auto-trim"]
    assert places == [(8_000, 2_000), (16_000, 2_000), (16_000, 6_000)]  # 6 000 of 8 000 are 75 %


def test_a_session_whose_own_system_text_fills_the_rest_is_left_out_there() -> None:
    talkative = replace(worked(10), messages=(words(4_000, Role.SYSTEM), *worked(10).messages))
    plan = replace(PLAN, policies=("auto-trim",))
    found = walk_grid([worked(10), talkative], plan)
    assert [one.sessions for one in found] == [1, 2, 2]  # 6 000 of 8 000, 6 000 and 10 000 of 16 000


def test_several_processes_find_what_one_finds() -> None:
    reported: list[int] = []
    sessions = [worked(30), worked(10)]
    found = walk_grid(sessions, PLAN, report=reported.append)
    assert len(found) == 6
    assert sum(reported) == 12
    assert walk_grid(sessions, PLAN, processes=2) == found
    assert found[0].compactions > 0


# --- results as user messages -----------------------------------------------------------------------


def test_calls_become_actions_and_results_become_observations() -> None:
    plain = session((TASK, *step(1, "three boats", '{"page": 1}'), said(Role.ASSISTANT, "Well."), ASKED, *step(2, "x")))
    shaped = as_observations(plain)
    assert [(message.role, message.text) for message in shaped.messages] == [
        (Role.USER, TASK.text),
        (Role.ASSISTANT, 'Action: run\n{"page": 1}'),
        (Role.USER, "Observation: three boats"),
        (Role.ASSISTANT, "Well."),
        (Role.USER, ASKED.text),
        (Role.ASSISTANT, "Action: run\n{}"),
        (Role.USER, "Observation: x"),
    ]
    assert shaped.observations == {2, 6}
    assert not any(message.calls or message.results for message in shaped.messages)


def test_results_of_one_step_come_in_one_observation() -> None:
    (first, told), (second, other) = step(1, "one"), step(2, "two")
    both = replace(first, parts=(*first.parts, *second.parts))
    shaped = as_observations(session((TASK, both, told, other)))
    assert [message.text for message in shaped.messages[1:]] == [
        "Action: run\n{}\n\nAction: run\n{}",
        "Observation: one\n\nObservation: two",
    ]
    assert shaped.observations == {2}


def test_a_session_that_acts_in_words_stays_as_it_is() -> None:
    acted = session((TASK, said(Role.ASSISTANT, "```\nls\n```"), said(Role.USER, "boats"), said(Role.ASSISTANT, "Ah.")))
    assert as_observations(acted) == observed_in(acted)
    assert observed_in(acted).observations == {2}
    assert observed_in(acted).messages == acted.messages
