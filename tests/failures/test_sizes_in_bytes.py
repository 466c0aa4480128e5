"""Limits in bytes: a body that a proxy or a provider refuses as too large is learned from, whatever its tokens."""

import base64
import random

import pytest

from everlong.core import EventKind, Image, Message, Role, Text
from everlong.engine import Call, Finished
from everlong.llm import Answer, HttpModel, ReceivedRequest, Refusal, ScriptedServer, Step
from tests.core.build import assistant, calls, result, user
from tests.engine.talking import Talk, over_http

NGINX = "<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>"
GEMINI = '{"error":{"code":400,"message":"Request payload size exceeds the limit: {limit} bytes.","status":"INVALID"}}'
ANTHROPIC = '{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}'


def picture(number: int, size: int) -> Message:
    data = base64.b64encode(random.Random(number).randbytes(size * 3 // 4)).decode()
    return Message(Role.USER, (Text(f"Look at {number}:"), Image(data=data, media_type="image/png")))


def pasted(number: int, size: int) -> str:
    """A result in which a line is one long token run: many bytes, few tokens each."""
    return "\n".join(f"row {number}.{line}: " + " " * 400 for line in range(size // 410))


class Proxy:
    """Refuses bodies above a limit."""

    def __init__(self, limit: int, status: int, body: str) -> None:
        self.limit, self.refusal = limit, Refusal(status, body.replace("{limit}", str(limit)))
        self.refused: list[int] = []

    def __call__(self, asked: ReceivedRequest) -> Step:
        size = len(asked.body)
        if size > self.limit:
            self.refused.append(size)
            return self.refusal
        return Answer(text=f"Seen {asked.number}.")


CASES = {
    "nginx": (600_000, 413, NGINX),
    "Anthropic": (700_000, 413, ANTHROPIC),
    "a figure": (524_288, 400, GEMINI),
    "no word": (600_000, 413, ""),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("what", ["pictures", "results"])
def test_a_conversation_outgrows_a_limit_in_bytes_and_goes_on(name: str, what: str) -> None:
    proxy = Proxy(*CASES[name])

    async def run(model: HttpModel) -> Talk:
        talk = Talk(model, call=Call(model="gpt-4.1", max_tokens=500))
        for number in range(24):
            if what == "pictures":
                talk.threads.append(talk.thread, [picture(number, proxy.limit // 8), assistant("A cat.")])
            else:
                text = pasted(number, proxy.limit // 8)
                step = [user(f"Read {number}"), calls(f"c{number}"), result(f"c{number}", text), assistant("Read.")]
                talk.threads.append(talk.thread, step)
            assert isinstance((await talk.say(f"What about {number}?"))[-1], Finished)
        talk.one_outcome_each()
        return talk

    with ScriptedServer(proxy) as server:
        talk = over_http(server, run)
    assert 1 <= len(proxy.refused) <= 2, "the third does not happen"
    assert len(server.requests) == 24 + len(proxy.refused)
    learned = [event.reason for event in talk.events if event.kind is EventKind.WINDOW_LEARNED]
    assert len(learned) == len(proxy.refused)
    assert "bytes" in learned[0]


def test_a_small_body_that_is_too_large_has_too_many_tokens() -> None:
    async def run(model: HttpModel) -> Talk:
        talk = Talk(model)
        for number in range(60):
            assert isinstance((await talk.say(f"Question {number}: " + "word " * 400))[-1], Finished)
        return talk

    def script(asked: ReceivedRequest) -> Step:
        return Refusal(413, "") if asked.tokens > 8_000 else Answer(text="So it is.")

    with ScriptedServer(script) as server:
        talk = over_http(server, run)
    assert len(server.requests) <= 62
    [first, *_] = [event for event in talk.events if event.kind is EventKind.WINDOW_LEARNED]
    assert (first.tokens_after or 0) < 10_000


def test_a_picture_that_alone_is_too_large_is_left_out() -> None:
    proxy = Proxy(500_000, 413, NGINX)

    async def run(model: HttpModel) -> None:
        talk = Talk(model)
        await talk.engine.append(talk.thread, [picture(1, 700_000)])
        assert isinstance((await talk.ask())[-1], Finished)

    with ScriptedServer(proxy) as server:
        over_http(server, run)
    assert len(server.requests) <= 3
