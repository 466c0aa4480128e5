"""Recovering from one refusal after another, and from providers that do not tell the truth; over HTTP."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest

from everlong.core import Entry, Image, Message, Point, Role, Row, Text
from everlong.engine.contracts import Call, Finished
from everlong.engine.engine import Engine
from everlong.errors import ContextOverflow, StoreBusy
from everlong.llm import Answer, HttpModel, Refusal, ScriptedServer, Window, in_turn, reports
from everlong.llm.scripted.hostile import MALFORMED
from everlong.store import MemoryThreads
from everlong.wire import format_named
from tests.core.build import assistant, calls, result, system, user
from tests.engine.talking import Talk, over_http, pages

TOO_LONG = Refusal(400, '{"error":{"message":"prompt is too long"}}')
NO_PICTURES = Refusal(400, '{"error":{"message":"At most 0 image(s) may be provided in one request."}}')
REPLY_TOO_LONG = Refusal(
    400, '{"error":{"message":"max_tokens is too large: 500. This model supports at most 400 completion tokens"}}'
)
PICTURE = Message(Role.USER, (Text("Look:"), Image(data="aGk=", media_type="image/png")))
OK = Answer(text="ok")


def _with_past(talk: Talk) -> None:
    for at in range(9):
        step = [user(f"Question {at}"), calls(f"c{at}"), result(f"c{at}", pages(at, 30)), assistant("So.")]
        talk.threads.append(talk.thread, step)


@pytest.mark.parametrize("other", [Refusal(400, MALFORMED), NO_PICTURES], ids=["words", "pictures"])
def test_what_helped_against_one_refusal_still_helps_after_another(other: Refusal) -> None:
    refusals = [other, TOO_LONG]

    async def run(model: HttpModel) -> None:
        talk = Talk(model)
        _with_past(talk)
        talk.threads.append(talk.thread, [PICTURE, assistant("A cat.")])
        assert isinstance((await talk.say("And now?"))[-1], Finished)
        talk.one_outcome_each()

    with ScriptedServer(in_turn(refusals, then=lambda asked: OK)) as server:
        over_http(server, run)
    last = server.requests[-1].messages
    assert len(server.requests) == 3
    if other is NO_PICTURES:
        assert not any(isinstance(part, Image) for message in last for part in message.parts)
    else:
        assert not any(message.calls or message.results for message in last)


def test_a_reply_that_is_too_long_is_asked_for_shorter_and_stays_so() -> None:
    async def run(model: HttpModel) -> None:
        talk = Talk(model)
        _with_past(talk)
        assert isinstance((await talk.say("And now?"))[-1], Finished)

    with ScriptedServer(in_turn([REPLY_TOO_LONG, TOO_LONG], then=lambda asked: OK)) as server:
        over_http(server, run)
    assert [asked.max_tokens for asked in server.requests] == [500, 400, 400]


NO_TEMPERATURE = Refusal(400, '{"error":{"message":"`temperature` is deprecated for this model."}}')
NO_SHARE = Refusal(400, '{"error":{"message":"`top_p` is not supported for this model"}}')


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic", "gemini", "openai-responses", "ollama"])
def test_parameters_that_a_model_does_not_take_are_left_out_and_stay_out(fmt: str) -> None:
    api = format_named(fmt).api
    extra = json.dumps(api.drawn_from(0.5))

    async def run(model: HttpModel) -> None:
        talk = Talk(model, call=Call(model="gpt-4o", fmt=fmt, max_tokens=500, temperature=0.3, extra=extra))
        _with_past(talk)
        assert isinstance((await talk.say("And now?"))[-1], Finished)

    with ScriptedServer(in_turn([NO_TEMPERATURE, NO_SHARE, TOO_LONG], then=lambda asked: OK)) as server:
        over_http(server, run, fmt)
    sent = [json.loads(asked.body) for asked in server.requests]
    assert ["temperature" in json.dumps(body) for body in sent] == [True, False, False, False]
    assert [body != api.drawn_from_all(body) for body in sent] == [True, True, False, False]


@pytest.mark.parametrize("share", [0, 3, 10], ids=["one token", "a third", "a tenth"])
def test_a_provider_that_reports_too_little_does_not_make_the_request_too_long(share: int) -> None:
    async def run(model: HttpModel) -> Talk:
        talk = Talk(model)
        for turn in range(40):
            assert isinstance((await talk.say(f"Question {turn} " + "word " * 330))[-1], Finished)
        return talk

    lie = reports(lambda asked: asked.tokens // share if share else 1)
    with ScriptedServer(lie, window=Window(8_000, told=True)) as server:
        talk = over_http(server, run)
    assert all(asked.tokens + 500 <= 8_000 for asked in server.requests)
    assert "overflow.detected" not in talk.kinds()


def test_a_point_tells_its_own_edits_and_not_those_of_earlier_points() -> None:
    threads = MemoryThreads()
    threads.create("t")
    threads.append("t", [system("Work carefully.")])
    blocking = Engine(threads).blocking
    for at in range(120):
        step = [user(f"Question {at}"), calls(f"c{at}"), result(f"c{at}", pages(at, 20))]
        threads.append("t", step)
        prepared = blocking.prepare("t", Call(model="gpt-4o", served=8_000, max_tokens=300))
        blocking.record_usage(prepared, None)
        threads.append("t", [assistant("So.")])
    points = [row.entry for row, _ in threads.points("t") if isinstance(row.entry, Point)]
    assert len(points) > 5
    covered = [{edit.at for edit in point.edits if edit.after == 0} for point in points]
    assert max(map(len, covered[3:])) <= 2 * max(map(len, covered[:3]))
    assert all(not one & two for one, two in pairwise(covered))


class Busy(MemoryThreads):
    """A store that takes no point."""

    def append(
        self, thread: str, entries: Sequence[Entry], *, ids: Sequence[str] | None = None, expected: int | None = None
    ) -> tuple[Row, ...]:
        if any(isinstance(entry, Point) for entry in entries):
            raise StoreBusy("another writer holds it")
        return super().append(thread, entries, ids=ids, expected=expected)


def test_a_store_that_fails_in_the_middle_of_a_recovery_leaves_one_outcome() -> None:
    threads = Busy()
    threads.create("t")
    threads.append("t", [user("Hello"), assistant(pages(1, 200)), user("And now?")])
    blocking = Engine(threads).blocking
    prepared = blocking.prepare("t", Call(model="gpt-4o"))
    with pytest.raises(StoreBusy):
        blocking.recover(prepared, ContextOverflow("prompt is too long"))
    assert not threads.unfinished("t")
