"""Calls and their results as items of OpenAI Responses.

    {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{…}", "id": "fc_1"}
    {"type": "function_call_output", "call_id": "call_1", "output": "…"}

Every kind of call that the client answers is a row of `KINDS`; calls that the provider runs itself
(a web search) bring their result along and are no calls here.
"""

from dataclasses import dataclass
from typing import cast

from everlong.core import CallId, JsonObject, ToolCall, ToolResult
from everlong.wire.fields import pack, unpack
from everlong.wire.openai.responses_blocks import input_in, input_out
from everlong.wire.openai.shapes import arguments_in, arguments_out, content_in, content_out, missing, settle, take_text

__all__ = ["CALLS", "FUNCTION", "OUTPUTS", "CallKind", "call_in", "call_out", "kind_of", "result_in", "result_out"]


@dataclass(frozen=True, slots=True)
class CallKind:
    """A kind of call, where it keeps what it is called with, and its name if the item gives none."""

    call: str
    payload: str
    name: str = ""

    @property
    def output(self) -> str:
        """The kind of item that answers it."""
        return f"{self.call}_output"


FUNCTION = CallKind("function_call", "arguments")
CUSTOM = CallKind("custom_tool_call", "input")
KINDS = (
    FUNCTION,
    CUSTOM,
    CallKind("apply_patch_call", "operation", "apply_patch"),
    CallKind("computer_call", "action", "computer"),
    CallKind("local_shell_call", "action", "local_shell"),
    CallKind("shell_call", "action", "shell"),
)
CALLS = {kind.call: kind for kind in KINDS}
OUTPUTS = {kind.output: kind for kind in KINDS}


def call_in(item: JsonObject, kind: CallKind) -> ToolCall:
    """A call."""
    fields = dict(item)
    del fields["type"]
    call = CallId(take_text(fields, "call_id"))
    name = kind.name or take_text(fields, "name")
    arguments, form = arguments_in(fields, kind.payload, free=kind is CUSTOM)
    written = ("call_id",) if kind.name else ("call_id", "name")
    absent = missing(item, *written)
    hint = None if kind is FUNCTION else kind.call
    return ToolCall(call, name, arguments, pack(fields, kind=hint, arguments=form, missing=absent))


def call_out(call: ToolCall) -> JsonObject:
    """The item again."""
    fields, shape = unpack(call.extra)
    kind = kind_of(call)
    out: JsonObject = {"type": kind.call, "call_id": call.id}
    if not kind.name:
        out["name"] = call.name
    out |= arguments_out(kind.payload, call.arguments, shape.get("arguments"), free=kind is CUSTOM)
    return settle(out, fields, shape)


def kind_of(call: ToolCall) -> CallKind:
    """The kind of item the call came as; a function's for one that came in another format."""
    return CALLS[cast(str, unpack(call.extra)[1].get("kind", FUNCTION.call))]


def result_in(item: JsonObject) -> ToolResult:
    """An item that answers a call."""
    fields = dict(item)
    kind = OUTPUTS[cast(str, fields.pop("type"))]
    content, form = content_in(fields, "output", input_in)
    call = take_text(fields, "call_id")
    named = None
    if not call and kind.call == "local_shell_call":  # its output names the call under `id`
        call = take_text(fields, "id")
        named = "id" if call else None
    shape: JsonObject = {
        "kind": None if kind is FUNCTION else kind.call,
        "content": None if form == "string" else form,
        "named": named,
        "missing": missing(item, "call_id"),
    }
    return ToolResult(CallId(call), tuple(content), extra=pack(fields, **shape))


def result_out(result: ToolResult, answered: CallKind = FUNCTION) -> JsonObject:
    """The item again; a result of another format is written for the kind of call it answers."""
    fields, shape = unpack(result.extra)
    kind = CALLS[cast(str, shape.get("kind", answered.call))]
    out: JsonObject = {"type": kind.output, cast(str, shape.get("named", "call_id")): result.call}
    return settle(out | content_out("output", result.content, shape.get("content"), input_out), fields, shape)
