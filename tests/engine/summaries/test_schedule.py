"""Summaries beside a conversation: when they are begun, what they cover, what overtakes them."""

import asyncio
import os
from dataclasses import replace

import pytest

from everlong.core import EventKind, Message, Role
from everlong.engine.contracts import Call
from everlong.engine.engine import Engine
from everlong.engine.settings import Settings
from everlong.engine.summaries.schedule import Summaries
from everlong.engine.thread import newest_summary, summary_limit
from everlong.llm import Answer, ReceivedRequest, Refusal, ScriptedModel, Window, reads_files
from everlong.llm.scripted.script import Script
from everlong.summarize.summary import all_lines
from everlong.tokens import Counter
from tests.core.build import assistant, user
from tests.engine.authors import (
    HONEST,
    Gate,
    accounts,
    author,
    both,
    is_asked_to_summarise,
    of_kind,
    points,
    structured,
)
from tests.engine.talking import Talk, lawful, pages

ENDS = (EventKind.SUMMARY_APPLIED, EventKind.SUMMARY_SKIPPED, EventKind.SUMMARY_FAILED)
TURNS = 2_000 if os.environ.get("EVERLONG_SOAK") else 120
COUNTER = Counter("gpt-4o")


def talk_in(window: int, script: Script, **given: object) -> Talk:
    return Talk(ScriptedModel(script, Window(window, told=True)), **given)  # type: ignore[arg-type]


async def filled(talk: Talk, turns: int = 14) -> None:
    for turn in range(turns):
        await talk.say(f"Question {turn}: what does function_{turn} do?")


def test_a_summary_is_begun_by_itself_before_the_high_mark_and_stands_in_the_next_request() -> None:
    async def run() -> None:
        model = ScriptedModel(both(reads_files(1)), Window(16_000, told=True))
        talk = Talk(model)
        summaries = Summaries(talk.engine)
        for turn in range(40):
            await talk.say(f"Question {turn}: what does function_{turn} do?")
            await summaries.drain()
        assert len(accounts(talk)) >= 2
        assert all(point.account for point in points(talk)), "no compaction without a summary"
        last = model.requests[-1].messages
        assert sum("A summary of the earlier part" in message.text for message in last) == 1
        lawful([asked.messages for asked in model.requests])
        talk.one_outcome_each()

    asyncio.run(asyncio.wait_for(run(), 300))


def test_what_was_covered_is_not_covered_again_and_nothing_between_is_left_out() -> None:
    asked: list[ReceivedRequest] = []

    def summary(request: ReceivedRequest) -> Answer:
        asked.append(request)
        return Answer(text=HONEST)

    async def run() -> None:
        talk = talk_in(16_000, reads_files(1))
        summaries = Summaries(talk.engine, [author(summary)], own_model=False)
        for turn in range(40):
            await talk.say(f"Question {turn}: what does function_{turn} do?")
            await summaries.drain()
        seen = [[turn for turn in range(40) if f"\n[user] Question {turn}:" in one.messages[-1].text] for one in asked]
        together = [turn for part in seen for turn in part]
        assert together == list(range(together[-1] + 1))
        assert len(seen) >= 2

    asyncio.run(asyncio.wait_for(run(), 300))


@pytest.mark.parametrize("rounds", [6, 30], ids=["short loops", "one long loop"])
def test_a_tool_loop_is_summarised_only_just_before_a_cut_and_never_its_open_call(rounds: int) -> None:
    async def run() -> None:
        model = ScriptedModel(both(reads_files(rounds)), Window(16_000, told=True))
        talk = Talk(model, settings=Settings(summaries="on"))
        summaries = Summaries(talk.engine)
        for turn in range(60 // rounds):
            await talk.engine.append(talk.thread, [user(f"Question {turn}: read the files of part {turn}.")])
            while True:
                last = (await talk.ask())[-1]
                await summaries.drain()
                called = last.message.calls  # type: ignore[union-attr]
                if not called:
                    break
                account = newest_summary(talk.threads, talk.thread)
                rows = list(talk.threads.read(talk.thread))
                open_call = max(row.order for row in rows if isinstance(row.entry, Message) and row.entry.calls)
                assert account is None or account.covers <= open_call
                await talk.engine.append(talk.thread, [talk.answered(call.id) for call in called])
        assert accounts(talk)
        lawful([asked.messages for asked in model.requests if not is_asked_to_summarise(asked)])
        talk.one_outcome_each()

    asyncio.run(asyncio.wait_for(run(), 300))


def test_an_author_that_always_fails_is_not_asked_at_every_turn() -> None:
    async def run() -> None:
        talk = talk_in(16_000, reads_files(1), settings=Settings(preset="static-buffer"))
        failing = author(lambda _: Refusal(503, "away"))
        summaries = Summaries(talk.engine, [failing], own_model=False)
        for turn in range(40):
            await talk.say(f"Question {turn}: what does function_{turn} do?")
            await summaries.drain()
        failed = of_kind(talk, EventKind.SUMMARY_FAILED)
        assert 1 <= len(failed) <= 40 * 4 // 20
        assert not points(talk)
        talk.one_outcome_each()

    asyncio.run(asyncio.wait_for(run(), 300))


def test_an_undo_while_it_is_written_drops_it() -> None:
    async def run() -> None:
        talk = talk_in(16_000, reads_files(1))
        await filled(talk)
        await talk.engine.compact(talk.thread, talk.call)
        gate = Gate()
        summaries = Summaries(talk.engine, [gate.author()], own_model=False)
        waiting = asyncio.create_task(summaries.compact(talk.thread, talk.call, talk.model))
        await gate.waiting.wait()
        await talk.engine.undo(talk.thread)
        gate.opened.set()
        outcome = await waiting
        assert (outcome.kind, outcome.reason) == (EventKind.SUMMARY_SKIPPED, "the thread was changed meanwhile")
        assert not points(talk)

    asyncio.run(asyncio.wait_for(run(), 300))


def test_of_two_processes_one_summary_stands() -> None:
    async def run() -> None:
        talk = talk_in(16_000, reads_files(1))
        await filled(talk)
        gates = [Gate(), Gate()]
        engines = [talk.engine, Engine(talk.threads)]  # the same store, each with a memory of its own
        both_of_them = [Summaries(e, [g.author()], own_model=False) for e, g in zip(engines, gates, strict=True)]
        tasks = [asyncio.create_task(one.compact(talk.thread, talk.call, talk.model)) for one in both_of_them]
        for gate in gates:
            await gate.waiting.wait()
        for gate in gates:
            gate.opened.set()
        kinds = sorted([(await task).kind for task in tasks])
        assert kinds == [EventKind.SUMMARY_APPLIED, EventKind.SUMMARY_SKIPPED]
        assert len(accounts(talk)) == 1
        talk.one_outcome_each()

    asyncio.run(asyncio.wait_for(run(), 300))


def test_what_another_process_took_over_is_dropped_with_one_outcome() -> None:
    async def run() -> None:
        talk = talk_in(16_000, reads_files(1))
        await filled(talk)
        gate = Gate()
        slow = Summaries(talk.engine, [gate.author()], own_model=False)
        task = asyncio.create_task(slow.compact(talk.thread, talk.call, talk.model))
        await gate.waiting.wait()
        other = Summaries(Engine(talk.threads), [author()], own_model=False)
        assert await other.resume(talk.thread, talk.call, talk.model)
        await other.drain()
        gate.opened.set()
        assert (await task).kind is EventKind.SUMMARY_SKIPPED
        assert len(accounts(talk)) == 1
        talk.one_outcome_each()

    asyncio.run(asyncio.wait_for(run(), 300))


def test_messages_and_a_plain_cut_meanwhile_do_no_harm() -> None:
    async def run() -> None:
        talk = talk_in(16_000, reads_files(1))
        await filled(talk)
        gate = Gate()
        summaries = Summaries(talk.engine, [gate.author()], own_model=False)
        task = asyncio.create_task(summaries.compact(talk.thread, talk.call, talk.model))
        await gate.waiting.wait()
        length = talk.threads.thread(talk.thread).length
        talk.engine.after_turn.clear()
        await talk.engine.compact(talk.thread, talk.call)
        await filled(talk, 2)
        gate.opened.set()
        assert (await task).kind is EventKind.SUMMARY_APPLIED
        account = newest_summary(talk.threads, talk.thread)
        assert account is not None
        assert account.covers <= length
        assert len(gate.requests) == 1

    asyncio.run(asyncio.wait_for(run(), 300))


def test_a_branch_goes_on_with_the_summary_and_the_original_is_untouched() -> None:
    async def run() -> None:
        talk = talk_in(16_000, reads_files(1))
        await filled(talk)
        summaries = Summaries(talk.engine, [author()], own_model=False)
        await summaries.compact(talk.thread, talk.call, talk.model)
        length = talk.threads.thread(talk.thread).length
        talk.threads.branch(talk.thread, length, "branch")
        assert newest_summary(talk.threads, "branch") == newest_summary(talk.threads, talk.thread)
        talk.threads.append("branch", [user("And now?")])
        prepared = await talk.engine.prepare("branch", talk.call)
        assert sum("A summary of the earlier part" in message.text for message in prepared.request.messages) == 1
        assert talk.threads.thread(talk.thread).length == length

    asyncio.run(asyncio.wait_for(run(), 300))


def test_a_withdrawn_summary_is_gone_and_the_one_before_stands() -> None:
    async def run() -> None:
        talk = talk_in(16_000, reads_files(1))
        texts = iter([HONEST.replace("Each question", "First, each question"), HONEST])
        summaries = Summaries(talk.engine, [author(lambda _: Answer(text=next(texts)))], own_model=False)
        talk.engine.after_turn.clear()
        await filled(talk)
        await summaries.compact(talk.thread, talk.call, talk.model)
        first = newest_summary(talk.threads, talk.thread)
        await filled(talk, 6)
        assert (await summaries.compact(talk.thread, talk.call, talk.model)).kind is EventKind.SUMMARY_APPLIED
        assert newest_summary(talk.threads, talk.thread) != first
        await talk.engine.undo(talk.thread)
        assert newest_summary(talk.threads, talk.thread) == first
        await talk.engine.undo(talk.thread)
        assert newest_summary(talk.threads, talk.thread) is None

    asyncio.run(asyncio.wait_for(run(), 300))


def test_a_smaller_model_gets_the_same_summary_within_its_own_share() -> None:
    async def run() -> None:
        talk = talk_in(64_000, reads_files(1))
        long = structured(
            context="The user asks what each function does.",
            decisions=[f"Question {n} is answered: function_{n} is in the file that was read." for n in range(30)],
            done=["The questions so far were answered."],
        )
        summaries = Summaries(talk.engine, [author(long)], own_model=False)
        await filled(talk, 40)
        assert (await summaries.compact(talk.thread, talk.call, talk.model)).kind is EventKind.SUMMARY_APPLIED
        talk.threads.append(talk.thread, [user("And now?")])
        small = await talk.engine.prepare(talk.thread, replace(talk.call, model="gpt-4", served=4_000, max_tokens=400))
        [told] = [m for m in small.request.messages if "A summary of the earlier part" in m.text]
        assert Counter("gpt-4").message(told) <= summary_limit(4_000)
        assert small.tokens <= 4_000 - 400

    asyncio.run(asyncio.wait_for(run(), 300))


def test_mode_trim_and_off_ask_no_model_for_anything_but_answers() -> None:
    async def run(settings: Settings) -> None:
        talk = talk_in(16_000, reads_files(1), settings=settings)
        asked = author()
        summaries = Summaries(talk.engine, [asked])
        await filled(talk, 30)
        await summaries.drain()
        assert not asked.model.requests  # type: ignore[attr-defined]
        assert not of_kind(talk, EventKind.SUMMARY_STARTED)

    asyncio.run(run(Settings(mode="trim")))
    asyncio.run(run(Settings(summaries="off")))


def test_a_cancelled_summary_leaves_one_outcome_and_nothing_else() -> None:
    async def run() -> None:
        talk = talk_in(16_000, reads_files(1))
        await filled(talk)
        gate = Gate()
        summaries = Summaries(talk.engine, [gate.author()], own_model=False)
        task = asyncio.create_task(summaries.compact(talk.thread, talk.call, talk.model))
        await gate.waiting.wait()
        task.cancel()
        await summaries.drain()
        assert [event.reason for event in of_kind(talk, *ENDS)] == ["cancelled"]
        assert not points(talk)
        assert not talk.threads.unfinished(talk.thread)

    asyncio.run(asyncio.wait_for(run(), 300))


def test_a_summary_by_rules_keeps_what_a_model_wrote_before_and_says_what_it_is() -> None:
    async def run() -> None:
        talk = talk_in(16_000, reads_files(1))
        steps = iter((Answer(text=HONEST), Refusal(503, "away")))
        summaries = Summaries(talk.engine, [author(lambda _: next(steps))], own_model=False)
        talk.engine.after_turn.clear()
        await filled(talk)
        await summaries.compact(talk.thread, talk.call, talk.model)
        await filled(talk, 6)
        outcome = await summaries.compact(talk.thread, talk.call, talk.model)
        assert outcome.summary is not None
        assert outcome.summary.source == "rules"
        assert outcome.summary.decisions == ("Each question is answered from the file that was read.",)
        assert "Put together by rules" in accounts(talk)[-1].summary[0].text

    asyncio.run(asyncio.wait_for(run(), 300))


def test_a_long_loop_after_a_short_talk_is_summarised_by_its_steps() -> None:
    async def run() -> None:
        model = ScriptedModel(both(reads_files(1_000)), Window(16_000, told=True))
        talk = Talk(model, settings=Settings(summaries="on"))
        talk.threads.append(talk.thread, [user("Hello!"), assistant("Hello.")])
        summaries = Summaries(talk.engine)
        await talk.engine.append(talk.thread, [user("Question 1: read all files, what does each function do?")])
        for _ in range(50):
            called = (await talk.ask())[-1].message.calls  # type: ignore[union-attr]
            await summaries.drain()
            await talk.engine.append(talk.thread, [talk.answered(call.id) for call in called])
        assert len(accounts(talk)) >= 2
        asked = [one for one in model.requests if is_asked_to_summarise(one)]
        assert sum(one.cached for one in asked) > 0.5 * sum(one.tokens for one in asked)
        lawful([one.messages for one in model.requests])

    asyncio.run(asyncio.wait_for(run(), 300))


def test_an_idle_thread_is_summarised_before_the_cache_is_cold_and_a_busy_one_is_not() -> None:
    async def run() -> None:
        gate = Gate()
        talk = talk_in(16_000, reads_files(1), settings=Settings(cache_seconds=0.0, cold_mark=0.4, summaries="on"))
        summaries = Summaries(talk.engine, [gate.author()], own_model=False)
        talk.threads.append(talk.thread, [m for n in range(12) for m in (user(f"What is {n}?"), assistant(pages(n)))])
        await talk.say("Question 9: what does function_9 do?")
        await gate.waiting.wait()
        gate.opened.set()
        await summaries.drain()
        assert [event.reason for event in of_kind(talk, EventKind.SUMMARY_STARTED)] == ["idle"]

        busy = talk_in(16_000, reads_files(1), settings=Settings(cold_mark=0.4))
        other = Summaries(busy.engine, [author()], own_model=False)
        busy.threads.append(busy.thread, [m for n in range(12) for m in (user(f"What is {n}?"), assistant(pages(n)))])
        for turn in range(3):
            await busy.say(f"Question {turn}: what does function_{turn} do?")
        await other.drain()
        assert not of_kind(busy, EventKind.SUMMARY_STARTED)

    asyncio.run(asyncio.wait_for(run(), 300))


# --- a long conversation ----------------------------------------------------------------------------

FACTS = {
    5: "Remember: the customer number is KX-48213-Q.",
    17: "Important: the budget is 73,450 euros and not more.",
    33: "From now on always write dates like 2031-04-17.",
    48: "We decided: the table is called ledger_v7.",
    61: "Never deploy to the host bern-03.example before Friday.",
}
OPEN = {70: "Please remember to also write the migration for ledger_v7 later, it is not done yet."}


def notes_decisions(asked: ReceivedRequest) -> Answer:
    """Summarises, with what the user said to be decided."""
    said = [m.text for m in asked.messages if m.role is Role.USER and m.text.startswith("We decided: ")]
    return Answer(
        text=structured(
            context="The user asks about parts of the report; each is answered.",
            decisions=[text.removeprefix("We decided: ") for text in said],
            done=["The questions about the report so far were answered."],
        )
    )


def test_E4_planted_facts_stay_exact_the_summary_stays_bounded_and_no_line_comes_twice() -> None:
    """E4, A1: facts and open tasks of a long talk are in the request at its end, word for word."""

    async def run() -> None:
        said = pages(3, 10)
        model = ScriptedModel(both(lambda asked: Answer(text=f"Noted: {asked.number}. {said}"), notes_decisions))
        talk = Talk(model, call=Call(model="gpt-4o", served=8_000, max_tokens=400))
        summaries = Summaries(talk.engine)
        limit = summary_limit(8_000)
        seen: set[int] = set()
        for turn in range(TURNS):
            told = FACTS.get(turn) or OPEN.get(turn) or f"Turn {turn}: what about part {turn % 9} of the report?"
            await talk.say(told)
            await summaries.drain()
            account = newest_summary(talk.threads, talk.thread)
            if account is None or account.covers in seen:
                continue
            seen.add(account.covers)
            [text] = [m.text for m in accounts(talk)[-1].summary[:1]]
            assert COUNTER.text(text) <= limit
            lines = [line for line in text.splitlines() if len(line) > 20]
            assert len(lines) == len(set(lines))
            assert sum(map(len, all_lines(account))) < 40_000
        assert len(seen) >= 3
        await talk.say("Which customer number, budget, date format, table and host did I give you, and what is open?")
        sent = "\n".join(message.text for message in model.requests[-1].messages)
        for fact in (*FACTS.values(), *OPEN.values()):
            assert fact.removeprefix("We decided: ") in sent
        assert model.requests[-1].messages[0].role is Role.SYSTEM
        lawful([asked.messages for asked in model.requests])

    asyncio.run(asyncio.wait_for(run(), 300))


@pytest.mark.parametrize("writes", [True, False], ids=["an author writes it", "nobody does"])
def test_events_of_a_summary_name_who_wrote_it_and_what_it_cost(writes: bool) -> None:
    async def run() -> None:
        talk = talk_in(16_000, reads_files(1))
        await filled(talk, 6)
        asked = author(HONEST if writes else (lambda _: Refusal(503, "away")))
        outcome = await Summaries(talk.engine, [asked], own_model=False).compact(talk.thread, talk.call, talk.model)
        (applied,) = of_kind(talk, EventKind.SUMMARY_APPLIED)
        assert applied.model == (asked.name if writes else talk.call.model)
        assert outcome.reason == ("" if writes else applied.reason)
        spent = [event for event in of_kind(talk, EventKind.USAGE_RECORDED) if event.reason == "summary"]
        assert [event.model for event in spent] == [asked.name], "who was asked, whatever came of it"
        assert applied.reason.startswith("by rules") is not writes

    asyncio.run(asyncio.wait_for(run(), 300))
