"""The calls in a Chat message: functions, custom tools, and the `function_call` of before.

    {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{…}"}}

Entries that are neither travel as opaque parts of kind `ODD_CALL`, in their place among the others.
"""

from typing import cast

from everlong.core import CallId, Json, JsonObject, JsonText, Opaque, Part, ToolCall
from everlong.wire.fields import dump, pack, unpack
from everlong.wire.openai.shapes import arguments_in, arguments_out, missing, settle, take_text

__all__ = ["ODD_CALL", "call_out", "calls_in", "function_out", "is_legacy", "legacy_id"]

ODD_CALL = "message.tool_calls"
CALL_KINDS = {"function": "arguments", "custom": "input"}  # where each kind keeps what it is called with


def calls_in(fields: JsonObject) -> list[Part]:
    """The calls of a message, taken out; a field that is no filled list stays where it is."""
    calls: list[Part] = []
    listed = fields.get("tool_calls")
    if isinstance(listed, list) and listed:
        del fields["tool_calls"]
        calls = [_call_in(call) for call in listed]
    old = fields.get("function_call")
    if isinstance(old, dict):
        del fields["function_call"]
        name, arguments, inner = _function_in(old, "function")
        calls.append(ToolCall(legacy_id(name), name, arguments, pack({}, legacy=True, inner=inner)))
    return calls


def _call_in(raw: Json) -> Part:
    fields = dict(raw) if isinstance(raw, dict) else {}
    kind = next((kind for kind in CALL_KINDS if isinstance(fields.get(kind), dict)), None)
    if kind is None:
        return Opaque(ODD_CALL, dump(raw))
    name, arguments, inner = _function_in(cast(JsonObject, fields.pop(kind)), kind)
    absent = missing(fields, "id", "type")
    if fields.get("type") == kind:
        del fields["type"]
    call = CallId(take_text(fields, "id"))
    hint = None if kind == "function" else kind
    return ToolCall(call, name, arguments, pack(fields, kind=hint, inner=inner, missing=absent))


def call_out(call: ToolCall) -> Json:
    """The entry of `tool_calls` again."""
    fields, shape = unpack(call.extra)
    kind = cast(str, shape.get("kind", "function"))
    return settle({"id": call.id, "type": kind, kind: function_out(call, kind)}, fields, shape)


def _function_in(raw: JsonObject, kind: str) -> tuple[str, JsonText, JsonText | None]:
    """The name, the arguments, and what else is needed to write them again."""
    inner = dict(raw)
    name = take_text(inner, "name")
    arguments, form = arguments_in(inner, CALL_KINDS[kind], free=kind == "custom")
    return name, arguments, pack(inner, missing=missing(raw, "name"), arguments=form) or None


def function_out(call: ToolCall, kind: str = "function") -> JsonObject:
    """What stands inside an entry, and alone as `function_call`."""
    inner, shape = unpack(cast(str, unpack(call.extra)[1].get("inner", "")))
    arguments = arguments_out(CALL_KINDS[kind], call.arguments, shape.get("arguments"), free=kind == "custom")
    return settle({"name": call.name, **arguments}, inner, shape)


def is_legacy(call: ToolCall) -> bool:
    """Whether it came as `function_call`."""
    return bool(unpack(call.extra)[1].get("legacy"))


def legacy_id(name: str) -> CallId:
    """Before ids existed a result named its function."""
    return CallId(f"function:{name}")
