"""Anthropic Messages: write a reply as the provider does."""

import json
from collections.abc import Iterator

from everlong.core import Json, JsonObject
from everlong.wire.fields import load
from everlong.wire.formats.reply_writer import NamedEvent, ReplyWriter, WrittenReply, text_pieces
from everlong.wire.usage import Usage

__all__ = ["WRITER"]


def _usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.prompt - usage.cached - usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.cache_written,
        "output_tokens": usage.output,
    }


def _blocks(reply: WrittenReply) -> list[JsonObject]:
    thinking: JsonObject = {"type": "thinking", "thinking": reply.thinking, "signature": f"signed-{reply.number}"}
    blocks: list[JsonObject] = [thinking] if reply.thinking else []
    blocks += [{"type": "text", "text": reply.text}] if reply.text else []
    for at, (name, arguments) in enumerate(reply.calls):
        blocks.append({"type": "tool_use", "id": reply.call_id(at), "name": name, "input": load(arguments)})
    return blocks


def _whole(reply: WrittenReply) -> JsonObject:
    body: JsonObject = {
        "id": f"msg_{reply.number}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [*_blocks(reply)],
        "stop_reason": reply.stop_word("end_turn", "tool_use"),
        "stop_sequence": None,
    }
    return body | {"usage": _usage(reply.usage or Usage())}


def _events(reply: WrittenReply) -> Iterator[NamedEvent]:
    whole = _whole(reply)
    usage = whole["usage"]
    yield "message_start", {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}}
    for index, block in enumerate(_blocks(reply)):
        empty, deltas = _deltas(block)
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    ending: JsonObject = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ending, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _deltas(block: JsonObject) -> tuple[JsonObject, list[Json]]:
    match block["type"]:
        case "text":
            pieces = text_pieces(str(block["text"]))
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
        case "thinking":
            pieces = text_pieces(str(block["thinking"]))
            thoughts: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
            signed: Json = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]
        case _:
            arguments = json.dumps(block["input"], ensure_ascii=False)
            return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": arguments}]


WRITER = ReplyWriter(_events, _whole)
