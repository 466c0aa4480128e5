"""Strategies: ours are what users get, baselines do what they say, and anyone's own can enter."""

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from everlong import fit
from everlong.core import History, Reasoning, Role, pairs_of
from everlong.engine import fit_document
from everlong.errors import BudgetImpossible, InputError
from everlong.lab.data import agents
from everlong.lab.measures.dialogs import question_cases
from everlong.lab.measures.measurement import Job, Plan, measured
from everlong.lab.measures.probes import probe_cases
from everlong.lab.pool import run
from everlong.lab.strategies.baselines import CLEARED, KEPT_STEPS, cleared, newest, trimmed, user_newest, whole
from everlong.lab.strategies.bm25 import bm25, bm25_neighbours, half_bm25, scores, terms, words
from everlong.lab.strategies.strategy import counter, from_chat
from everlong.lab.strategies.table import BASELINES, strategy_named
from everlong.wire import OPENAI_CHAT, Document
from tests.lab.folders import DATA, said, step


def work(sizes: list[int]) -> History:
    """System, user, then a step for each size."""
    head = (said(Role.SYSTEM, "be brief"), said(Role.USER, "go on"))
    return (
        *head,
        *(message for at, size in enumerate(sizes) for message in step(at, f"word{at} " * size, thought="hm")),
    )


@pytest.mark.parametrize("budget", [400, 700, 1_500])
def test_auto_is_what_fit_gives(budget: int) -> None:
    for group in probe_cases(DATA, ("office",)):
        select = strategy_named("auto").begin()
        for case in group.cases:  # one after the other: the index is shared, the selection is not
            history = group.conversation.messages[: case.at]
            raw = [row for message in history for row in OPENAI_CHAT.write_message(message)]
            try:
                expected = fit(raw, model="gpt-4o", budget=budget).view.messages
            except BudgetImpossible:
                with pytest.raises(BudgetImpossible):
                    select(history, budget)
            else:
                assert select(history, budget) == expected


@pytest.mark.parametrize("name", ["newest", "trimmed", "cleared", "half-bm25"])
@given(sizes=st.lists(st.integers(1, 200), min_size=1, max_size=8), budget=st.integers(60, 900))
@settings(max_examples=25, deadline=None)
def test_baselines_fit_and_keep_pairs(name: str, sizes: list[int], budget: int) -> None:
    chosen = BASELINES[name](work(sizes), budget)
    assert counter().messages(chosen) <= budget
    assert chosen[0].role is Role.SYSTEM
    assert len(pairs_of(chosen)) == sum(len(message.results) for message in chosen)
    assert sum(len(message.calls) for message in chosen) == len(pairs_of(chosen))


def test_newest_skips_no_step_and_leaves_out_reasoning() -> None:
    history = work([5, 300, 5, 5])
    chosen = newest(history, 150)
    assert [message.results[0].text[:5] for message in chosen if message.results] == ["word2", "word3"]
    assert not any(isinstance(part, Reasoning) for message in chosen for part in message.parts)


def test_old_results_are_trimmed_or_cleared_and_new_ones_are_not() -> None:
    history = work([1_000] * (KEPT_STEPS + 2))
    long = [len(message.results[0].text) for message in trimmed(history, 10**6) if message.results]
    assert all(size < 3_100 for size in long[:2])
    assert all(size > 5_000 for size in long[2:])
    texts = [message.results[0].text for message in cleared(history, 10**6) if message.results]
    assert [text == CLEARED for text in texts] == [True, True, *[False] * KEPT_STEPS]


def test_half_bm25_quotes_what_the_last_call_asks_for() -> None:
    history = (
        *work([3]),
        *step(10, "the keel is made of oak " * 5),
        *step(11, "noise " * 400),
        *step(12, "more noise " * 100, '{"query": "keel oak"}'),
    )
    assert any("keel is made of oak" in message.text for message in half_bm25(history, 450))


def test_the_users_turns_come_first_then_the_assistants() -> None:
    turns = [said(Role.USER if at % 2 == 0 else Role.ASSISTANT, f"turn {at} " * 10) for at in range(8)]
    history = (said(Role.SYSTEM, "be brief"), *turns, said(Role.USER, "which one?"))
    four = counter().messages((history[0], turns[2], turns[4], turns[6], history[-1]))
    assert user_newest(history, four) == (history[0], turns[2], turns[4], turns[6], history[-1])
    most = user_newest(history, four + 2 * counter().message(turns[0]))
    assert [turn.text[:6] for turn in most[1:-1]] == ["turn 0", "turn 2", "turn 4", "turn 6", "turn 7"]


@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=8), budget=st.integers(60, 900))
@settings(max_examples=25, deadline=None)
def test_the_users_turns_never_pass_the_budget_and_tear_no_pair(sizes: list[int], budget: int) -> None:
    history = (*work(sizes), said(Role.USER, "and now?"))
    chosen = user_newest(history, budget)
    assert counter().messages(chosen) <= budget
    assert not any(message.calls or message.results for message in chosen)


def test_whole_cuts_nothing() -> None:
    history = work([500])
    assert whole(history, 1) == history


# --- searching ------------------------------------------------------------------------------------

TERMS = {
    "words": ("Read_file twice", ["read_file", "twice"]),
    "endings and small words": ("the dogs were walking", ["dog", "walk"]),
    "Chinese": ("上下文", ["上下", "下文"]),
    "one character": ("茶", ["茶"]),
    "mixed": ("喝 tea", ["喝", "tea"]),
}


@pytest.mark.parametrize(("text", "found"), TERMS.values(), ids=TERMS)
def test_terms(text: str, found: list[str]) -> None:
    assert terms(text) == found


def test_words_keep_small_words_and_endings() -> None:
    assert words("the dogs") == ["the", "dogs"]


def test_a_rare_term_is_worth_more_than_a_frequent_one() -> None:
    pieces = [{"boat": 1, "oak": 1}, {"boat": 1, "sea": 1}, {"boat": 1, "sail": 1}]
    oak, boat, _ = scores(["oak", "boat"], pieces, [2, 2, 2])
    assert oak > boat > 0


def test_neighbours_come_along() -> None:
    (harbour,) = question_cases(DATA, "harbour")
    asked = harbour.cases[0]
    assert asked.question is not None
    history = (*harbour.conversation.messages, asked.question)
    alone, around = (counter().messages(find(history, 150)) for find in (bm25, bm25_neighbours))
    assert alone <= 150
    assert around <= 150
    best = next(at for at, turn in enumerate(history) if asked.wanted[0] == turn.text)
    assert {turn.text for turn in history[best - 2 : best + 3]} <= {turn.text for turn in bm25_neighbours(history, 200)}
    assert bm25(history, 150)[-1] == asked.question


# --- names ----------------------------------------------------------------------------------------


def test_an_unknown_name_is_told_with_those_that_exist() -> None:
    with pytest.raises(
        InputError,
        match=r"unknown strategy 'newst'; use everlong, auto, .*newest.*module:function.*did you mean newest\?",
    ):
        strategy_named("newst")


def meaning(texts: list[str]) -> list[list[float]]:
    """Vectors of one's own: what is about animals, and everything else."""
    return [[1.0, 0.0] if {"dog?", "terrier"} & {*text.split()} else [0.0, 1.0] for text in texts]


def test_a_preset_may_be_measured_with_vectors() -> None:
    turns = [
        said(Role.USER if at % 2 else Role.ASSISTANT, f"The lamp number {at} was mended at noon") for at in range(300)
    ]
    history = (*turns[:20], said(Role.USER, "Our terrier is well"), *turns[20:], said(Role.USER, "How is the dog?"))
    plain, semantic = (
        strategy_named(name).begin()(history, 600) for name in ("auto", f"auto+{__name__}:{meaning.__name__}")
    )
    assert "terrier" not in str(plain)
    assert "terrier" in str(semantic)
    with pytest.raises(InputError, match="semantic: there is no folder"):
        strategy_named("auto+/no/such/folder")


@pytest.mark.parametrize("name", ["no_such_module:f", "everlong:no_such_function", "everlong:__version__", ":f"])
def test_a_function_that_is_not_there_is_told(name: str) -> None:
    with pytest.raises(InputError, match=name):
        strategy_named(name)


def test_anyones_own_takes_and_gives_openai_messages() -> None:
    seen: list[tuple[int, int]] = []

    def last_two(messages: list[dict[str, object]], budget: int) -> list[dict[str, object]]:
        seen.append((len(messages), budget))
        return messages[-2:]

    history = next(agents(DATA, "office")).messages[:6]
    assert from_chat("mine", last_two).begin()(history, 99) == history[-2:]
    assert seen == [(6, 99)]


def test_anyones_own_sees_who_spoke() -> None:
    (harbour,) = question_cases(DATA, "harbour")
    names: list[object] = []

    def listen(messages: list[dict[str, object]], budget: int) -> list[dict[str, object]]:
        names.extend(message.get("name") for message in messages)
        return messages

    from_chat("mine", listen).begin()(harbour.conversation.messages[:2], 99)
    assert names == ["Ines", "Tom"]


def test_the_data_is_small() -> None:
    assert sum(path.stat().st_size for path in Path(DATA).rglob("*.jsonl")) < 30_000


OWN = "tests.lab.own_strategies"


@pytest.mark.parametrize(
    ("name", "reason", "processes"),
    [
        ("raises", "KeyError: 'no such thing'", 1),
        ("gives_none", "TypeError", 1),
        ("gives_words", "its item 0 is 'a'", 1),
        ("gives_a_number", "TypeError", 1),
        ("gives_a_wizard", "unknown role 'wizard'", 2),
    ],
)
def test_a_strategy_that_fails_is_one_clear_line_in_any_process(name: str, reason: str, processes: int) -> None:
    plan = Plan("probes", (f"{OWN}:{name}",), (700,))
    jobs = [Job(plan, group) for group in probe_cases(DATA, ("office",))]
    assert len(jobs) > 1
    with pytest.raises(InputError, match=reason) as told:
        run(measured, jobs, processes, size=lambda job: len(job.cases.cases), report=lambda _: None)
    assert str(told.value).startswith(f"{OWN}:{name}")
    assert "\n" not in str(told.value)


def test_a_strategy_that_finds_no_room_failed_at_that_case_alone() -> None:
    history = next(agents(DATA, "office")).messages
    with pytest.raises(BudgetImpossible):
        strategy_named(f"{OWN}:finds_no_room").begin()(history, 700)


def test_a_strategy_that_changes_what_it_is_given_changes_it_for_no_other() -> None:
    (group, *_) = probe_cases(DATA, ("office",))
    history = group.conversation.messages
    before = strategy_named(f"{OWN}:keeps_all").begin()(history, 10**6)
    assert strategy_named(f"{OWN}:spoils_what_it_is_given").begin()(history, 10**6) == ()
    assert strategy_named(f"{OWN}:keeps_all").begin()(history, 10**6) == before
    assert strategy_named(f"{OWN}:yields").begin()(history, 10**6) == before


@pytest.mark.parametrize("budget", [300, 900])
def test_auto_is_what_fit_gives_for_dialogues_too(budget: int) -> None:
    for group in [*question_cases(DATA, "harbour"), *question_cases(DATA, "tea")]:
        select = strategy_named("auto").begin()
        for case in group.cases:
            assert case.question is not None
            history = (*group.conversation.messages[: case.at], case.question)
            document = Document(fmt="openai-chat", messages=history)
            try:
                expected = fit_document(document, model="gpt-4o", budget=budget).view.messages
            except BudgetImpossible:
                expected = None
            try:
                chosen = select(history, budget)
            except BudgetImpossible:
                chosen = None
            assert chosen == expected
