"""Our tool's calls in answers that are not streamed: hidden, and two answers as one."""

import json
from typing import cast

from everlong.core import Json, JsonObject
from everlong.gateway.recall.chat_stream import FINISHES
from everlong.gateway.recall.messages_stream import STOPS
from everlong.gateway.recall.responses_stream import is_ours
from everlong.gateway.recall.stream import json_bytes
from everlong.gateway.recall.tool import NAME
from everlong.gateway.recall.usage import added

__all__ = ["hidden_body", "joined_body"]

#: Fields of a Chat message that go on in the second answer.
TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
LISTS = ("reasoning_details", "thinking_blocks", "annotations")


def hidden_body(fmt: str, body: bytes) -> bytes:
    """The answer without calls of our tool, the same bytes if there are none; with no call left it just ends."""
    if NAME.encode() not in body:
        return body
    answer = _object(body)
    hidden = answer if answer is None else _hidden(fmt, answer)
    return body if hidden is answer else json_bytes(hidden)


def joined_body(fmt: str, first: bytes, second: bytes) -> bytes:
    """Two answers as one: the first, whose call of our tool the second goes on from."""
    one, other = _object(first), _object(second)
    if one is None or other is None:
        return second
    one, other = _hidden(fmt, one), _hidden(fmt, other)
    whole = JOINS[fmt](one, other)
    if isinstance(one.get("usage"), dict) or isinstance(other.get("usage"), dict):
        whole["usage"] = added(one.get("usage"), other.get("usage"))
    return json_bytes(whole)


def _object(body: bytes) -> JsonObject | None:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


# --- hiding ----------------------------------------------------------------------------------------


def _hidden(fmt: str, answer: JsonObject) -> JsonObject:
    if fmt == "openai-chat":
        choice = _choice(answer)
        hidden = _chat_hidden(choice)
        rest = cast(list[Json], answer["choices"])[1:] if choice else []
        return answer if hidden is choice else answer | {"choices": [hidden, *rest]}
    field = "content" if fmt == "anthropic" else "output"
    listed = _list(answer.get(field))
    kept = [block for block in listed if not (is_ours(block) or _is_our_block(block))]
    if len(kept) == len(listed):
        return answer
    out = answer | {field: kept}
    if fmt == "anthropic" and not any(isinstance(block, dict) and block.get("type") == "tool_use" for block in kept):
        stop = answer.get("stop_reason")
        out["stop_reason"] = STOPS.get(stop, stop) if isinstance(stop, str) else stop
    return out


def _is_our_block(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use" and block.get("name") == NAME


def _chat_hidden(choice: JsonObject) -> JsonObject:
    message = _fields(choice.get("message"))
    calls = _list(message.get("tool_calls"))
    kept = [call for call in calls if _fields(_fields(call).get("function")).get("name") != NAME]
    if len(kept) == len(calls):
        return choice
    rest: JsonObject = {name: value for name, value in message.items() if name != "tool_calls"}
    if kept:
        return choice | {"message": rest | {"tool_calls": kept}}
    finish = choice.get("finish_reason")
    ended = FINISHES.get(finish, finish) if isinstance(finish, str) else finish
    return choice | {"message": rest, "finish_reason": ended}


def _choice(answer: JsonObject) -> JsonObject:
    choices = _list(answer.get("choices"))
    return _fields(choices[0]) if choices else {}


def _fields(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


# --- joining ---------------------------------------------------------------------------------------


def _chat_joined(one: JsonObject, other: JsonObject) -> JsonObject:
    before, after = _fields(_choice(one).get("message")), _fields(_choice(other).get("message"))
    message = before | after
    for name in TEXTS:
        said = [text for text in (before.get(name), after.get(name)) if isinstance(text, str)]
        if said:
            message[name] = "".join(said)
    for name in LISTS:
        if name in before or name in after:
            message[name] = [*_list(before.get(name)), *_list(after.get(name))]
    frame: JsonObject = {name: one[name] for name in ("id", "created") if name in one}
    return other | frame | {"choices": [_choice(other) | {"message": message}]}


def _anthropic_joined(one: JsonObject, other: JsonObject) -> JsonObject:
    content = [*_list(one.get("content")), *_list(other.get("content"))]
    return other | {"id": one.get("id"), "content": content}


def _responses_joined(one: JsonObject, other: JsonObject) -> JsonObject:
    """Under the id of the second, which a next request may name."""
    return other | {"output": [*_list(one.get("output")), *_list(other.get("output"))]}


JOINS = {"openai-chat": _chat_joined, "anthropic": _anthropic_joined, "openai-responses": _responses_joined}
