"""The verdict on a run with an adapter: each fault is seen, and a good run has none."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from everlong.core import JsonText
from everlong.lab.adapters.errand import READ, USER_FACTS, Errand
from everlong.lab.adapters.results import ADAPTER_PAGES, adapter_table
from everlong.lab.adapters.table import ADAPTERS, HOWS
from everlong.lab.adapters.verdict import AdapterRun, AdapterVerdict, judge_adapter
from everlong.lab.clients.script import Tasks
from everlong.llm import ReceivedRequest
from everlong.tokens import Counter
from everlong.wire import OPENAI_CHAT

ERRAND = Errand(Tasks(count=1, files=2, lines=10), single=True)
TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"properties": {"path": {}}}}}]
WINDOW = 4_000
PROMPT = {"role": "user", "content": ERRAND.prompts()[0]}
PAGES = Path(__file__).parents[3] / "docs" / "adapters"


def step(number: int, *items: dict[str, object]) -> ReceivedRequest:
    """A request of the conversation, as the provider records it."""
    body = {"model": "scripted", "messages": [PROMPT, *items], "tools": TOOLS}
    document = OPENAI_CHAT.read_body(body)  # type: ignore[arg-type]
    counter = Counter("gpt-4o")
    return ReceivedRequest(
        number=number,
        model="scripted",
        messages=document.messages,
        tools=document.tools,
        tokens=counter.messages(document.messages) + counter.tools(document.tools),
        body=json.dumps(body).encode(),
        fmt="openai-chat",
    )


def said(words: str) -> list[dict[str, object]]:
    return [{"role": "assistant", "content": words}, {"role": "user", "content": "Go on."}]


LONG = " ".join(f"word{at}" for at in range(600))  # more than 40 % of the window
GROWN = [step(0), step(1, *said("a")), step(2, *said("a"), *said(LONG))]
#: The second compaction comes after enough that is new.
TWICE = [*GROWN, step(3, *said("b")), step(4, *said("b"), *said(LONG)), step(5, *said("c"), *said(LONG))]


def judged(requests: Sequence[ReceivedRequest], **changed: object) -> AdapterVerdict:
    clerk = ERRAND.script(Path("work"))
    clerk.kept = ERRAND.facts
    run = AdapterRun(
        framework="one", mode="chat", how="everlong", window=WINDOW, answers=[ERRAND.done(1)], requests=requests
    )
    return judge_adapter(replace(run, **changed), ERRAND, clerk)  # type: ignore[arg-type]


def test_a_good_run_has_no_fault() -> None:
    verdict = judged(TWICE, compactions=2)
    assert verdict.faults == ()
    assert (verdict.finished, verdict.steps, verdict.breaks, verdict.compactions) == (1, 6, 2, 2)
    assert verdict.ok
    assert verdict.ours
    assert verdict.sent == sum(request.tokens for request in TWICE)


FAULTS: dict[str, tuple[list[ReceivedRequest], dict[str, object], str]] = {
    "a break that nobody reported": (TWICE, {"compactions": 1}, "broke 2 times, but 1 compactions"),
    "a compaction that broke nothing": (TWICE, {"compactions": 3}, "broke 2 times, but 3 compactions"),
    "nobody reports": (TWICE, {}, "nobody reported compactions"),
    "too soon": (
        [step(0), step(1, *said("a")), step(2, *said("b")), step(3, *said("c"))],
        {"compactions": 2},
        "was compacted again after",
    ),
    "too large": (TWICE, {"compactions": 2, "window": 800}, "tokens for a window of 800"),
    "not finished": (TWICE, {"compactions": 2, "answers": ["no"]}, "0 of 1 tasks finished"),
    "an error": (TWICE, {"compactions": 2, "error": "ValueError: no"}, "the run failed: ValueError: no"),
    "never too long": ([step(0), step(1, *said("a"))], {"compactions": 0}, "never outgrew the window"),
    "invalid": (
        [*TWICE, step(6, *said("c"), *said(LONG), {"role": "tool", "tool_call_id": "x", "content": "y"})],
        {"compactions": 2},
        "request 6 is invalid",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_seen(name: str) -> None:
    requests, changed, told = FAULTS[name]
    assert any(told in fault for fault in judged(requests, **changed).faults)


def test_facts_that_are_gone_are_counted() -> None:
    clerk = ERRAND.script(Path("work"))
    clerk.kept = USER_FACTS
    run = AdapterRun(
        framework="one",
        mode="chat",
        how="own",
        window=WINDOW,
        answers=[ERRAND.done(1)],
        requests=TWICE,
    )
    verdict = judge_adapter(run, ERRAND, clerk)
    assert verdict.faults == (f"{len(READ)} of {len(ERRAND.facts)} facts from the beginning are gone",)
    assert not verdict.ours


def test_without_a_recall_tool_only_what_the_user_said_has_to_be_there() -> None:
    clerk = ERRAND.script(Path("work"))
    clerk.kept = USER_FACTS
    run = AdapterRun(
        framework="one",
        mode="chat",
        how="everlong",
        window=WINDOW,
        answers=[ERRAND.done(1)],
        requests=TWICE,
        compactions=2,
    )
    assert judge_adapter(run, ERRAND, clerk).faults == ()
    clerk.kept = USER_FACTS[1:]
    assert judge_adapter(run, ERRAND, clerk).faults == (f"1 of {len(ERRAND.facts)} facts from the beginning are gone",)
    clerk.kept = USER_FACTS
    recall: JsonText = '{"type": "function", "function": {"name": "recall", "parameters": {}}}'
    offered = replace(run, requests=[*TWICE[:-1], replace(TWICE[-1], tools=(*TWICE[-1].tools, recall))])
    assert f"{len(READ)} of {len(ERRAND.facts)} facts" in judge_adapter(offered, ERRAND, clerk).faults[0]


def test_who_is_not_told_the_window_may_be_refused_and_learns_from_it() -> None:
    huge = step(1, *said("a"), *said(LONG * 4))
    requests = [step(0), huge, step(2, *said("b")), *TWICE[4:]]
    assert judged(requests, how="untold", compactions=2).faults == ()
    assert "tokens for a window" in judged(requests, compactions=2).faults[0]


def test_others_are_not_judged_by_our_law() -> None:
    assert judged(TWICE, how="own").faults == ()


def test_every_framework_has_a_driver_and_a_page_for_its_runs() -> None:
    drivers = Path(judge_adapter.__code__.co_filename).parent / "drivers"
    for row in ADAPTERS.values():
        assert (drivers / (row.driver if row.driver.endswith(".mjs") else f"{row.driver}.py")).is_file()
        assert row.runs()[0] == (row.modes[0], "everlong")
        assert {how for _, how in row.runs()} <= set(HOWS)
        assert ADAPTER_PAGES.open in (PAGES / f"{row.name}.md").read_text(encoding="utf-8")
    assert ADAPTER_PAGES.open in (PAGES / "README.md").read_text(encoding="utf-8")


def test_the_table_shows_ours_with_all_faults_and_others_with_one() -> None:
    rows = [
        AdapterVerdict(framework="one", mode="chat", how=how, faults=("first", "second"), facts=5, kept=3, recalled=1)
        for how in ("everlong", "own")
    ]
    table = adapter_table(rows)
    assert table.notes == ("- one chat, everlong: first", "- one chat, everlong: second", "- one chat, own: first")
    assert "3/5 (1 recalled)" in table.rows[0]
