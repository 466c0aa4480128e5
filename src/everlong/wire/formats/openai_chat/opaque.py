"""Fields of Chat Completions that clients drop: signatures and reasoning of providers beside the official format."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from everlong.core import Json, JsonObject, JsonText
from everlong.wire.fields import dump, load
from everlong.wire.formats.hidden_tool import list_in, object_in
from everlong.wire.formats.opaque import Find, OpaqueParts

__all__ = ["FIELDS", "ChatParts", "OpaqueField"]

REASONING = "reasoning_content"
#: Models that refuse a call of theirs without the thoughts before it; others would only read them again.
WANTS_THOUGHTS = re.compile(r"deepseek|kimi|moonshot", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueField:
    """A field that clients drop: its place ("message", "call", "function"), its name, whose it is."""

    place: str
    name: str
    who: str
    sample: Json


#: Fields beside those that every client knows.
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
    """Fields of messages, calls and functions."""

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
        """Return the fields to remember; those of the message stand under its first call."""
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
        """The calls that have an id."""
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
