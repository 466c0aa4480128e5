"""Failure modes at the agent: A1, A4, A5, C2, F5, F7, H3 to H6, and a long task in a small window."""

import asyncio
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from everlong.agent import Agent, Entered, Outcome, StandingContext, TurnEnded
from everlong.agent.config import SubAgents
from everlong.agent.definitions import Place
from everlong.agent.standing_context import workspace_standing
from everlong.agent.subagents import SubAgentSetup, spawn_tools
from everlong.core import OUTCOMES, EventKind, JsonObject, Message, Point
from everlong.engine import Engine, Failed, Restarted, Settings, Summaries
from everlong.errors import ContextOverflow, InputError
from everlong.llm import Answer, HttpModel, ReceivedRequest, Refusal, ScriptedModel, ScriptedServer, Window, reads_files
from everlong.store import MemoryThreads, open_store
from everlong.wire import valid
from tests.agent.acting import CONFIG, Act, Ran, calls_then, ended, reads, run, tool_of
from tests.engine.authors import HONEST, Gate, author, both, is_asked_to_summarise
from tests.engine.talking import over_http, pages

SOAK = bool(os.environ.get("EVERLONG_SOAK"))
TOO_LONG = Refusal(400, '{"error":{"message":"prompt is too long: 9000 tokens > 8000 maximum"}}')
SMALL = Window(16_000, told=True)


def files(ran: Ran, lines: int = 60):  # type: ignore[no-untyped-def]
    return ran.tool("read_file", lambda given: pages(sum(map(ord, str(given))), lines))


def texts(asked: ReceivedRequest) -> list[str]:
    return [message.text for message in asked.messages]


def one_outcome_each(act: Act) -> None:
    events = act.threads.events(act.thread)
    for event in events:
        if event.kind in OUTCOMES:
            ends = [other for other in events if other.parent == event.id and other.kind in OUTCOMES[event.kind]]
            assert len(ends) == 1, event


# --- A: what must not be lost -----------------------------------------------------------------------


def test_A1_the_request_in_flight_is_whole_after_a_cut_inside_its_own_turn() -> None:
    request = "Do Y, then Z,  keep W exactly as it is.\n不要改动 W。"
    model = ScriptedModel(both(reads_files(30)), SMALL)
    ran = Ran()
    act = Act(model, [files(ran)], replace(CONFIG, most_steps=60))

    async def turns() -> None:
        summaries = Summaries(act.engine)
        await act.say("Do X")
        ran.calls.clear()
        assert ended(await act.say(request)).reason == "done"
        await summaries.drain()

    run(turns())
    assert len(ran.calls) == len({json.dumps(given) for _, given in ran.calls}) == 30  # nothing is done twice
    assert act.kinds().count("context.compressed") + act.kinds().count("summary.applied") >= 1
    asked = [each for each in model.requests if not is_asked_to_summarise(each)]
    for each in asked[asked.index(next(a for a in asked if request in texts(a))) :]:
        assert texts(each).count(request) == 1
        summaries = [at for at, text in enumerate(texts(each)) if "A summary of the earlier part" in text]
        assert all(at < texts(each).index(request) for at in summaries)


def test_A1_what_is_said_while_a_compaction_runs_survives_in_order_after_the_summary() -> None:
    async def turns() -> None:
        gate = Gate()
        model = ScriptedModel(reads(2), SMALL)
        started, go = asyncio.Event(), asyncio.Event()
        hold: list[bool] = []

        async def slow(arguments: JsonObject, place: Place) -> Outcome:
            if hold:
                started.set()
                await go.wait()
            return Outcome(pages(sum(map(ord, str(arguments)))))

        act = Act(model, [tool_of(slow, "read_file")])
        summaries = Summaries(act.engine, [gate.author()], own_model=False)
        turn = 0
        while not gate.waiting.is_set():
            await act.say(f"Question {turn}")
            turn += 1
        hold.append(True)
        task = asyncio.create_task(act.say("The third thing"))
        await started.wait()
        assert act.agent.steer("t", "First, mind the gap")
        assert act.agent.steer("t", "Second, mind the step")
        gate.opened.set()
        go.set()
        events = await task
        assert [e.message.text for e in events if isinstance(e, Entered)] == [
            "First, mind the gap",
            "Second, mind the step",
        ]
        said = texts(model.requests[-1])  # the last step of the same turn
        (kept,) = (text for text in said if text.startswith("[Kept by the system"))
        assert kept.split("\n\n")[1:] == ["The third thing", "First, mind the gap"]
        last = said.index("Second, mind the step")
        assert all(at < last for at, text in enumerate(said) if "A summary of the earlier part" in text)
        await summaries.drain()
        await act.say("And now?")  # by now another summary may cover them: it quotes what the user asked for
        whole = "\n".join(texts(model.requests[-1]))
        assert 0 <= whole.index("First, mind the gap") < whole.index("Second, mind the step")

    run(turns())


def test_A4_no_cut_while_a_tool_runs_and_no_unread_result_is_dropped() -> None:
    async def turns() -> None:
        gate, waiting = asyncio.Event(), asyncio.Event()
        ran: list[int] = []

        async def read(arguments: JsonObject, place: Place) -> Outcome:
            number = int(str(arguments["n"]))
            ran.append(number)
            if number == 2:
                waiting.set()
                await gate.wait()
            return Outcome(pages(number, 70))

        model = ScriptedModel(
            lambda asked: (
                Answer(text="Read.")
                if any(m.results for m in asked.messages[-4:])
                else Answer(calls=tuple(("read", f'{{"n": {n}}}') for n in range(3)))
                if "all three" in asked.messages[-1].text
                else Answer(text="word " * 900)
            ),
            Window(16_000, told=True),
        )
        act = Act(model, [tool_of(read, "read")])
        for _ in range(13):
            await act.say("Talk")
        before = act.kinds().count("context.compressed")
        task = asyncio.create_task(act.say("Read all three"))
        await waiting.wait()
        while len(act.results) < 2:
            await asyncio.sleep(0)
        assert act.kinds().count("context.compressed") == before
        gate.set()
        assert ended(await task).reason == "done"
        assert act.kinds().count("context.compressed") > before
        sent = [result.text for message in model.requests[-1].messages for result in message.results]
        assert sent == [pages(number, 70) for number in range(3)]
        assert sorted(ran) == [0, 1, 2]

    run(turns())


def test_A5_instructions_skills_and_todos_are_there_exactly_once_after_every_cut(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Rule one: use tabs.", "utf-8")
    (tmp_path / "skills" / "pdf").mkdir(parents=True)
    (tmp_path / "skills" / "pdf" / "SKILL.md").write_text("---\nname: pdf\ndescription: Fill forms\n---\n", "utf-8")
    model = ScriptedModel(both(reads(2)), SMALL)
    act = Act(model, [files(Ran())], standing=workspace_standing(tmp_path, todo=lambda _: "- [ ] write the report"))

    async def turns() -> None:
        summaries = Summaries(act.engine)
        for turn in range(10):
            await act.say(f"Question {turn}")
        await summaries.drain()
        outcome = await summaries.compact("t", await act.agent.call("t"), model)
        assert outcome.kind is EventKind.SUMMARY_APPLIED
        await act.say("After the compaction")
        (tmp_path / "AGENTS.md").write_text("Rule two: use spaces.", "utf-8")
        await act.say("After the change")

    run(turns())
    talked = [asked for asked in model.requests if not is_asked_to_summarise(asked)]
    rule = "Rule one: use tabs."
    for asked in talked:
        whole = "\n".join(texts(asked))
        rule = "Rule two: use spaces." if "After the change" in whole else "Rule one: use tabs."
        assert [whole.count(part) for part in (rule, "- pdf: Fill forms", "- [ ] write the report")] == [1, 1, 1]
    assert "Rule one" not in "\n".join(texts(talked[-1]))
    points = [row.entry for row, _ in act.threads.points("t") if isinstance(row.entry, Point)]
    kept = " ".join(message.text for point in points for message in point.summary)
    assert points
    assert "Rule one" not in kept
    assert "write the report" not in kept


# --- C, F -------------------------------------------------------------------------------------------


def test_C2_a_server_that_cuts_in_silence_is_found_out_learned_and_asked_again() -> None:
    async def turns(model: HttpModel) -> None:
        act = Act(model, [files(Ran(), 60)], replace(CONFIG, max_tokens=300))
        restarted = 0
        for turn in range(12):
            events = await act.say(f"Question {turn}")
            restarted += sum(isinstance(event, Restarted) for event in events)
            assert ended(events).reason == "done"
        assert restarted == 1
        assert act.kinds().count("window.learned") == 1
        act.sound()

    with ScriptedServer(reads_files(2), window=Window(8_192, truncates=True)) as server:
        over_http(server, turns)
    late = server.requests[-6:]
    assert all(asked.tokens + 300 <= 8_192 for asked in late)


def test_F5_a_sub_agent_on_32k_under_a_parent_of_a_million_compacts_by_its_own_window() -> None:
    rounds = 60 if SOAK else 24
    ran = Ran()
    parent = ScriptedModel(calls_then([[("spawn", '{"task": "Read everything"}')]]), Window(1_000_000, told=True))
    child = ScriptedModel(
        lambda asked: (
            Answer(text="All read. " * 2_000)
            if len(ran.calls) >= rounds
            else Answer(calls=(("read_file", f'{{"n": {asked.number}}}'),))
        ),
        Window(32_000),
        endpoint="small",
    )
    threads = MemoryThreads()
    engine = Engine(threads)
    limits = SubAgents(model="gpt-4o-mini", window=32_000, most_steps=rounds + 5, result_characters=2_000)
    config = replace(CONFIG, subagents=limits)
    setup = SubAgentSetup(engine=engine, model=child, tools=[files(ran, 200)], config=config)
    agent = Agent(engine, parent, spawn_tools(setup), config)

    async def turn() -> TurnEnded:
        return ended([event async for event in agent.turn("main", "Go")])

    assert run(turn()).reason == "done"
    assert len(ran.calls) == len({json.dumps(given) for _, given in ran.calls}) == rounds
    assert max(asked.tokens for asked in child.requests) + 500 <= 32_000
    kinds = [event.kind for event in threads.events("main.call_0_0")]
    assert EventKind.CONTEXT_COMPRESSED in kinds
    assert EventKind.OVERFLOW_DETECTED not in kinds
    (made,) = (r for row in threads.read("main") if isinstance(row.entry, Message) for r in row.entry.results)
    assert len(made.text) <= 2_000 + 500
    assert "main.call_0_0" in made.text
    assert EventKind.CONTEXT_COMPRESSED not in [event.kind for event in threads.events("main")]


@pytest.mark.parametrize("how", ["cancelled", "fails", "times out"])
def test_F7_whatever_ends_a_compaction_the_state_is_idle_and_the_next_turn_works(how: str) -> None:
    async def turns() -> None:
        gate = Gate()
        writers = {
            "cancelled": gate.author(),
            "fails": author(lambda _: Refusal(500, "away")),
            "times out": gate.author(seconds=0.05),
        }
        act = Act(
            ScriptedModel(reads_files(2), SMALL), [files(Ran())], replace(CONFIG, engine=Settings(preset="chatbox"))
        )
        summaries = Summaries(act.engine, [writers[how]], own_model=False)
        turn = 0
        while "summary.started" not in act.kinds():
            await act.say(f"Question {turn}")
            turn += 1
            await asyncio.sleep(0.01)
        if how == "cancelled":
            await gate.waiting.wait()
            assert summaries.cancel("t")
        await summaries.drain()
        assert not summaries.running("t")
        assert not act.agent.running("t")
        assert ended(await act.say("And now?")).reason == "done"
        gate.opened.set()
        await summaries.drain()
        one_outcome_each(act)

    run(turns())


def test_F7_an_interrupt_in_the_middle_leaves_nothing_stuck() -> None:
    """The turn is stopped at every piece that it tells, one after the other; the next one always works."""

    async def turns() -> None:
        act = Act(ScriptedModel(both(reads_files(2)), SMALL), [files(Ran())])
        summaries = Summaries(act.engine)
        stop = 0
        stopped = True
        while stopped:
            stopped, seen = False, 0
            async for _ in act.agent.turn("t", f"Question {stop}"):
                seen += 1
                if seen == stop + 1 and act.agent.interrupt("t"):
                    stopped = True
            stop += 1
            act.sound()
            assert not act.agent.running("t")
        assert stop > 6
        assert ended(await act.say("And now?")).reason == "done"
        await summaries.drain()
        one_outcome_each(act)

    run(turns())


# --- H: what the user sees and sets -----------------------------------------------------------------


def test_H3_off_is_off_an_overflow_is_a_typed_error_and_nobody_summarises() -> None:
    async def turns() -> None:
        writer = author()
        model = ScriptedModel(reads_files(2), Window(6_000))
        act = Act(model, [files(Ran())], replace(CONFIG, engine=Settings(mode="off")))
        Summaries(act.engine, [writer])
        reason = ""
        while reason != "failed":
            events = await act.say("Go")
            reason = ended(events).reason
        (failed,) = (event for event in events if isinstance(event, Failed))
        assert type(failed.error) is ContextOverflow
        assert not writer.model.requests  # type: ignore[attr-defined]
        assert set(act.kinds()) <= {"turn.started", "turn.failed", "turn.finished", "usage.recorded"}
        assert len(model.requests) == act.kinds().count("turn.started")  # nothing was tried again

    run(turns())


@pytest.mark.parametrize("threshold", [0.4, 0.6, 0.8, 0.95])
def test_H3_the_threshold_is_where_the_cut_comes(threshold: float) -> None:
    model = ScriptedModel(lambda _: Answer(text="word " * 60), SMALL)
    act = Act(model, config=replace(CONFIG, engine=Settings(threshold=threshold)))

    async def turns() -> None:
        while "context.compressed" not in act.kinds():
            await act.say("Go on")

    run(turns())
    cut = next(event for event in act.threads.events("t") if event.kind is EventKind.CONTEXT_COMPRESSED)
    room = 16_000 - 500 - 500
    assert (cut.tokens_before or 0) / room == pytest.approx(threshold, abs=0.03)


def test_H3_values_outside_are_refused_and_a_threads_own_setting_beats_all_and_survives_a_restart(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="threshold"):
        Settings(threshold=0.1)
    model = ScriptedModel(lambda _: Answer(text="word " * 400), SMALL)

    async def turns(many: int) -> list[str]:
        with open_store(f"sqlite:///{tmp_path / 'threads.db'}") as store:
            act = Act(model, threads=store)
            for _ in range(many):
                await act.say("Go on")
            store.change("t", settings='{"mode": "off"}')
            return act.kinds()

    run(turns(2))
    assert "context.compressed" not in run(turns(40))
    assert model.requests[-1].tokens > 16_000 * 0.95


def test_H4_the_meter_after_a_compaction_is_the_size_of_what_is_sent_next() -> None:
    async def turns() -> None:
        model = ScriptedModel(both(reads_files(2)), SMALL)
        act = Act(model, [files(Ran())])
        summaries = Summaries(act.engine)
        for turn in range(8):
            await act.say(f"Question {turn}")
        await summaries.drain()
        await summaries.compact("t", await act.agent.call("t"), model)
        call = replace(await act.agent.call("t"), served=16_000)
        prepared = await act.engine.prepare("t", call)
        await act.engine.record_failure(prepared, "looked at")
        asked = len(model.requests)
        await act.say("?")
        assert prepared.tokens == pytest.approx(model.requests[asked].tokens, rel=0.1)
        assert prepared.window.context == 16_000
        spent = [event for event in act.threads.events("t") if event.kind is EventKind.USAGE_RECORDED]
        assert {event.reason for event in spent} == {"", "summary"}  # what a summary cost is told apart

    run(turns())


def test_H5_every_attempt_is_told_with_its_outcome_and_a_warning_comes_first() -> None:
    async def turns() -> None:
        model = ScriptedModel(both(reads_files(1)), SMALL)
        act = Act(model, [files(Ran(), 30)])
        summaries = Summaries(act.engine)
        for turn in range(30):
            await act.say(f"Question {turn}")
            await summaries.drain()
        one_outcome_each(act)
        kinds = act.kinds()
        changed = [at for at, kind in enumerate(kinds) if kind in ("context.compressed", "summary.applied")]
        assert changed
        applied = [e for e in act.threads.events("t") if e.kind is EventKind.SUMMARY_APPLIED]
        assert all((e.tokens_before or 0) > (e.tokens_after or 0) and e.model for e in applied)

    run(turns())


def test_H5_a_cut_that_nears_is_warned_of() -> None:
    act = Act(ScriptedModel(reads_files(1), SMALL), [files(Ran(), 30)])

    async def turns() -> None:
        while "context.compressed" not in act.kinds():
            await act.say("Go on")

    run(turns())
    assert act.kinds().index("context.warned") < act.kinds().index("context.compressed")


def test_H6_a_focus_reaches_the_summariser_once_and_is_kept_on_its_point() -> None:
    async def turns() -> None:
        writer = author(HONEST)
        model = ScriptedModel(reads_files(2))
        act = Act(model, [files(Ran())])
        summaries = Summaries(act.engine, [writer], own_model=False)
        focus = "keep the failing test names"
        for turn in range(6):
            await act.say(f"Question {turn}")
        await summaries.compact("t", await act.agent.call("t"), model, focus=focus)
        for turn in range(6):
            await act.say(f"More {turn}")
        await summaries.compact("t", await act.agent.call("t"), model)
        asked = [" ".join(texts(each)) for each in writer.model.requests]  # type: ignore[attr-defined]
        assert [focus in text for text in asked] == [True, False]
        points = [row.entry.focus for row, _ in act.threads.points("t") if isinstance(row.entry, Point)]
        assert points == [focus, ""]
        assert focus not in " ".join(texts(model.requests[-1]))

    run(turns())


def test_H6_nothing_to_compact_is_skipped_and_told() -> None:
    async def turns() -> None:
        writer = author(HONEST)
        act = Act(ScriptedModel())
        summaries = Summaries(act.engine, [writer], own_model=False)
        await act.say("Hello")
        outcome = await summaries.compact("t", await act.agent.call("t"), act.model)
        assert outcome.kind is EventKind.SUMMARY_SKIPPED
        assert not writer.model.requests  # type: ignore[attr-defined]
        assert act.kinds()[-2:] == ["summary.started", "summary.skipped"]

    run(turns())


# --- The long task ----------------------------------------------------------------------------------

ROUNDS = 60 if SOAK else 15
REQUEST = "Read every page in turn.  Then write the report;\nkeep the names as they are. 请不要跳过任何一页。"
WINDOW, REPLY = 32_000, 1_000


def page(number: int) -> str:
    """The result of a round; every fifth is 1.7 MB, others some kilobytes, each with its own first and last line."""
    size = 1_700_000 if number % 5 == 4 else 2_000 + 900 * (number % 7)
    line = f"page {number}: the valve stands at {number * 31 % 97} and the gauge shows it; "
    return f"BEGIN {number}\n" + (line * (size // len(line) + 1))[:size] + f"\nEND {number}"


@dataclass
class LongTask:
    """A model that reads page after page, and what it saw at each step."""

    made: int = 0
    unread: list[int] = field(default_factory=list)

    def __call__(self, asked: ReceivedRequest) -> Answer:
        said = texts(asked)
        assert said.count(REQUEST) == 1, "the request is whole"
        assert sum(f"{self.made} of {ROUNDS} pages read" in text for text in said) == 1, "the todo list is today's"
        assert asked.tokens + REPLY <= WINDOW
        assert valid("openai-chat", asked.messages)
        results = {result.call: result.text for message in asked.messages for result in message.results}
        last = next((m for m in reversed(asked.messages) if m.calls), None)
        for number, call in zip(self.unread, last.calls if last else (), strict=True):
            text = results[call.id]
            assert f"BEGIN {number}" in text
            assert text == page(number) or (len(page(number)) > 20_000 and f"END {number}" in text)
        if self.made >= ROUNDS:
            return Answer(text="The report is written.")
        many = min(1 + self.made % 2, ROUNDS - self.made)  # one page, then two at once
        self.unread = list(range(self.made, self.made + many))
        self.made += many
        return Answer(calls=tuple(("read_page", f'{{"n": {n}}}') for n in self.unread))


@pytest.mark.parametrize("summaries", [False, True], ids=["cuts alone", "with summaries"])
def test_a_long_task_with_huge_results_in_a_small_window_finishes_and_loses_nothing(summaries: bool) -> None:
    task, ran = LongTask(), Ran()
    tool = ran.tool("read_page", lambda given: page(int(str(given["n"]))))
    standing = StandingContext((), (("Todo", lambda _: f"- [ ] the report ({task.made} of {ROUNDS} pages read)"),))
    config = replace(CONFIG, max_tokens=REPLY, most_steps=ROUNDS + 5)

    async def turns(model: HttpModel) -> Act:
        act = Act(model, [tool], config, standing)
        beside = Summaries(act.engine, [author(HONEST)], own_model=False) if summaries else None
        events = await act.say(REQUEST)
        assert ended(events).reason == "done", [event for event in events if isinstance(event, Failed)]
        if beside is not None:
            await beside.drain()
        return act

    with ScriptedServer(task, window=Window(WINDOW, told=True)) as server:
        act = over_http(server, turns)
    assert [given["n"] for _, given in ran.calls] == list(range(ROUNDS))  # each exactly once
    assert act.results == [page(number) for number in range(ROUNDS)]  # and kept as it came
    assert act.stored[-1].text == "The report is written."
    assert act.kinds().count("context.compressed") >= 1
    assert "overflow.detected" not in act.kinds()
    act.sound()
