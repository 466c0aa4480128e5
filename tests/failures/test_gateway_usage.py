"""J1: usage told to a client that makes it compact never, or always. Here: what leaves the gateway, in every format."""

import asyncio
import json

import pytest

from everlong.core import JsonObject
from everlong.engine import Finished
from everlong.gateway import Client
from everlong.gateway.exchange.answer import AnswerReader
from everlong.gateway.exchange.usage import PromptSizes, UsageRewriter, rewritten_body
from everlong.gateway.upstreams.connections import UpstreamConnections, UpstreamRequest
from everlong.gateway.upstreams.routing import Upstream
from everlong.llm import Answer, Endpoint, ScriptedServer
from everlong.llm.scripted.script import Script
from everlong.wire import Usage, format_named

PATHS = {"anthropic": "/messages", "openai-chat": "/chat/completions", "openai-responses": "/responses"}
WINDOW = 128_000
SENT = 20_000


def _body(fmt: str, *, stream: bool) -> bytes:
    said = [{"role": "user", "content": "How far is it?"}]
    fields: JsonObject = {"model": "m", "stream": stream, "max_tokens": 100}
    return json.dumps(fields | {"input" if fmt == "openai-responses" else "messages": said}).encode()


async def _through(url: str, fmt: str, stream: bool, figures: PromptSizes) -> Finished:
    """What a client hears: the answer of an upstream, with the figures to tell."""
    forwarding = UpstreamConnections()
    to = Upstream(name="near", endpoint=Endpoint(url=url))
    answered = await forwarding.send(
        to, Client(scope="s"), UpstreamRequest("POST", PATHS[fmt], body=_body(fmt, stream=stream))
    )
    client = AnswerReader(format_named(fmt), answered.streamed)
    if answered.streamed:
        rewriting = UsageRewriter(format_named(fmt).server.usage, figures)
        async for chunk in answered.chunks():
            client.feed(rewriting.feed(chunk))
        client.feed(rewriting.close())
    else:
        client.feed(rewritten_body(format_named(fmt).server.usage, await answered.whole(1_000_000), figures))
    await forwarding.close()
    finished = client.finished()
    assert finished is not None
    return finished


def _heard(script: Script, fmt: str, stream: bool, figures: PromptSizes) -> Usage:
    with ScriptedServer(script) as server:
        finished = asyncio.run(_through(server.url, fmt, stream, figures))
    assert finished.message.text == "Far."
    assert finished.usage is not None
    return finished.usage


UPSTREAMS: dict[str, tuple[Answer, int]] = {
    "a true figure": (Answer(text="Far.", usage=Usage(prompt=SENT + 300, cached=5_000, output=4)), SENT + 300),
    "no figure": (Answer(text="Far.", reported=False), SENT),
    "nought": (Answer(text="Far.", usage=Usage(output=4)), SENT),
    "a placeholder of 100": (Answer(text="Far.", usage=Usage(prompt=100, output=4)), SENT),
    "675,947,905": (Answer(text="Far.", usage=Usage(prompt=675_947_905, output=4)), SENT),
    "2^41": (Answer(text="Far.", usage=Usage(prompt=1 << 41, output=4)), SENT),
    "less than nothing": (Answer(text="Far.", usage=Usage(prompt=-7, output=4)), SENT),
    "a little above the window": (Answer(text="Far.", usage=Usage(prompt=WINDOW + 900, output=4)), WINDOW),
}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
@pytest.mark.parametrize("fmt", sorted(PATHS))
@pytest.mark.parametrize("name", UPSTREAMS)
def test_J1_the_client_is_told_a_real_or_an_estimated_prompt_within_the_window(
    name: str, fmt: str, stream: bool
) -> None:
    answer, expected = UPSTREAMS[name]
    figures = PromptSizes(window=WINDOW, prompt=SENT, wants=True)
    assert _heard(lambda asked: answer, fmt, stream, figures).prompt == expected


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
@pytest.mark.parametrize("fmt", sorted(PATHS))
def test_J1_the_original_size_is_steady_over_a_cut_and_the_sent_size_is_the_upstreams(fmt: str, stream: bool) -> None:
    own = [10_000, 40_000, 70_000, 90_000, 120_000, 150_000]
    sent = [10_000, 40_000, 70_000, 35_000, 65_000, 95_000]  # a cut before the fourth turn
    original, compacted = [], []
    for size, less in zip(own, sent, strict=True):
        answer = Answer(text="Far.", usage=Usage(prompt=less, cached=less // 2, output=4))
        known = {"window": WINDOW, "prompt": less}
        original.append(_heard(lambda _, a=answer: a, fmt, stream, PromptSizes(added=size - less, **known)).prompt)
        compacted.append(_heard(lambda _, a=answer: a, fmt, stream, PromptSizes(**known)).prompt)
    assert original == [min(size, WINDOW) for size in own]
    assert compacted == sent


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
def test_J1_a_total_is_the_sum_of_its_parts(stream: bool) -> None:
    figures = PromptSizes(added=30_000, window=WINDOW, prompt=SENT, wants=True)

    async def raw(url: str) -> bytes:
        forwarding = UpstreamConnections()
        to = Upstream(name="near", endpoint=Endpoint(url=url))
        sent = UpstreamRequest("POST", PATHS["openai-chat"], body=_body("openai-chat", stream=stream))
        body = await (await forwarding.send(to, Client(scope="s"), sent)).whole(1_000_000)
        await forwarding.close()
        return body

    with ScriptedServer(lambda asked: Answer(text="Far.", usage=Usage(prompt=SENT, output=40))) as server:
        body = asyncio.run(raw(server.url))
    if stream:
        told = UsageRewriter(format_named("openai-chat").server.usage, figures).feed(body).split(b"data: ")[-2]
    else:
        told = rewritten_body(format_named("openai-chat").server.usage, body, figures)
    usage = json.loads(told)["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (50_000, 40, 50_040)
