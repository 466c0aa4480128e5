"""Chat Completions for a server: errors, the canonical form of a message, usage."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from everlong.core import Json, JsonObject, JsonText
from everlong.wire.fields import dump, load
from everlong.wire.formats.format import Deltas, Place
from everlong.wire.formats.hidden_tool import Event, list_in, object_in
from everlong.wire.formats.opaque import Find, OpaqueParts
from everlong.wire.formats.openai_chat.hidden_tool import TOOL
from everlong.wire.formats.openai_errors import error_body, overflow_text
from everlong.wire.formats.server import Canonical, Errors, ServerSide, UsageShape
from everlong.wire.framing import DONE

__all__ = ["DELTAS", "FIELDS", "SERVER", "ChatParts", "OpaqueField"]

REASONING = "reasoning_content"
#: Models that refuse their own calls without the reasoning before them; others do not need it back.
WANTS_THOUGHTS = re.compile(r"deepseek|kimi|moonshot", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueField:
    """A field that clients drop: its place ("message", "call", "function"), its name, and who sends it."""

    place: str
    name: str
    who: str
    sample: Json


#: Fields that not every client knows.
FIELDS: tuple[OpaqueField, ...] = (
    OpaqueField(place="message", name=REASONING, who="DeepSeek, Moonshot", sample="First I list the files."),
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


class ChatParts(OpaqueParts):
    """Restores fields of messages, calls and functions."""

    def call_id(self, call: Json) -> str | None:
        """Return the id of an entry of `tool_calls`."""
        if not isinstance(call, dict):
            return None
        identity = call.get("id")
        return identity if isinstance(identity, str) else ""

    def call_content(self, call: JsonObject) -> tuple[Json, Json]:
        """Return the name and the arguments, or the input of a custom tool."""
        inner = object_in(call.get("function") or call.get("custom"))
        return inner.get("name"), inner.get("arguments", inner.get("input"))

    def parts(self, members: Sequence[Json], model: str = "") -> dict[str, JsonText]:
        """Return the fields to remember; those of the message are kept under its first call."""
        message = object_in(members[0]) if members else {}
        dropped = {REASONING} if model and not WANTS_THOUGHTS.search(model) else set()
        names = [name for name in MESSAGE_NAMES if name not in dropped]
        around: JsonObject = {name: message[name] for name in names if message.get(name) is not None}
        parts: dict[str, JsonText] = {}
        for call in self._calls(message):
            kept: JsonObject = {"message": around} if around else {}
            for place, holder in (("call", call), ("function", call.get("function"))):
                if isinstance(holder, dict):
                    known: JsonObject = {name: holder[name] for name in NAMES[place] if holder.get(name) is not None}
                    kept |= {place: known} if known else {}
            around = {}
            if kept:
                parts |= self._keys(call, dump(kept))
        return parts

    def restored(self, members: list[JsonObject], find: Find) -> list[JsonObject]:
        """Return the messages with the fields that assistants' messages lack."""
        return [self._restored(each, find) if each.get("role") == "assistant" else each for each in members]

    def _calls(self, message: JsonObject) -> list[JsonObject]:
        """Return the calls that have an id."""
        return [call for call in list_in(message.get("tool_calls")) if isinstance(call, dict) and self.call_id(call)]

    def _restored(self, message: JsonObject, find: Find) -> JsonObject:
        whole = message
        calls: dict[int, JsonObject] = {}
        for call in self._calls(message):
            text = self._kept(call, find)
            if text is None:
                continue
            kept = object_in(load(text))
            filled = _filled(call, object_in(kept.get("call")))
            function = call.get("function")
            if isinstance(function, dict):
                inner = _filled(function, object_in(kept.get("function")))
                filled = filled if inner is function else filled | {"function": inner}
            if filled is not call:
                calls[id(call)] = filled
            whole = _filled(whole, object_in(kept.get("message")))
        if not calls:
            return whole
        listed = cast(list[Json], message["tool_calls"])
        return whole | {"tool_calls": [calls.get(id(call), call) for call in listed]}


def _filled(sent: JsonObject, kept: JsonObject) -> JsonObject:
    """Return the object with missing fields filled in, nested ones too. A null counts as missing.

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


def _error_events(status: int, kind: str, message: str, _sequence: int) -> list[Event]:
    return [("", error_body(status, kind, message)), ("", DONE)]


# --- the canonical form of a message ---------------------------------------------------------------


def _plain(message: JsonObject) -> JsonObject:
    """Return the message with text as a string, which old servers need, and calls without the index of a stream."""
    text = _lone_text(message.get("content"))
    message = message if text is None else message | {"content": text}
    return message | {"tool_calls": _unnumbered(message["tool_calls"])} if "tool_calls" in message else message


def _lone_text(content: Json) -> str | None:
    """Return the text of a content that is one plain text block; None for others, such as one with a cache mark."""
    block = content[0] if isinstance(content, list) and len(content) == 1 else None
    if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
        return None
    return cast(str, block["text"]) if block.keys() <= {"type", "text"} else None


def _unnumbered(calls: Json) -> Json:
    if not isinstance(calls, list):
        return calls
    return [_without_number(call) if isinstance(call, dict) else call for call in calls]


def _without_number(call: JsonObject) -> JsonObject:
    return {name: field for name, field in call.items() if name != "index"}


# --- events that only add to one text --------------------------------------------------------------

OTHER_CHOICE: Place = ("choices", 1)  # of several answers, only the first is read
TEXTS = ("content", "reasoning_content", "reasoning")


def _split(event: JsonObject) -> tuple[Place, str] | None:
    choices = event.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or event.get("usage"):
        return None
    choice = choices[0]
    if isinstance(choice, dict) and choice.get("index"):
        return OTHER_CHOICE, ""
    if not isinstance(choice, dict) or choice.get("finish_reason") or choice.get("usage"):
        return None
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return None
    pieces = [(name, value) for name, value in delta.items() if value and name != "role"]
    if len(pieces) != 1:
        return None
    name, value = pieces[0]
    if isinstance(value, str) and name in TEXTS:
        return (name, 0), value
    return _split_arguments(value) if name == "tool_calls" else None


def _split_arguments(calls: Json) -> tuple[Place, str] | None:
    """Return place and text of a piece that only adds to the arguments of a known call."""
    call = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    if not isinstance(call, dict) or call.keys() != {"index", "function"}:
        return None
    index, function = call["index"], call["function"]
    if not isinstance(index, int) or not isinstance(function, dict) or function.keys() != {"arguments"}:
        return None
    more = function["arguments"]
    return (("arguments", index), more) if isinstance(more, str) else None


def _join(place: Place, text: str) -> JsonObject:
    name, index = place
    if place == OTHER_CHOICE:
        return {}
    delta: JsonObject = {name: text}
    if name == "arguments":
        delta = {"tool_calls": [{"index": index, "function": delta}]}
    return {"choices": [{"index": 0, "delta": delta}]}


DELTAS = Deltas(split=_split, join=_join)

SERVER = ServerSide(
    maker="openai",
    title="OpenAI",
    client_base="/v1",
    errors=Errors(body=error_body, events=_error_events, overflow=overflow_text),
    canonical=Canonical(form=_plain, noise=frozenset({"index"})),
    usage=UsageShape(
        prompt="prompt_tokens",
        output="completion_tokens",
        total="total_tokens",
        details="prompt_tokens_details",
        known_by="object",
        whole=(b'"chat.completion"',),
        marks=(b'"usage"', b"[DONE]"),
        frame=frozenset({"created", "id", "model", "object", "service_tier", "system_fingerprint"}),
    ),
    opaque=ChatParts(),
    tool=TOOL,
)
