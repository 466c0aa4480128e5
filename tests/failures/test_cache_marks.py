"""D1, D2 and D3 against a cache that keeps only what was marked, as Anthropic's: through the engine, over HTTP."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from everlong.core import Message, Role, Text
from everlong.engine import Call, Settings, Summaries
from everlong.llm import Answer, HttpModel, ReceivedRequest, ScriptedServer, Step, Window, reads_files
from everlong.llm.scripted.script import Script
from everlong.wire import problems
from tests.engine.authors import accounts, both, is_asked_to_summarise
from tests.engine.talking import Talk, over_http
from tests.llm.marked_cache import Billed, MarkedCache, marks_of

TOOL = '{"name":"read_file","input_schema":{"type":"object"}}'
CALL = Call(model="gpt-4o", max_tokens=500, tools=(TOOL,))
WINDOW = Window(16_000, told=True)


def talked(
    script: Script, call: Call = CALL, turns: int = 12, settings: Settings | None = None
) -> list[ReceivedRequest]:
    """The requests of a conversation in Anthropic's format, all of them valid."""

    async def run(model: HttpModel) -> None:
        talk = Talk(model, call=call, settings=settings or Settings())
        for turn in range(turns):
            if call.tail:
                note = Message(Role.USER, (Text(f"It is minute {turn}. " + "This changes each time. " * 20),))
                talk.call = replace(call, tail=(note,))
            await talk.say(f"Question {turn}: what does function {turn} do?")

    with ScriptedServer(script) as server:
        over_http(server, run, "anthropic")
    for asked in server.requests:
        assert problems("anthropic", json.loads(asked.body)) == []
    return server.requests


def looks_up(asked: ReceivedRequest) -> Step:
    """Reads one file for each question, whatever else the user seems to say."""
    questions = [at for at, message in enumerate(asked.messages) if message.text.startswith("Question")]
    read = any(message.results for message in asked.messages[questions[-1] :])
    return Answer(text="So.") if read else Answer(calls=(("read_file", "{}"),))


def total(bills: list[Billed]) -> tuple[float, int]:
    return sum(bill.cost for bill in bills), sum(bill.total for bill in bills)


def test_D1_each_request_reads_all_that_the_one_before_left_in_the_cache() -> None:
    bills = MarkedCache().bills(talked(reads_files(2)))
    assert len(bills) == 36
    for before, now in pairwise(bills):
        assert now.read == before.total, "what was sent before is read, and only the news is written"
        assert now.plain == 0
    cost, sent = total(bills)
    assert cost < 0.25 * sent


def test_D1_a_cut_costs_what_it_changed_and_leaves_the_front_in_the_cache() -> None:
    requests = talked(reads_files(2), replace(CALL, served=9_000), turns=20, settings=Settings(summaries="off"))
    bills = MarkedCache().bills(requests)
    missed = [bill for before, bill in pairwise(bills) if bill.read < before.total]
    assert 0 < len(missed) < len(bills) / 5
    assert all(bill.read > 0 for bill in missed), "the system text and the tools are read even then"
    assert any(len(marks_of(asked.body)) == 3 for asked in requests), "system text, what a cut left, the end"


def test_D1_a_step_of_many_blocks_is_still_found() -> None:
    many = tuple(("read_file", json.dumps({"path": str(at)})) for at in range(15))

    def script(asked: ReceivedRequest) -> Step:
        return Answer(text="So.") if asked.messages[-1].role is Role.TOOL else Answer(calls=many)

    requests = talked(script, turns=5)
    bills = MarkedCache().bills(requests)
    for before, now in pairwise(bills):
        assert now.read == before.total
    assert max(len(marks_of(asked.body)) for asked in requests) == 3


def test_D2_volatile_text_is_never_kept_and_costs_nothing_but_itself() -> None:
    note = Message(Role.USER, (Text("…"),))
    requests = talked(looks_up, replace(CALL, tail=(note,)))
    bills = MarkedCache().bills(requests)
    for asked in requests:
        messages = json.loads(asked.body)["messages"]
        at = next(n for n, message in enumerate(messages) if "This changes each time." in json.dumps(message))
        assert all(mark == "system" or int(mark) < at for mark in marks_of(asked.body))
    for before, now in pairwise(bills):
        assert now.read == before.read + before.written
        assert 0 < now.plain < 1_000


@pytest.mark.parametrize(("seconds", "mark"), [(300, {"type": "ephemeral"}), (900, {"type": "ephemeral", "ttl": "1h"})])
def test_a_longer_pause_is_asked_for_where_one_is_expected(seconds: int, mark: dict[str, str]) -> None:
    (asked,) = talked(lambda _: Answer(text="ok"), turns=1, settings=Settings(cache_seconds=seconds))
    assert json.loads(asked.body)["system"][-1]["cache_control"] == mark


@pytest.mark.parametrize("tail", [(), (Message(Role.USER, (Text("It is noon."),)),)], ids=["plain", "volatile text"])
def test_D3_a_summary_reads_the_cache_of_the_conversation_and_writes_next_to_nothing(tail: tuple[Message, ...]) -> None:
    async def run(model: HttpModel) -> None:
        talk = Talk(model, call=replace(CALL, served=16_000, tail=tail))
        summaries = Summaries(talk.engine)
        for turn in range(30):
            await talk.say(f"Question {turn}: what does function {turn} do?")
            await summaries.drain()
            if accounts(talk):
                return

    with ScriptedServer(both(looks_up)) as server:
        over_http(server, run, "anthropic")
    cache = MarkedCache()
    [bill] = [bill for asked in server.requests for bill in [cache.bill(asked)] if is_asked_to_summarise(asked)]
    assert bill.read > 0.85 * bill.total
    assert bill.written < 0.01 * bill.total


@pytest.mark.parametrize("turns", [1, 10], ids=["one long loop", "many turns"])
def test_D3_a_summary_asked_for_by_hand_writes_nothing(turns: int) -> None:
    async def run(model: HttpModel) -> None:
        talk = Talk(model, call=CALL)
        for turn in range(turns):
            await talk.say(f"Question {turn}: what does function {turn} do?")
        await Summaries(talk.engine).compact(talk.thread, talk.call, model)

    with ScriptedServer(both(reads_files(20 // turns))) as server:
        over_http(server, run, "anthropic")
    cache = MarkedCache()
    bills = [(cache.bill(asked), is_asked_to_summarise(asked)) for asked in server.requests]
    [bill] = [bill for bill, summary in bills if summary]
    assert bill.read > 0.8 * bill.total
    assert bill.written == 0
