"""OpenAI Chat Completions: write a reply as the provider does."""

from collections.abc import Iterator

from everlong.core import Json, JsonObject
from everlong.wire.formats.reply_writer import CREATED, NamedEvent, ReplyWriter, WrittenReply, text_pieces
from everlong.wire.usage import Usage

__all__ = ["WRITER"]


def _usage(usage: Usage) -> JsonObject:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _calls(reply: WrittenReply) -> list[Json]:
    return [
        {"index": at, "id": reply.call_id(at), "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(reply.calls)
    ]


def _events(reply: WrittenReply) -> Iterator[NamedEvent]:
    frame: JsonObject = {
        "id": f"chatcmpl-{reply.number}",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": reply.model,
    }

    def chunk(delta: JsonObject, finish: str | None = None) -> NamedEvent:
        return "", frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in text_pieces(reply.thinking):
        yield chunk({"reasoning_content": piece})
    for piece in text_pieces(reply.text):
        yield chunk({"content": piece})
    for call in _calls(reply):
        yield chunk({"tool_calls": [call]})
    yield chunk({}, reply.stop_word("stop", "tool_calls"))
    if reply.usage is not None:
        yield "", frame | {"choices": [], "usage": _usage(reply.usage)}
    yield "", "[DONE]"


def _whole(reply: WrittenReply) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": reply.text or None}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.calls:
        calls = [{key: value for key, value in call.items() if key != "index"} for call in _objects(reply)]
        message["tool_calls"] = [*calls]
    body: JsonObject = {
        "id": f"chatcmpl-{reply.number}",
        "object": "chat.completion",
        "created": CREATED,
        "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.stop_word("stop", "tool_calls")}],
    }
    return body | ({"usage": _usage(reply.usage)} if reply.usage else {})


def _objects(reply: WrittenReply) -> list[JsonObject]:
    return [call for call in _calls(reply) if isinstance(call, dict)]


WRITER = ReplyWriter(_events, _whole)
