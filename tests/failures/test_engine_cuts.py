"""Failure modes of cuts, pins, undo and switches, through the engine over HTTP: A4, A6, F2, F3, H2, H3, H5."""

import pytest

from everlong.core import Message
from everlong.engine import Call, Engine, Failed, Finished, Settings
from everlong.errors import BudgetImpossible, ContextOverflow, InputError
from everlong.llm import Answer, HttpModel, Refusal, ScriptedServer, Window, in_turn, reads_files
from everlong.store import MemoryThreads
from everlong.wire import valid
from tests.core.build import assistant, calls, result, system, user
from tests.engine.talking import Talk, over_http, pages

TOO_LONG = Refusal(400, '{"error":{"message":"prompt is too long"}}')
OK = Answer(text="ok")


def _filled(threads: MemoryThreads, rounds: int, lines: int = 60) -> None:
    for at in range(rounds):
        call = f"old_{at}"
        threads.append("t", [user(f"Question {at}"), calls(call), result(call, pages(at, lines)), assistant("So.")])


def _thread(rounds: int = 0, lines: int = 60) -> MemoryThreads:
    threads = MemoryThreads()
    threads.create("t")
    threads.append("t", [system("Work carefully.")])
    _filled(threads, rounds, lines)
    return threads


# --- A4, A6 ----------------------------------------------------------------------------------------


def test_A4_results_that_were_not_read_yet_come_through_a_cut_as_they_arrived() -> None:
    three = Answer(
        calls=(("read_file", '{"path": "a"}'), ("read_file", '{"path": "b"}'), ("read_file", '{"path": "c"}'))
    )

    async def run(model: HttpModel) -> Talk:
        talk = Talk(model, lines=70)
        talk.threads.append(talk.thread, [m for at in range(18) for m in (user(f"Q {at}"), assistant(pages(at, 40)))])
        await talk.say("Read the three")
        return talk

    with ScriptedServer(in_turn([three], then=lambda asked: OK), window=Window(12_000, told=True)) as server:
        talk = over_http(server, run)
    assert "context.compressed" in talk.kinds()
    last = server.requests[-1].messages
    unread = [message for message in talk.stored if message.results]
    assert len(unread) == 3
    assert [part.text for message in last for part in message.results] == [m.results[0].text for m in unread]
    assert len(server.requests) == 2, "each tool ran once, and no user message was needed to go on"


@pytest.mark.parametrize("preset", ["auto", "nanobot", "nanobot-v3", "chatbox", "static-buffer", "simple"])
def test_A6_pins_stand_in_every_request_on_every_path(preset: str) -> None:
    script = in_turn([Answer(text="one"), TOO_LONG, TOO_LONG, OK], then=reads_files(2))

    async def run(model: HttpModel) -> Talk:
        talk = Talk(model, settings=Settings(preset=preset))
        await talk.say("Remember: the port is 4711.")
        for at in range(20):
            talk.threads.append(talk.thread, [user(f"Old {at}"), assistant(pages(at, 30))])
        await talk.engine.pin(talk.thread, 1)
        await talk.engine.pin(talk.thread, text="Never touch the vendor folder.")
        for turn in range(8):  # the overflow comes first, then cut after cut
            assert isinstance((await talk.say(f"Question {turn}"))[-1], Finished)
        await talk.engine.compact(talk.thread, Call(model="gpt-4o", endpoint=model.endpoint, served=16_000))
        await talk.say("And now?")
        return talk

    with ScriptedServer(script, window=Window(16_000, told=True)) as server:
        over_http(server, run)
    for asked in server.requests[1:]:
        texts = "\n".join(message.text for message in asked.messages)
        assert texts.count("Remember: the port is 4711.") == 1
        assert texts.count("Never touch the vendor folder.") == 1


def test_A6_a_message_can_be_pinned_after_it_left_the_window() -> None:
    threads = _thread()
    threads.append("t", [user("Hello."), assistant("Hello."), user("The port is 4711."), assistant("Noted.")])
    _filled(threads, 20)
    threads.append("t", [user("What now?")])
    blocking = Engine(threads).blocking
    call = Call(model="gpt-4o", served=8_000, max_tokens=300)
    before = blocking.prepare("t", call)
    assert user("The port is 4711.") not in before.request.messages
    blocking.record_usage(before, None)
    blocking.pin("t", 3)
    for engine in (blocking, Engine(threads).blocking):
        assert engine.prepare("t", call).request.messages.count(user("The port is 4711.")) == 1
    point = blocking.compact("t", call)
    assert blocking.prepare("t", call).request.messages.count(user("The port is 4711.")) == 1, point


def test_A6_pins_above_their_share_are_an_error_that_says_so() -> None:
    threads = _thread()
    threads.append("t", [user("Hello")])
    blocking = Engine(threads).blocking
    blocking.pin("t", text="word " * 4_000)
    with pytest.raises(BudgetImpossible, match="pinned text"):
        blocking.prepare("t", Call(model="gpt-4o", served=8_000))


# --- F2, F3 ----------------------------------------------------------------------------------------


def test_F2_what_can_never_fit_is_one_attempt_with_the_parts_named_and_no_call() -> None:
    async def run(model: HttpModel) -> Talk:
        talk = Talk(
            model, call=Call(model="gpt-4o", max_tokens=200, tools=('{"name": "t", "d": "' + "x y " * 900 + '"}',))
        )
        talk.threads.append(talk.thread, [system("rule " * 2_500)])
        for _ in range(3):
            with pytest.raises(BudgetImpossible) as raised:
                await talk.say("Hello")
            assert {"tool schemas", "the shortest answer"} <= dict(raised.value.parts).keys()
            assert raised.value.needed > 4_000
        return talk

    with ScriptedServer(window=Window(4_000, told=True)) as server:
        talk = over_http(server, run)
    assert not server.requests
    assert talk.threads.thread(talk.thread).points == 0
    talk.one_outcome_each()


def test_F2_after_a_cut_ten_more_turns_need_none() -> None:
    async def run(model: HttpModel) -> list[str]:
        talk = Talk(model, lines=5)
        talk.threads.append(talk.thread, [m for at in range(24) for m in (user(f"Q {at}"), assistant(pages(at, 60)))])
        kinds: list[str] = []
        for turn in range(11):
            await talk.say(f"Short question {turn}")
            kinds = talk.kinds()
            assert kinds.count("context.compressed") == 1, turn
        return kinds

    with ScriptedServer(window=Window(16_000, told=True)) as server:
        over_http(server, run)


def test_F2_a_cut_that_gained_nothing_is_not_tried_at_every_call() -> None:
    """A question that fills the window to the mark: cuts come when the limit is passed, not with each step."""

    async def run(model: HttpModel) -> Talk:
        talk = Talk(model, call=Call(model="gpt-4o", max_tokens=200), lines=1)
        await talk.say("word " * 7_150)
        return talk

    with ScriptedServer(reads_files(10), window=Window(8_000, told=True)) as server:
        talk = over_http(server, run)
    assert len(server.requests) == 11
    assert talk.kinds().count("context.compressed") <= 4


def test_F2_compacting_again_where_nothing_is_gained_adds_no_point() -> None:
    threads = _thread()
    threads.append("t", [user("Hello")])
    blocking = Engine(threads).blocking
    call = Call(model="gpt-4o", served=16_000)
    assert blocking.compact("t", call) is None
    _filled(threads, 8)
    done = [blocking.compact("t", call) for _ in range(12)]
    assert done[0] is not None
    assert done[-1] is None
    assert threads.thread("t").points == sum(point is not None for point in done)


def test_F2_an_overflow_that_tells_nothing_is_not_met_again_at_the_next_turn() -> None:
    """What was cut because it was refused does not come back by itself, though the tables say that it would fit."""

    async def run(model: HttpModel) -> Talk:
        talk = Talk(model)
        for at in range(12):
            talk.threads.append(talk.thread, [user(f"Old {at}"), assistant(pages(at, 60))])
        for turn in range(5):
            assert isinstance((await talk.say(f"Question {turn}"))[-1], Finished)
        return talk

    with ScriptedServer(window=Window(8_000, status=413, body="")) as server:
        talk = over_http(server, run)
    assert talk.kinds().count("overflow.detected") == 1
    assert "context.restored" not in talk.kinds()


PASTE = "\n".join(f"{at}: " + "words that somebody pasted, line after line, from a log; " * 4 for at in range(22_000))
HUGE = {
    "a result of 1.7 MB": [user("Read it"), calls("big"), result("big", pages(7, 45_000)[:1_700_000])],
    "an older paste of 5 MB": [user(PASTE), assistant("I see."), user("And now?")],
    "40 results of 50 KB": [
        user("Read them"),
        calls(*(f"big_{at}" for at in range(40))),
        *(result(f"big_{at}", pages(at, 1_400)[:50_000]) for at in range(40)),
    ],
}


@pytest.mark.parametrize("name", HUGE)
def test_F3_one_huge_message_does_not_kill_a_healthy_thread(name: str) -> None:
    huge = HUGE[name]

    async def run(model: HttpModel) -> Talk:
        talk = Talk(model)
        talk.threads.append(talk.thread, [m for at in range(20) for m in (user(f"Q {at}"), assistant(pages(at, 60)))])
        await talk.engine.append(talk.thread, huge)
        assert isinstance((await talk.ask())[-1], Finished)
        assert isinstance((await talk.say("Go on"))[-1], Finished)
        return talk

    with ScriptedServer(lambda asked: OK, window=Window(131_072, told=True)) as server:
        talk = over_http(server, run)
    assert len(server.requests) == 2, "no call was refused, none was made for a summary"
    assert all(asked.tokens + 500 <= 131_072 for asked in server.requests)
    stored = talk.stored
    for message in huge:
        assert message in stored
    prepared = talk.engine.blocking.prepare(talk.thread, Call(model="gpt-4o", served=131_072, endpoint="x"))
    for edit in prepared.edits:
        assert edit.ref is None or talk.threads.original(talk.thread, edit.ref) is not None


# --- H2, H3, H5 --------------------------------------------------------------------------------------


def test_H2_undo_gives_the_request_back_and_keeps_the_turns_since() -> None:
    threads = _thread(8)
    threads.append("t", [user("Go on")])
    blocking = Engine(threads).blocking
    call = Call(model="gpt-4o", served=32_000)
    before = blocking.prepare("t", call).request.messages
    assert blocking.compact("t", call) is not None
    assert blocking.prepare("t", call).request.messages != before
    since = [assistant("Done."), user("And then?")]
    threads.append("t", since)
    assert blocking.undo("t") is not None
    assert blocking.prepare("t", call).request.messages == (*before, *since)
    assert blocking.undo("t") is None
    assert [event.kind for event in threads.events("t") if event.kind == "context.restored"]


def test_H2_a_branch_before_the_boundary_does_not_know_the_point() -> None:
    threads = _thread(8)
    blocking = Engine(threads).blocking
    call = Call(model="gpt-4o", served=32_000)
    assert blocking.compact("t", call) is not None
    threads.branch("t", 5, "branch")
    sent = blocking.prepare("branch", call).request.messages
    assert sent == tuple(row.entry for row in threads.read("t", 0, 5) if isinstance(row.entry, Message))


@pytest.mark.parametrize("window", [Window(3_000), Window(3_000, status=413, body="")], ids=["400", "413"])
@pytest.mark.parametrize("settings", [Settings(mode="off"), Settings(preset="off")], ids=["mode", "preset"])
def test_H3_off_is_off_also_at_an_overflow(settings: Settings, window: Window) -> None:
    async def run(model: HttpModel) -> Talk:
        talk = Talk(model, settings=settings)
        await talk.engine.append(talk.thread, [user("Read"), calls("a"), result("a", pages(1, 400))])
        (last,) = await talk.ask()
        assert isinstance(last, Failed)
        assert type(last.error) is ContextOverflow
        return talk

    with ScriptedServer(window=window) as server:
        talk = over_http(server, run)
    (asked,) = server.requests
    assert [message.parts for message in asked.messages] == [message.parts for message in talk.stored]
    assert talk.threads.thread(talk.thread).points == 0
    assert talk.kinds() == ["turn.started", "turn.failed"]


@pytest.mark.parametrize("threshold", [0.40, 0.55, 0.70, 0.85, 0.95])
def test_H3_the_threshold_is_where_the_cut_comes(threshold: float) -> None:
    threads = _thread()
    blocking = Engine(threads, settings=Settings(threshold=threshold)).blocking
    call = Call(model="gpt-4o", served=16_000, max_tokens=500)
    share = 0.0
    for turn in range(400):
        threads.append("t", [user(f"{turn} " + "word " * 40)])
        prepared = blocking.prepare("t", call)
        blocking.record_usage(prepared, None)
        if threads.thread("t").points:
            break
        share = (prepared.counted - prepared.budget.fixed) / prepared.budget.movable
        threads.append("t", [assistant("ok")])
    assert threshold - 0.015 <= share <= threshold


@pytest.mark.parametrize("threshold", [0.0, 0.39, 0.96, 1.0])
def test_H3_a_threshold_outside_is_refused(threshold: float) -> None:
    with pytest.raises(InputError, match="threshold"):
        Settings(threshold=threshold)


def test_H3_a_thread_has_the_last_word_and_a_restart_does_not_forget_it() -> None:
    threads = _thread(30)
    threads.change("t", settings='{"mode": "off"}')
    call = Call(model="gpt-4o", served=8_000)
    for _ in range(2):
        blocking = Engine(threads, settings=Settings(mode="auto")).blocking
        assert len(blocking.prepare("t", call).request.messages) == 1 + 30 * 4
    threads.change("t", settings="{}")
    assert len(blocking.prepare("t", call).request.messages) < 1 + 30 * 4


def test_H5_a_warning_comes_before_the_cut_and_every_event_has_its_figures() -> None:
    async def run(model: HttpModel) -> Talk:
        talk = Talk(model, lines=12)
        for turn in range(40):
            await talk.say(f"Question {turn}")
        return talk

    with ScriptedServer(reads_files(1), window=Window(8_000, told=True)) as server:
        talk = over_http(server, run)
    kinds = [kind for kind in talk.kinds() if kind in ("context.warned", "context.compressed")]
    assert kinds[:2] == ["context.warned", "context.compressed"]
    for event in talk.events:
        if event.kind == "context.compressed":
            assert event.model == "gpt-4o"
            assert event.reason
            assert (event.tokens_before or 0) > (event.tokens_after or 0) > 0
        if event.kind == "turn.failed":
            assert event.reason
    talk.one_outcome_each()
    assert all(valid("openai-chat", asked.messages) for asked in server.requests)
