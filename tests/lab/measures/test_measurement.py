"""What is measured: hits, strict hits, recall, what cannot be found, what cannot be done."""

from dataclasses import replace

from everlong.lab.cases import Cases
from everlong.lab.data import agents
from everlong.lab.measures.dialogs import question_cases
from everlong.lab.measures.edits import edit_cases
from everlong.lab.measures.measurement import Job, Plan, Result, measured, summed
from everlong.lab.measures.probes import probe_cases
from everlong.lab.pool import run
from tests.lab.folders import DATA


def results_of(plan: Plan, cases: list[Cases], processes: int = 1) -> list[Result]:
    jobs = [Job(plan, group) for group in cases]
    found = run(measured, jobs, processes, size=lambda job: len(job.cases.cases), report=lambda _: None)
    return summed(plan, "ours", "all", len(cases), [outcome for outcomes in found for outcome in outcomes])


def test_everything_is_there_where_nothing_is_cut() -> None:
    for measure, cases in (
        ("probes", probe_cases(DATA, ("office",))),
        ("edits", edit_cases(agents(DATA, "office"))),
        ("dialogs", question_cases(DATA, "tea")),
    ):
        (whole,) = results_of(Plan(measure, ("whole",), (100_000,)), cases)
        assert whole.total == whole.uncut == whole.rows[0].hits == sum(len(group.cases) for group in cases)


def test_nothing_is_there_where_nothing_fits() -> None:
    (newest,) = results_of(Plan("probes", ("newest",), (60,)), probe_cases(DATA, ("office",)))
    assert newest.rows[0].hits == 0
    assert newest.uncut == newest.total


def test_a_selection_that_is_not_possible_counts_as_a_miss() -> None:
    (auto,) = results_of(Plan("probes", ("auto",), (5,)), probe_cases(DATA, ("office",)))
    assert (auto.rows[0].failed, auto.rows[0].hits, auto.rows[0].total) == (auto.total, 0, auto.total)


def test_recall_counts_each_turn_of_the_evidence() -> None:
    (harbour,) = question_cases(DATA, "harbour")
    both = next(case for case in harbour.cases if len(case.wanted) == 2)
    one_missing = replace(both, wanted=(both.wanted[0], "never said"))
    (whole,) = results_of(Plan("dialogs", ("whole",), (9_000,)), [replace(harbour, cases=(one_missing,))])
    assert (whole.rows[0].hits, whole.rows[0].recall, whole.uncut) == (0, 0.5, 0)


def test_groups_add_up_to_the_whole() -> None:
    (result,) = results_of(Plan("probes", ("newest",), (400,)), probe_cases(DATA, ("office",)))
    for of in ("kind", "source", "history"):
        members = [group for group in result.rows[0].groups if group.of == of]
        assert sum(group.total for group in members) == result.total
        assert sum(group.hits for group in members) == result.rows[0].hits


def test_several_processes_find_what_one_finds() -> None:
    plan = Plan("probes", ("newest", "auto"), (400, 700))
    cases = probe_cases(DATA, ("office",))

    def timeless(results: list[Result]) -> list[Result]:
        return [replace(one, rows=tuple(replace(row, milliseconds=0.0) for row in one.rows)) for one in results]

    assert timeless(results_of(plan, cases, processes=2)) == timeless(results_of(plan, cases))


def test_cases_at_one_place_share_a_selection() -> None:
    (ferry, _) = probe_cases(DATA, ("office",))
    outcomes = measured(Job(Plan("probes", ("newest",), (400,)), ferry))
    same = [outcome.milliseconds for case, outcome in zip(ferry.cases, outcomes, strict=True) if case.at == 17]
    assert len(same) >= 2
    assert len(set(same)) == 1
