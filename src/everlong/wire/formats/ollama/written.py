"""Ollama: write a reply as the server does."""

from collections.abc import Iterator

from everlong.core import Json, JsonObject
from everlong.wire.fields import load
from everlong.wire.formats.reply_writer import NamedEvent, ReplyWriter, WrittenReply, text_pieces

__all__ = ["WRITER"]

REASONS = {"": "stop", "tool_calls": "stop"}


def _usage(reply: WrittenReply) -> JsonObject:
    usage = reply.usage
    counted: JsonObject = {"total_duration": 1_000_000, "load_duration": 1_000}
    return counted | ({"prompt_eval_count": usage.prompt, "eval_count": usage.output} if usage is not None else {})


def _calls(reply: WrittenReply) -> list[Json]:
    return [
        {"function": {"index": at, "name": name, "arguments": load(arguments)}}
        for at, (name, arguments) in enumerate(reply.calls)
    ]


def _line(reply: WrittenReply, message: JsonObject, *, done: bool = False) -> JsonObject:
    frame: JsonObject = {"model": reply.model, "created_at": f"2023-11-14T22:13:20.{reply.number:09d}Z"}
    said: JsonObject = {"role": "assistant", "content": "", **message}
    line: JsonObject = frame | {"message": said, "done": done}
    return line | ({"done_reason": REASONS.get(reply.stop, reply.stop), **_usage(reply)} if done else {})


def _events(reply: WrittenReply) -> Iterator[NamedEvent]:
    for piece in text_pieces(reply.thinking):
        yield "", _line(reply, {"thinking": piece})
    for piece in text_pieces(reply.text):
        yield "", _line(reply, {"content": piece})
    if reply.calls:
        yield "", _line(reply, {"tool_calls": _calls(reply)})
    yield "", _line(reply, {}, done=True)


def _whole(reply: WrittenReply) -> JsonObject:
    message: JsonObject = {"content": reply.text}
    if reply.thinking:
        message["thinking"] = reply.thinking
    if reply.calls:
        message["tool_calls"] = _calls(reply)
    return _line(reply, message, done=True)


WRITER = ReplyWriter(_events, _whole)
