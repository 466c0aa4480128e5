"""OpenAI Responses: write a reply as the provider does."""

from collections.abc import Iterator

from everlong.core import Json, JsonObject
from everlong.wire.formats.reply_writer import CREATED, NamedEvent, ReplyWriter, WrittenReply, text_pieces

__all__ = ["WRITER"]


def _items(reply: WrittenReply) -> list[JsonObject]:
    items: list[JsonObject] = []
    if reply.thinking:
        summary: list[Json] = [{"type": "summary_text", "text": reply.thinking}]
        sealed = f"signed-{reply.number}"
        items.append({"type": "reasoning", "id": f"rs_{reply.number}", "summary": summary, "encrypted_content": sealed})
    if reply.text:
        content: list[Json] = [{"type": "output_text", "text": reply.text, "annotations": []}]
        name = f"msg_{reply.number}"
        items.append({"type": "message", "id": name, "role": "assistant", "status": "completed", "content": content})
    for at, (name, arguments) in enumerate(reply.calls):
        call: JsonObject = {"type": "function_call", "id": f"fc_{reply.number}_{at}", "call_id": reply.call_id(at)}
        items.append(call | {"name": name, "arguments": arguments, "status": "completed"})
    return items


def _whole(reply: WrittenReply) -> JsonObject:
    usage = reply.usage
    cut = reply.stop in ("length", "max_output_tokens")
    return {
        "id": f"resp_{reply.number}",
        "object": "response",
        "created_at": CREATED,
        "model": reply.model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": [*_items(reply)],
        "usage": None
        if usage is None
        else {
            "input_tokens": usage.prompt,
            "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.prompt + usage.output,
        },
    }


def _events(reply: WrittenReply) -> Iterator[NamedEvent]:
    """Yield every event that the provider sends, numbered: its own clients read them all."""
    whole = _whole(reply)
    begun: Json = whole | {"status": "in_progress", "output": [], "usage": None}
    events = [_named("response.created", {"response": begun}), _named("response.in_progress", {"response": begun})]
    for index, item in enumerate(_items(reply)):
        at: JsonObject = {"output_index": index, "item_id": item["id"]}
        events.append(_named("response.output_item.added", {"output_index": index, "item": _begun(item)}))
        events += _item_events(at, item, reply)
        events.append(_named("response.output_item.done", {"output_index": index, "item": item}))
    ended = "response.incomplete" if whole["status"] == "incomplete" else "response.completed"
    events.append(_named(ended, {"response": whole}))
    for number, (name, data) in enumerate(events):
        yield name, data | {"sequence_number": number}


def _item_events(at: JsonObject, item: JsonObject, reply: WrittenReply) -> list[tuple[str, JsonObject]]:
    match item["type"]:
        case "reasoning":
            place, kind, text = at | {"summary_index": 0}, "reasoning_summary", reply.thinking
            part: JsonObject = {"type": "summary_text", "text": ""}
        case "message":
            place, kind, text = at | {"content_index": 0}, "output", reply.text
            part = {"type": "output_text", "text": "", "annotations": []}
        case _:
            said = item["arguments"]
            return [
                _named("response.function_call_arguments.delta", at | {"delta": said}),
                _named("response.function_call_arguments.done", at | {"arguments": said, "name": item["name"]}),
            ]
    holder = "reasoning_summary_part" if kind == "reasoning_summary" else "content_part"
    words: JsonObject = {"logprobs": []} if kind == "output" else {}
    return [
        _named(f"response.{holder}.added", place | {"part": part}),
        *(_named(f"response.{kind}_text.delta", place | words | {"delta": piece}) for piece in text_pieces(text)),
        _named(f"response.{kind}_text.done", place | words | {"text": text}),
        _named(f"response.{holder}.done", place | {"part": part | {"text": text}}),
    ]


def _begun(item: JsonObject) -> JsonObject:
    empty: JsonObject = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
    return item | empty if item["type"] != "reasoning" else item | {"summary": []}


def _named(name: str, fields: JsonObject) -> tuple[str, JsonObject]:
    return name, {"type": name, **fields}


WRITER = ReplyWriter(_events, _whole)
