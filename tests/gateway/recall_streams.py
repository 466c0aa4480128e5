"""Answers of the scripted model as bytes, and what the real clients make of such bytes."""

import json
from collections.abc import Sequence
from typing import Any

import anthropic
import httpx2
import openai

from everlong.core import Message
from everlong.gateway.recall.stream import RecallFilter
from everlong.gateway.recall.tool import NAME
from everlong.llm import Answer, ReceivedRequest
from everlong.llm.scripted.script import reply_of
from everlong.wire import FORMATS, Usage, format_named
from everlong.wire.framing import JsonEvents

FMTS = ["openai-chat", "anthropic", "openai-responses"]
RECALL = (NAME, '{"what": "the port"}')
READ = ("read_file", '{"path": "a.py"}')
FIRST = Usage(prompt=100, cached=40, output=10)
SECOND = Usage(prompt=150, cached=90, output=20)


def asked(number: int, fmt: str) -> ReceivedRequest:
    return ReceivedRequest(number=number, model="m", messages=(), fmt=fmt)


def events(fmt: str, answer: Answer, number: int = 1) -> list[bytes]:
    """The stream, event by event."""
    out = []
    for name, data in FORMATS[fmt].writer.events(reply_of(asked(number, fmt), answer)):
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        out.append(((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode())
    return out


def body(fmt: str, answer: Answer, number: int = 1) -> bytes:
    return json.dumps(FORMATS[fmt].writer.whole(reply_of(asked(number, fmt), answer))).encode()


def message(fmt: str, stream: Sequence[bytes]) -> Message:
    """What was said, as the gateway listens."""
    answering, reader = format_named(fmt).reader(), JsonEvents()
    for chunk in stream:
        for event in reader.feed(chunk):
            answering.take(event)
    return answering.finished().message


def through(fmt: str, *answers: Answer) -> tuple[list[bytes], list[RecallFilter]]:
    """What the client gets of answers that go on from each other, and what the streams passed through."""
    out: list[bytes] = []
    hidings: list[RecallFilter] = []
    for number, answer in enumerate(answers, 1):
        hiding = RecallFilter(format_named(fmt).server.tool, hidings[-1].shown if hidings else None)
        out += [hiding.feed(event) for event in events(fmt, answer, number)]
        out.append(hiding.close())
        hidings.append(hiding)
    return [piece for piece in out if piece], hidings


def _transport(content: bytes, content_type: str) -> httpx2.Client:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": content_type}, content=content)

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def read_by_sdk(fmt: str, stream: bytes) -> dict[str, Any]:
    """The message that the provider's own client puts together."""
    http = _transport(stream, "text/event-stream")
    if fmt == "anthropic":
        client = anthropic.Anthropic(api_key="k", base_url="http://upstream", http_client=http)
        user = {"role": "user", "content": "hi"}
        with client.messages.stream(model="m", max_tokens=9, messages=[user]) as reply:  # type: ignore[list-item]
            return reply.get_final_message().model_dump()
    other = openai.OpenAI(api_key="k", base_url="http://upstream", http_client=http)
    if fmt == "openai-chat":
        with other.chat.completions.stream(model="m", messages=[{"role": "user", "content": "hi"}]) as chat:
            return chat.get_final_completion().model_dump()
    with other.responses.stream(model="m", input="hi") as response:
        return response.get_final_response().model_dump()


def text_and_calls(fmt: str, answer: dict[str, Any]) -> tuple[str, list[str]]:
    """What an answer as a whole says and calls."""
    if fmt == "openai-chat":
        said = answer["choices"][0]["message"]
        return said.get("content") or "", [call["function"]["name"] for call in said.get("tool_calls") or []]
    if fmt == "anthropic":
        blocks = answer["content"]
        words = [block["text"] for block in blocks if block["type"] == "text"]
        return "".join(words), [block["name"] for block in blocks if block["type"] == "tool_use"]
    items = answer["output"]
    words = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
    return "".join(words), [item["name"] for item in items if item["type"] == "function_call"]


def end_of(fmt: str, answer: dict[str, Any]) -> str:
    """The provider's word for how it ended."""
    if fmt == "openai-chat":
        return str(answer["choices"][0]["finish_reason"])
    return str(answer["stop_reason"] if fmt == "anthropic" else answer["status"])


def tokens_of(fmt: str, answer: dict[str, Any]) -> tuple[int, int]:
    """Prompt and output, as reported."""
    usage = answer["usage"]
    if fmt == "openai-chat":
        return usage["prompt_tokens"], usage["completion_tokens"]
    cached = usage["cache_read_input_tokens"] if fmt == "anthropic" else 0
    return usage["input_tokens"] + cached, usage["output_tokens"]
