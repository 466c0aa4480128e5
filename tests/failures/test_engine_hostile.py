"""Providers at their worst over HTTP, in every format: it ends, in a few calls, and nothing that was stored is lost."""

import pytest

from everlong.core import History
from everlong.engine import Call, Failed, Finished, Reply, Said
from everlong.errors import ContextOverflow, EverlongError, MalformedHistory, ProviderError, RateLimited
from everlong.llm import Answer, HttpModel, Refusal, ScriptedServer, Window, in_turn, reads_files
from everlong.llm.scripted.hostile import HOSTILE, OVERFLOWS, breaks_at, window_body
from everlong.store import MemoryThreads
from everlong.wire import classify
from everlong.wire.refusals.signs import Kind
from tests.core.build import assistant, calls, result, user
from tests.engine.talking import FORMATS, Talk, over_http, pages

MOST_CALLS = 3  # of a turn: one, and two more for an overflow
EARLIER = [
    message
    for at in range(6)
    for message in (
        user(f"Question {at}"),
        calls(f"old_{at}"),
        result(f"old_{at}", pages(at, 40)),
        assistant(f"Answer {at}."),
    )
]
#: What must come of it where it is the same for all formats: an answer, or this error.
ENDS: dict[str, type[EverlongError] | None] = {
    "overflows always": ContextOverflow,
    "always overflows, without figures": ContextOverflow,
    "overflows at random": None,
    "reports far too much": None,
    "reports twice as much": None,
    "reports far too little": None,
    "reports a third": None,
    "reports sums": None,
    "breaks at once": ProviderError,
    "breaks after a piece": ProviderError,
    "always 429": RateLimited,
    "always 503": ProviderError,
    "always a malformed history": MalformedHistory,
    "an error inside the stream": ContextOverflow,
    "endless white space": ProviderError,
    "a page": ProviderError,
    "an error page": ProviderError,
    "no JSON": ProviderError,
}


def _lost_nothing(talk: Talk, before: History) -> None:
    assert talk.stored[: len(before)] == before
    talk.one_outcome_each()
    assert not talk.threads.unfinished(talk.thread)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_provider_ends_in_an_answer_or_a_typed_error(name: str, fmt: str) -> None:
    turns = 1 if name == "endless white space" else 4

    async def run(model: HttpModel) -> None:
        talk = Talk(model, call=Call(model="gpt-4o", max_tokens=500))
        talk.threads.append(talk.thread, EARLIER)
        for turn in range(turns):
            before, asked = talk.stored, len(server.requests)
            last = (await talk.say(f"And question {turn}?"))[-1]
            assert len(server.requests) - asked <= MOST_CALLS
            _lost_nothing(talk, before)
            _ended_as_expected(name, last)

    with ScriptedServer(HOSTILE[name]()) as server:
        over_http(server, run, fmt)


def _ended_as_expected(name: str, last: Reply) -> None:
    assert isinstance(last, Finished | Failed)
    expected = ENDS.get(name)
    if isinstance(last, Failed):
        assert isinstance(last.error, expected or ProviderError)
        assert str(last.error).strip()
        assert "Traceback" not in str(last.error)
    if name in ENDS:
        assert isinstance(last, Failed) == (expected is not None), last


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_stream_that_is_cut_at_any_piece_is_a_failure_and_keeps_only_what_was_said(fmt: str) -> None:
    async def run(model: HttpModel) -> None:
        talk = Talk(model)
        for pieces in range(12):
            server.model.script = breaks_at(pieces)
            await talk.engine.append(talk.thread, [user("Hello")])
            before = talk.stored
            replies = await talk.ask()
            last = replies[-1]
            _lost_nothing(talk, before)
            if isinstance(last, Finished):
                return  # the whole answer came through before the cut
            assert isinstance(last, Failed)
            said = "".join(reply.text for reply in replies if isinstance(reply, Said))
            assert "".join(message.text for message in talk.stored[len(before) :]) == said
            assert not any(message.calls for message in talk.stored[len(before) :]), "half a call cannot be made"

    with ScriptedServer() as server:
        over_http(server, run, fmt)


@pytest.mark.parametrize("fmt", FORMATS)
def test_C2_a_server_that_truncates_in_silence_is_found_out_learned_and_worked_with(fmt: str) -> None:
    async def run(model: HttpModel) -> None:
        talk = Talk(model, call=Call(model="a-model-of-mine", max_tokens=300), lines=900)
        for turn in range(3):
            last = (await talk.say(f"Read file {turn}"))[-1]
            assert isinstance(last, Finished), last
        again = await talk.engine.prepare(talk.thread, Call(model="a-model-of-mine", endpoint=model.endpoint))
        assert (again.window.context, again.window.source) == (4_096, "learned")
        assert talk.kinds().count("window.learned") == 1
        assert talk.kinds().count("overflow.detected") == 1
        await talk.engine.record_failure(again, "not sent")
        _lost_nothing(talk, ())

    with ScriptedServer(reads_files(1), window=Window(4_096, truncates=True)) as server:
        over_http(server, run, fmt)


CERTAIN = [sign for sign in OVERFLOWS if classify(window_body(sign), status=400).kind is Kind.OVERFLOW]


@pytest.mark.parametrize("number", range(len(CERTAIN)), ids=lambda n: f"{n} {CERTAIN[n].provider}")
def test_F4_every_wording_of_an_overflow_is_recovered_from_unseen(number: int) -> None:
    sign = CERTAIN[number]
    refused = Refusal(400, window_body(sign).replace("{window}", "6000").replace("{tokens}", "8123"))

    async def run(model: HttpModel) -> None:
        talk = Talk(model, call=Call(model="gpt-4o", max_tokens=100))
        talk.threads.append(talk.thread, EARLIER)
        replies = await talk.say("And now?")
        assert isinstance(replies[-1], Finished), replies
        one, two = server.requests
        assert two.tokens < one.tokens
        assert two.messages[-1].text == "And now?"
        _lost_nothing(talk, ())

    with ScriptedServer(in_turn([refused], then=lambda asked: Answer(text="ok"))) as server:
        over_http(server, run)


def test_F4_other_refusals_are_not_taken_for_an_overflow_and_the_same_request_is_not_repeated() -> None:
    quota = Refusal(400, '{"error":{"message":"You exceeded your current quota, please check your plan."}}')
    wrong = Refusal(400, '{"error":{"message":"Unknown parameter: \'context_window\'."}}')

    async def run(model: HttpModel) -> None:
        talk = Talk(model, threads=MemoryThreads())
        for refusal in (quota, wrong):
            server.model.script = lambda _, refusal=refusal: refusal  # type: ignore[misc]
            asked = len(server.requests)
            last = (await talk.say("Hello"))[-1]
            assert isinstance(last, Failed)
            assert not isinstance(last.error, ContextOverflow)
            assert len(server.requests) == asked + 1

    with ScriptedServer() as server:
        over_http(server, run)
