"""Gemini: write a reply as the provider does."""

from base64 import b64encode
from collections.abc import Iterator

from everlong.core import Json, JsonObject
from everlong.wire.fields import load
from everlong.wire.formats.reply_writer import NamedEvent, ReplyWriter, WrittenReply, text_pieces

__all__ = ["WRITER"]


def _usage(reply: WrittenReply) -> JsonObject:
    usage = reply.usage
    if usage is None:
        return {}
    return {
        "usageMetadata": {
            "promptTokenCount": usage.prompt,
            "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.output - usage.reasoning,
            "thoughtsTokenCount": usage.reasoning,
            "totalTokenCount": usage.prompt + usage.output,
        }
    }


def _parts(reply: WrittenReply) -> list[Json]:
    parts: list[Json] = [{"text": piece, "thought": True} for piece in text_pieces(reply.thinking)]
    parts += [{"text": piece} for piece in text_pieces(reply.text)]
    for at, (name, arguments) in enumerate(reply.calls):
        call: JsonObject = {"functionCall": {"id": reply.call_id(at), "name": name, "args": load(arguments)}}
        parts.append(call | ({"thoughtSignature": _signature(reply.number)} if at == 0 else {}))
    return parts


def _signature(number: int) -> str:
    """Return a signature, which is bytes in base64."""
    return b64encode(f"signed {number}".encode()).decode()


def _chunk(parts: list[Json], finish: str = "") -> JsonObject:
    candidate: JsonObject = {"index": 0, "content": {"role": "model", "parts": parts}}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})]}


def _finish(reply: WrittenReply) -> str:
    return {"length": "MAX_TOKENS", "": "STOP", "stop": "STOP"}.get(reply.stop, reply.stop)


def _events(reply: WrittenReply) -> Iterator[NamedEvent]:
    *parts, last = _parts(reply) or [{"text": ""}]  # Google's own client does not accept a chunk without parts
    for part in parts:
        yield "", _chunk([part])
    yield "", _chunk([last], _finish(reply)) | _usage(reply)


def _whole(reply: WrittenReply) -> JsonObject:
    return _chunk(_parts(reply), _finish(reply)) | _usage(reply)


WRITER = ReplyWriter(_events, _whole)
