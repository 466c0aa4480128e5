"""A scripted answer in the words of each wire format: events of a stream, or one whole body."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from everlong.core import Json, JsonObject
from everlong.llm.scripted.script import Answer, Asked
from everlong.wire import Usage, load

__all__ = ["SPEAKERS", "Speaker", "texts_of"]

WORDS_A_PIECE = 4
CREATED = 1_700_000_000  # a fixed time: the same script says the same bytes

#: One event of a stream: its name ("" for none) and its data; text is sent as it is.
Event: TypeAlias = tuple[str, Json]


@dataclass(frozen=True, slots=True)
class Speaker:
    """How one format answers: as events, and as a whole."""

    events: Callable[[Asked, Answer], Iterator[Event]]
    whole: Callable[[Asked, Answer], JsonObject]


def texts_of(text: str) -> list[str]:
    """The text in pieces of a few words; joined they are the text again."""
    words = text.split(" ")
    pieces = [" ".join(words[at : at + WORDS_A_PIECE]) for at in range(0, len(words), WORDS_A_PIECE)]
    return [piece + (" " if at + 1 < len(pieces) else "") for at, piece in enumerate(pieces) if text]


def _id(asked: Asked, at: int) -> str:
    return f"call_{asked.number}_{at}"


def _stop(answer: Answer, usual: str, calls: str) -> str:
    return answer.stop or (calls if answer.calls else usual)


# --- OpenAI Chat Completions ---------------------------------------------------------------------


def _chat_usage(usage: Usage) -> JsonObject:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _chat_calls(asked: Asked, answer: Answer) -> list[Json]:
    return [
        {"index": at, "id": _id(asked, at), "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(answer.calls)
    ]


def _chat_events(asked: Asked, answer: Answer) -> Iterator[Event]:
    frame: JsonObject = {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": asked.model,
    }

    def chunk(delta: JsonObject, finish: str | None = None) -> Event:
        return "", frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in texts_of(answer.thinking):
        yield chunk({"reasoning_content": piece})
    for piece in texts_of(answer.text):
        yield chunk({"content": piece})
    for call in _chat_calls(asked, answer):
        yield chunk({"tool_calls": [call]})
    yield chunk({}, _stop(answer, "stop", "tool_calls"))
    if answer.usage is not None and answer.reported:
        yield "", frame | {"choices": [], "usage": _chat_usage(answer.usage)}
    yield "", "[DONE]"


def _chat_whole(asked: Asked, answer: Answer) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": answer.text or None}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        calls = [{key: value for key, value in call.items() if key != "index"} for call in _objects(asked, answer)]
        message["tool_calls"] = [*calls]
    body: JsonObject = {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": CREATED,
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": _stop(answer, "stop", "tool_calls")}],
    }
    return body | ({"usage": _chat_usage(answer.usage)} if answer.usage and answer.reported else {})


def _objects(asked: Asked, answer: Answer) -> list[JsonObject]:
    return [call for call in _chat_calls(asked, answer) if isinstance(call, dict)]


# --- Anthropic Messages --------------------------------------------------------------------------


def _anthropic_usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.prompt - usage.cached - usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.cache_written,
        "output_tokens": usage.output,
    }


def _anthropic_blocks(asked: Asked, answer: Answer) -> list[JsonObject]:
    thinking: JsonObject = {"type": "thinking", "thinking": answer.thinking, "signature": f"signed-{asked.number}"}
    blocks: list[JsonObject] = [thinking] if answer.thinking else []
    blocks += [{"type": "text", "text": answer.text}] if answer.text else []
    for at, (name, arguments) in enumerate(answer.calls):
        blocks.append({"type": "tool_use", "id": _id(asked, at), "name": name, "input": load(arguments)})
    return blocks


def _anthropic_whole(asked: Asked, answer: Answer) -> JsonObject:
    body: JsonObject = {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [*_anthropic_blocks(asked, answer)],
        "stop_reason": _stop(answer, "end_turn", "tool_use"),
        "stop_sequence": None,
    }
    return body | {"usage": _anthropic_usage(answer.usage if answer.usage and answer.reported else Usage())}


def _anthropic_events(asked: Asked, answer: Answer) -> Iterator[Event]:
    whole = _anthropic_whole(asked, answer)
    usage = whole["usage"]
    yield "message_start", {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}}
    for index, block in enumerate(_anthropic_blocks(asked, answer)):
        empty, deltas = _anthropic_deltas(block)
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    ending: JsonObject = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ending, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _anthropic_deltas(block: JsonObject) -> tuple[JsonObject, list[Json]]:
    match block["type"]:
        case "text":
            pieces = texts_of(str(block["text"]))
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
        case "thinking":
            pieces = texts_of(str(block["thinking"]))
            thoughts: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
            signed: Json = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]
        case _:
            arguments = json.dumps(block["input"], ensure_ascii=False)
            return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": arguments}]


# --- OpenAI Responses ----------------------------------------------------------------------------


def _response_items(asked: Asked, answer: Answer) -> list[JsonObject]:
    items: list[JsonObject] = []
    if answer.thinking:
        summary: list[Json] = [{"type": "summary_text", "text": answer.thinking}]
        sealed = f"signed-{asked.number}"
        items.append({"type": "reasoning", "id": f"rs_{asked.number}", "summary": summary, "encrypted_content": sealed})
    if answer.text:
        content: list[Json] = [{"type": "output_text", "text": answer.text, "annotations": []}]
        name = f"msg_{asked.number}"
        items.append({"type": "message", "id": name, "role": "assistant", "status": "completed", "content": content})
    for at, (name, arguments) in enumerate(answer.calls):
        call: JsonObject = {"type": "function_call", "id": f"fc_{asked.number}_{at}", "call_id": _id(asked, at)}
        items.append(call | {"name": name, "arguments": arguments, "status": "completed"})
    return items


def _response_whole(asked: Asked, answer: Answer) -> JsonObject:
    usage = answer.usage if answer.usage and answer.reported else None
    cut = answer.stop in ("length", "max_output_tokens")
    return {
        "id": f"resp_{asked.number}",
        "object": "response",
        "created_at": CREATED,
        "model": asked.model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": [*_response_items(asked, answer)],
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


def _response_events(asked: Asked, answer: Answer) -> Iterator[Event]:
    """Every event as the provider sends it, numbered: clients of its maker read them all."""
    whole = _response_whole(asked, answer)
    begun: Json = whole | {"status": "in_progress", "output": [], "usage": None}
    events = [_named("response.created", {"response": begun}), _named("response.in_progress", {"response": begun})]
    for index, item in enumerate(_response_items(asked, answer)):
        at: JsonObject = {"output_index": index, "item_id": item["id"]}
        events.append(_named("response.output_item.added", {"output_index": index, "item": _begun(item)}))
        events += _item_events(at, item, answer)
        events.append(_named("response.output_item.done", {"output_index": index, "item": item}))
    ended = "response.incomplete" if whole["status"] == "incomplete" else "response.completed"
    events.append(_named(ended, {"response": whole}))
    for number, (name, data) in enumerate(events):
        yield name, data | {"sequence_number": number}


def _item_events(at: JsonObject, item: JsonObject, answer: Answer) -> list[tuple[str, JsonObject]]:
    match item["type"]:
        case "reasoning":
            place, kind, text = at | {"summary_index": 0}, "reasoning_summary", answer.thinking
            part: JsonObject = {"type": "summary_text", "text": ""}
        case "message":
            place, kind, text = at | {"content_index": 0}, "output", answer.text
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
        *(_named(f"response.{kind}_text.delta", place | words | {"delta": piece}) for piece in texts_of(text)),
        _named(f"response.{kind}_text.done", place | words | {"text": text}),
        _named(f"response.{holder}.done", place | {"part": part | {"text": text}}),
    ]


def _begun(item: JsonObject) -> JsonObject:
    empty: JsonObject = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
    return item | empty if item["type"] != "reasoning" else item | {"summary": []}


def _named(name: str, fields: JsonObject) -> tuple[str, JsonObject]:
    return name, {"type": name, **fields}


# --- Gemini --------------------------------------------------------------------------------------


def _gemini_usage(answer: Answer) -> JsonObject:
    usage = answer.usage
    if usage is None or not answer.reported:
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


def _gemini_parts(asked: Asked, answer: Answer) -> list[Json]:
    parts: list[Json] = [{"text": piece, "thought": True} for piece in texts_of(answer.thinking)]
    parts += [{"text": piece} for piece in texts_of(answer.text)]
    for at, (name, arguments) in enumerate(answer.calls):
        call: JsonObject = {"functionCall": {"id": _id(asked, at), "name": name, "args": load(arguments)}}
        parts.append(call | ({"thoughtSignature": f"signed-{asked.number}"} if at == 0 else {}))
    return parts


def _gemini_chunk(parts: list[Json], finish: str = "") -> JsonObject:
    candidate: JsonObject = {"index": 0, "content": {"role": "model", "parts": parts}}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})]}


def _gemini_finish(answer: Answer) -> str:
    return {"length": "MAX_TOKENS", "": "STOP", "stop": "STOP"}.get(answer.stop, answer.stop)


def _gemini_events(asked: Asked, answer: Answer) -> Iterator[Event]:
    for part in _gemini_parts(asked, answer):
        yield "", _gemini_chunk([part])
    yield "", _gemini_chunk([], _gemini_finish(answer)) | _gemini_usage(answer)


def _gemini_whole(asked: Asked, answer: Answer) -> JsonObject:
    return _gemini_chunk(_gemini_parts(asked, answer), _gemini_finish(answer)) | _gemini_usage(answer)


SPEAKERS: Mapping[str, Speaker] = {
    "anthropic": Speaker(_anthropic_events, _anthropic_whole),
    "gemini": Speaker(_gemini_events, _gemini_whole),
    "openai-chat": Speaker(_chat_events, _chat_whole),
    "openai-responses": Speaker(_response_events, _response_whole),
}
