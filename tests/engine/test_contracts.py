"""What of a request comes again, and where a provider is to be told: before anything that is said only once."""

from dataclasses import replace

import pytest

from everlong.core import History, Message, Role, Text
from everlong.engine.contracts import Caching, Call, Prepared, Request, breakpoints
from everlong.engine.engine import Engine
from everlong.engine.settings import Settings
from everlong.errors import MalformedHistory
from everlong.store import MemoryThreads
from tests.core.build import assistant, calls, result, system, user
from tests.engine.talking import pages

TALK: History = (system("s"), user("left by a cut"), user("a"), assistant("b"), user("c"))
IDS = tuple(f"c{at}" for at in range(12))
WIDE: History = (*TALK, calls(*IDS), *(result(call) for call in IDS))
CLOCK = Message(Role.USER, (Text("It is noon."),))


def asking(messages: History, caching: Caching | None) -> Request:
    return Request(model="m", messages=messages, caching=caching)


#: Messages, what comes again of them, and behind how many a mark belongs.
MARKS: dict[str, tuple[History, Caching | None, tuple[int, ...]]] = {
    "nothing comes again": (TALK, None, ()),
    "only what is in front": (TALK, Caching(), ()),
    "the end of a cut, and all": (TALK, Caching(stable=2, lasting=5), (2, 5)),
    "no cut yet": (TALK, Caching(stable=1, lasting=5), (1, 5)),
    "volatile text before the question": (TALK, Caching(stable=2, lasting=4), (2, 4)),
    "a cut that reaches to the end": (TALK, Caching(stable=5, lasting=5), (5,)),
    "never behind what lasts": (TALK, Caching(stable=5, lasting=3), (3,)),
    "never behind the end": (TALK[:3], Caching(stable=2, lasting=9), (2, 3)),
    "a step of many blocks": (WIDE, Caching(stable=2, lasting=len(WIDE)), (2, 5, len(WIDE))),
    "such a step behind the tail": (WIDE, Caching(stable=2, lasting=5), (2, 5)),
    "such a step after a cut": (WIDE, Caching(stable=5, lasting=len(WIDE)), (5, len(WIDE))),
}


@pytest.mark.parametrize(("messages", "caching", "marks"), MARKS.values(), ids=MARKS)
def test_where_marks_belong(messages: History, caching: Caching | None, marks: tuple[int, ...]) -> None:
    assert breakpoints(asking(messages, caching)) == marks


# --- what is prepared ------------------------------------------------------------------------------

CALL = Call(model="gpt-4o", fmt="anthropic", served=8_000, max_tokens=300)


def _engine(rounds: int, settings: Settings | None = None) -> Engine:
    threads = MemoryThreads()
    threads.create("t")
    threads.append("t", [system("Work carefully.")])
    for at in range(rounds):
        call = f"old_{at}"
        threads.append("t", [user(f"Question {at}"), calls(call), result(call, pages(at)), assistant("So.")])
    threads.append("t", [user("And now?")])
    return Engine(threads, settings=settings or Settings())


def _caching(prepared: Prepared) -> Caching:
    assert prepared.request.caching is not None
    return prepared.request.caching


def test_before_a_cut_only_the_system_text_stands() -> None:
    prepared = _engine(2).blocking.prepare("t", CALL)
    assert _caching(prepared) == Caching(stable=1, lasting=10)


def test_after_a_cut_what_it_left_stands_until_the_next() -> None:
    engine = _engine(20)
    first = engine.blocking.prepare("t", CALL)
    assert first.compactions == 1
    stable = _caching(first).stable
    assert 1 < stable <= _caching(first).lasting == len(first.request.messages)
    engine.blocking.record_usage(first, None)
    engine.threads.append("t", [assistant("Well."), user("Go on")])
    for again in (engine, Engine(engine.threads)):
        later = again.blocking.prepare("t", CALL)
        assert _caching(later).stable == stable
        assert later.request.messages[:stable] == first.request.messages[:stable]


def test_D2_what_is_said_only_once_stands_behind_every_mark() -> None:
    call = replace(CALL, standing=(system("The house rules."),), tail=(CLOCK,))
    engine = _engine(20)
    for said in ((), (calls("x"), result("x"))):
        engine.threads.append("t", said)
        request = engine.blocking.prepare("t", call).request
        marks = breakpoints(request)
        assert marks
        assert max(marks) == request.messages.index(CLOCK)
        assert request.messages[:2] == (system("Work carefully."), system("The house rules."))


def test_standing_text_is_part_of_what_stands() -> None:
    plain, more = CALL, replace(CALL, standing=(system("a"), system("b")))
    stable = [_caching(_engine(20).blocking.prepare("t", call)).stable for call in (plain, more)]
    assert stable[1] == stable[0] + 2


def test_pins_stand() -> None:
    engine = _engine(2)
    engine.blocking.pin("t", text="Never touch the vendor folder.")
    assert _caching(engine.blocking.prepare("t", CALL)).stable == 2


def test_off_changes_no_message_and_marks_them_all_the_same() -> None:
    prepared = _engine(2, Settings(mode="off")).blocking.prepare("t", CALL)
    assert _caching(prepared) == Caching(stable=1, lasting=10)


def test_no_marks_for_who_wants_none() -> None:
    assert _engine(2).blocking.prepare("t", replace(CALL, breakpoints=False)).request.caching is None


def test_how_long_it_is_kept_is_a_setting() -> None:
    assert _caching(_engine(2, Settings(cache_seconds=3600)).blocking.prepare("t", CALL)).seconds == 3600


def test_a_view_that_is_made_anew_is_marked_as_far_as_it_was_sent_before() -> None:
    engine = _engine(0, Settings(preset="simple"))
    request = engine.blocking.prepare("t", CALL).request
    assert breakpoints(request) == (2,), "nothing was cut: it may all come again"
    for at in range(30):
        earlier = request
        engine.threads.append("t", [assistant(pages(at, 30)), user(f"Question {at}")])
        request = engine.blocking.prepare("t", CALL).request
        marked = max(breakpoints(request))
        same = [one == other for one, other in zip(earlier.messages, request.messages, strict=False)]
        assert all(same[:marked])
        assert marked == len(request.messages) or not same[marked]
    assert marked < len(request.messages), "by now something was cut"


def test_another_form_of_the_messages_is_sent_once_and_not_marked() -> None:
    engine = _engine(2)
    prepared = engine.blocking.prepare("t", CALL)
    again = engine.blocking.recover(prepared, MalformedHistory("tool_use ids without results"))
    assert again.request.messages != prepared.request.messages
    assert _caching(again) == Caching()
