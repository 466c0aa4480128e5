"""What a client drops when it sends an assistant's message again, put back by the call it belongs to.

Signatures and sealed reasoning belong to the calls they led to, and providers refuse the calls without them; clients
drop what their format does not name. Pure: what is remembered, under which call, and where it goes back to. What a
client did send is never overwritten; messages without calls are left alone. Only what an upstream sent is ever put
back, so a provider that does not know a field never gets it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from everlong.core import Json, JsonObject, JsonText, ref_of
from everlong.wire import CALLS, dump, load

__all__ = [
    "FIELDS",
    "SEALS",
    "THOUGHTS",
    "Find",
    "OpaqueField",
    "call_id",
    "call_key",
    "kept_for",
    "keys_of",
    "opaque_parts",
    "restored",
    "restored_items",
]

#: Marks of arguments as they were written, by their hash: a client sends the same ones with every request.
_MARKS: dict[str, str] = {}
MOST_MARKS = 20_000

#: What was kept under a key, None if nothing.
Find: TypeAlias = Callable[[str], JsonText | None]


def call_id(fmt: str, call: Json) -> str | None:
    """The id of an entry of `tool_calls`, a block or an item; "" if it has none, None if it is no call."""
    if not isinstance(call, dict):
        return None
    kind = str(call.get("type"))
    if (fmt == "anthropic" and kind != "tool_use") or (fmt == "openai-responses" and kind not in CALLS):
        return None
    found = call.get("call_id" if fmt == "openai-responses" else "id")
    return found if isinstance(found, str) else ""


def call_key(fmt: str, call: JsonObject) -> str:
    """The key of a call that has an id.

    Example: {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}} -> toolu_1:8a5d…
    """
    if fmt == "openai-chat":
        function = call.get("function") or call.get("custom")
        inner = function if isinstance(function, dict) else {}
        mark = _mark(inner.get("name"), inner.get("arguments", inner.get("input")))
    elif fmt == "anthropic":
        mark = _mark(call.get("name"), call.get("input"))
    else:
        kind = CALLS[str(call["type"])]
        mark = _mark(call.get("name"), call.get(kind.payload))
    return f"{call_id(fmt, call)}:{mark}"


def keys_of(fmt: str, call: JsonObject, kept: JsonText) -> dict[str, JsonText]:
    """What is to be kept for a call: the text under its key, and under its id that there is something."""
    return {call_id(fmt, call) or "": "", call_key(fmt, call): kept}


def kept_for(fmt: str, call: JsonObject, find: Find) -> JsonText | None:
    """What was kept for a call. Most calls have nothing, and their arguments are then not looked at."""
    return None if find(call_id(fmt, call) or "") is None else find(call_key(fmt, call))


def _mark(name: Json, arguments: Json) -> str:
    if not isinstance(arguments, str):
        return _mark_of(name, arguments)
    known = ref_of(f"{name}\n{arguments}")
    mark = _MARKS.get(known)
    if mark is None:
        if len(_MARKS) >= MOST_MARKS:
            _MARKS.clear()
        mark = _MARKS[known] = _mark_of(name, _value(arguments))
    return mark


def _value(arguments: str) -> Json:
    try:
        value: Json = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return arguments
    return value


def _mark_of(name: Json, arguments: Json) -> str:
    try:
        return ref_of(json.dumps([name, _plain(arguments)], sort_keys=True))
    except RecursionError:
        return ref_of(str(name))


def _plain(value: Json) -> Json:
    """Numbers in one form: some clients write 1.0 as 1."""
    match value:
        case dict():
            plain: JsonObject = {name: _plain(inner) for name, inner in value.items()}
            return plain
        case list():
            return [_plain(inner) for inner in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueField:
    """A field of Chat that clients drop: its place ("message", "call", "function"), its name, whose it is."""

    place: str
    name: str
    who: str
    sample: Json


#: Chat: fields beside those that every client knows.
FIELDS: tuple[OpaqueField, ...] = (
    OpaqueField(place="message", name="reasoning_content", who="DeepSeek, Moonshot", sample="First I list the files."),
    OpaqueField(
        place="message",
        name="reasoning_details",
        who="OpenRouter",
        sample=[{"type": "reasoning.encrypted", "data": "c2VhbGVk", "format": "anthropic-claude-v1", "index": 0}],
    ),
    OpaqueField(
        place="message",
        name="thinking_blocks",
        who="litellm",
        sample=[{"type": "thinking", "thinking": "First the files.", "signature": "c2lnbmVk"}],
    ),
    OpaqueField(
        place="message", name="extra_content", who="Gemini", sample={"google": {"thought_signature": "c2lnbmVk"}}
    ),
    OpaqueField(place="call", name="extra_content", who="Gemini", sample={"google": {"thought_signature": "c2lnbmVk"}}),
    OpaqueField(place="call", name="provider_specific_fields", who="litellm", sample={"thought_signature": "c2lnbmVk"}),
    OpaqueField(place="call", name="thought_signature", who="proxies of Gemini", sample="c2lnbmVk"),
    OpaqueField(place="call", name="thoughtSignature", who="proxies of Gemini", sample="c2lnbmVk"),
    OpaqueField(
        place="function", name="provider_specific_fields", who="litellm", sample={"thought_signature": "c2lnbmVk"}
    ),
    OpaqueField(place="function", name="thought_signature", who="proxies of Gemini", sample="c2lnbmVk"),
)
NAMES = {place: tuple(field.name for field in FIELDS if field.place == place) for place in ("call", "function")}
MESSAGE_NAMES = tuple(field.name for field in FIELDS if field.place == "message")

#: Anthropic and Responses: blocks and items that stand before the call they led to; the sample of each is whole.
THOUGHTS: dict[str, tuple[JsonObject, ...]] = {
    "anthropic": (
        {"type": "thinking", "thinking": "First the files.", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
    ),
    "openai-responses": ({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbGVk"},),
}
KINDS = {fmt: tuple(sample["type"] for sample in samples) for fmt, samples in THOUGHTS.items()}
#: The field that makes a thought good for anything when it comes back.
SEALS = {"thinking": "signature", "redacted_thinking": "data", "reasoning": "encrypted_content"}


def opaque_parts(fmt: str, message: JsonObject | Sequence[Json]) -> dict[str, JsonText]:
    """What must be remembered of an assistant's message (of Responses: its items), under the keys of its calls."""
    if fmt == "openai-chat":
        return _chat_parts(message) if isinstance(message, dict) else {}
    listed = message.get("content") if isinstance(message, dict) else message
    return _thoughts(fmt, listed) if isinstance(listed, list | tuple) else {}


def restored(fmt: str, message: JsonObject, find: Find) -> JsonObject:
    """A client's message with what it dropped; the same object if nothing is missing."""
    if message.get("role") != "assistant":
        return message
    if fmt == "openai-chat":
        return _chat_restored(message, find)
    content = message.get("content")
    if not isinstance(content, list):
        return message
    whole = _thoughts_restored(fmt, content, find)
    return message if whole is content else message | {"content": whole}


def restored_items(items: list[Json], find: Find) -> list[Json]:
    """The input of a Responses request with the reasoning a client dropped; the same list if none is missing."""
    return _thoughts_restored("openai-responses", items, find)


# --- Chat: fields ----------------------------------------------------------------------------------


def _chat_parts(message: JsonObject) -> dict[str, JsonText]:
    """Fields of the message are remembered under its first call."""
    around: JsonObject = {name: message[name] for name in MESSAGE_NAMES if message.get(name) is not None}
    parts: dict[str, JsonText] = {}
    for call in _chat_calls(message):
        kept: JsonObject = {"message": around} if around else {}
        for place, holder in (("call", call), ("function", call.get("function"))):
            if isinstance(holder, dict):
                found: JsonObject = {name: holder[name] for name in NAMES[place] if holder.get(name) is not None}
                kept |= {place: found} if found else {}
        around = {}
        if kept:
            parts |= keys_of("openai-chat", call, dump(kept))
    return parts


def _chat_calls(message: JsonObject) -> list[JsonObject]:
    """The calls that have an id."""
    listed = message.get("tool_calls")
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    return [call for call in calls if call_id("openai-chat", call)]


def _chat_restored(message: JsonObject, find: Find) -> JsonObject:
    whole = message
    calls: dict[int, JsonObject] = {}
    for call in _chat_calls(message):
        text = kept_for("openai-chat", call, find)
        if text is None:
            continue
        kept = _object(load(text))
        again = _filled(call, _object(kept.get("call")))
        function = call.get("function")
        if isinstance(function, dict):
            inner = _filled(function, _object(kept.get("function")))
            again = again if inner is function else again | {"function": inner}
        if again is not call:
            calls[id(call)] = again
        whole = _filled(whole, _object(kept.get("message")))
    if not calls:
        return whole
    listed = cast(list[Json], message["tool_calls"])
    return whole | {"tool_calls": [calls.get(id(call), call) for call in listed]}


def _filled(sent: JsonObject, kept: JsonObject) -> JsonObject:
    """The object with the fields that it lacks, inner ones too; a null is a lack.

    Example: {"a": {"b": 1}}, {"a": {"b": 2, "c": 3}} -> {"a": {"b": 1, "c": 3}}
    """
    lacking: JsonObject = {}
    for name, value in kept.items():
        there = sent.get(name)
        if there is None:
            lacking[name] = value
        elif isinstance(there, dict) and isinstance(value, dict):
            inner = _filled(there, value)
            lacking |= {name: inner} if inner is not there else {}
    return sent | lacking if lacking else sent


# --- Anthropic and Responses: what stands before a call --------------------------------------------


def _thoughts(fmt: str, blocks: Sequence[Json]) -> dict[str, JsonText]:
    """Under each call the thoughts since the call before it, each with its distance: how many words stand between."""
    parts: dict[str, JsonText] = {}
    for start, end, call in _stretches(fmt, blocks):
        thoughts = [
            [sum(not _is_thought(fmt, other) for other in blocks[at + 1 : end]), block]
            for at, block in enumerate(blocks[start:end], start)
            if _is_sealed(fmt, block)
        ]
        if thoughts:
            parts |= keys_of(fmt, call, dump(cast(Json, thoughts)))
    return parts


def _thoughts_restored(fmt: str, blocks: list[Json], find: Find) -> list[Json]:
    whole: list[Json] = []
    done = 0
    for start, end, call in _stretches(fmt, blocks):
        before = blocks[start:end]
        kept = _kept_thoughts(kept_for(fmt, call, find))
        sent = [block for block in before if _is_thought(fmt, block)]
        known = [thought for _, thought in kept]
        if kept and all(block in known for block in sent):  # another thought in its place is the client's own doing
            before = _placed([block for block in before if not _is_thought(fmt, block)], kept)
        whole += [*blocks[done:start], *before]
        done = end
    whole += blocks[done:]
    return blocks if whole == blocks else whole


def _placed(words: list[Json], kept: list[tuple[int, Json]]) -> list[Json]:
    """The thoughts among the words again, counted from the end, where the call stands."""
    placed: list[Json] = []
    for left in range(len(words), -1, -1):
        placed += [thought for distance, thought in kept if min(distance, len(words)) == left]
        placed += words[len(words) - left :][:1]
    return placed


def _stretches(fmt: str, blocks: Sequence[Json]) -> list[tuple[int, int, JsonObject]]:
    """Where the words and thoughts before each call begin and end, and the call."""
    stretches = []
    start = 0
    for at, block in enumerate(blocks):
        if not isinstance(block, dict):
            continue
        call = call_id(fmt, block)
        if call is None and _is_own(fmt, block):
            continue
        if call:
            stretches.append((start, at, block))
        start = at + 1
    return stretches


def _is_own(fmt: str, block: JsonObject) -> bool:
    """Whether it is the assistant's. Blocks of its message all are; among items the user's stand too."""
    return fmt == "anthropic" or block.get("type") == "reasoning" or block.get("role") == "assistant"


def _is_thought(fmt: str, block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") in KINDS[fmt]


def _is_sealed(fmt: str, block: Json) -> bool:
    return isinstance(block, dict) and _is_thought(fmt, block) and bool(block.get(SEALS[cast(str, block["type"])]))


def _kept_thoughts(text: JsonText | None) -> list[tuple[int, Json]]:
    return [(distance, thought) for distance, thought in cast("list[tuple[int, Json]]", load(text))] if text else []


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
