"""OpenAI Chat Completions, and the many servers that speak it.

    {"role": "assistant", "content": "…", "tool_calls": [{"id", "type": "function", "function": {…}}]}

Reads what such servers really send: content as string, blocks, null or missing; reasoning under
`reasoning_content` or `reasoning`; the old `function_call`; arguments that are an object.
"""

import re
from typing import assert_never, cast

from everlong.core.messages import (
    CallId,
    Image,
    Json,
    JsonObject,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from everlong.errors import WireError
from everlong.wire.fields import dump, load, opaque, opaque_body, pack, unpack

__all__ = ["FORMAT", "parse", "render"]

FORMAT = "openai-chat"

ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
REASONING_TEXT = ("reasoning_content", "reasoning")
REASONING_SEALED = ("reasoning_details", "thinking_blocks")  # signed forms of the same thinking
DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


def parse(raw: Json, where: str = "") -> Message:
    """One message of the list."""
    if not isinstance(raw, dict):
        raise WireError(f"a message is an object, not {type(raw).__name__}", fmt=FORMAT, where=where)
    fields = dict(raw)
    written_role = fields.pop("role", None)
    role = ROLES.get(written_role) if isinstance(written_role, str) else None
    if role is None:
        raise WireError(f"unknown role {written_role!r}", fmt=FORMAT, where=where)
    reasoning = _reasoning_in(fields) if role is Role.ASSISTANT else []
    content, content_shape = _content_in(fields)
    name = fields.pop("name", None) if isinstance(fields.get("name"), str) else None
    parts: list[Part] = [*reasoning, *content]
    if role is Role.TOOL:
        call = _result_call(fields, cast(str, written_role), cast("str | None", name))
        parts = [ToolResult(call, content, name=cast(str, name or ""))]
    elif role is Role.ASSISTANT:
        parts += _calls_in(fields)
    return Message(
        role=role,
        parts=tuple(parts),
        name="" if role is Role.TOOL else cast(str, name or ""),
        origin=FORMAT,
        extra=pack(
            fields,
            role=None if written_role == role.value else written_role,
            content=content_shape,
            name="" if name == "" else None,
        ),
    )


def render(message: Message) -> list[JsonObject]:
    """The message as it is sent: one object, or several where results share a message."""
    own = message.origin == FORMAT
    fields, shape = unpack(message.extra) if own else ({}, {})
    if message.role is not Role.TOOL:
        return [_spoken_out(message, fields, shape, own=own)]
    out = []
    for result in message.results:
        answer: JsonObject = {"role": shape.get("role", "tool")}
        if answer["role"] == "tool":
            answer["tool_call_id"] = result.call
        if result.name or shape.get("name") == "":
            answer["name"] = result.name
        out.append(answer | _content_out(result.content, shape, empty="", own=own) | fields)
    beside = tuple(part for part in message.parts if isinstance(part, Text | Image))
    if beside:
        out.append({"role": "user"} | _content_out(beside, {}, empty="", own=own))
    return out


def _spoken_out(message: Message, fields: JsonObject, shape: JsonObject, *, own: bool) -> JsonObject:
    out: JsonObject = {"role": shape.get("role", message.role.value)}
    if message.name or shape.get("name") == "":
        out["name"] = message.name
    content = tuple(part for part in message.parts if isinstance(part, Text | Image | Opaque))
    calls = message.calls
    out |= _content_out(content, shape, empty=None if message.role is Role.ASSISTANT else "", own=own)
    out |= fields
    for part in message.parts:
        if isinstance(part, Reasoning):
            out |= _reasoning_out(part, own=own)
    modern = [call for call in calls if not _hints(call, own=own).get("legacy")]
    if modern:
        out["tool_calls"] = [_call_out(call, own=own) for call in modern]
    for call in calls:
        if call not in modern:
            out["function_call"] = {"name": call.name, "arguments": call.arguments}
    return out


# --- content -----------------------------------------------------------------------------------


def _content_in(fields: JsonObject) -> tuple[tuple[ResultPart, ...], str | None]:
    """The parts of `content`, and its shape where the usual one would not give it back."""
    if "content" not in fields:
        return (), "absent"
    content = fields.pop("content")
    if content is None:
        return (), "null"
    if isinstance(content, str):
        return (Text(content),), None
    if not isinstance(content, list):
        return (opaque(content),), "bare"
    return tuple(_block_in(block) for block in content), "blocks"


def _content_out(parts: tuple[Part, ...], shape: JsonObject, *, empty: Json, own: bool) -> JsonObject:
    form = shape.get("content")
    if not parts:
        if form == "absent":
            return {}
        blank: dict[Json, Json] = {"null": None, "blocks": []}
        return {"content": blank.get(form, empty)}
    only = parts[0]
    if len(parts) == 1 and form != "blocks":
        if isinstance(only, Text) and not (own and only.extra):
            return {"content": only.text}
        if isinstance(only, Opaque) and form == "bare":
            return {"content": opaque_body(only)}
    return {"content": [_block_out(part, own=own) for part in parts]}


def _block_in(block: Json) -> ResultPart:
    if not isinstance(block, dict):
        return opaque(block)
    fields = dict(block)
    kind, text, image = fields.pop("type", None), fields.get("text"), fields.get("image_url")
    if kind == "text" and isinstance(text, str):
        del fields["text"]
        return Text(text, pack(fields))
    if kind == "image_url" and isinstance(image, dict) and isinstance(image.get("url"), str):
        del fields["image_url"]
        inner = dict(image)
        url, detail = cast(str, inner.pop("url")), inner.get("detail")
        if isinstance(detail, str) and detail:
            del inner["detail"]
        else:
            detail = ""
        extra = pack(fields, image=cast(Json, inner) if inner else None)
        data = DATA_URL.fullmatch(url)
        if data:
            return Image(data=data[2], media_type=data[1], detail=detail, extra=extra)
        return Image(url=url, detail=detail, extra=extra)
    return opaque(block)


def _block_out(part: Part, *, own: bool) -> Json:
    match part:
        case Text(text, extra):
            fields, _ = unpack(extra if own else "")
            return {"type": "text", "text": text, **fields}
        case Image(data, media_type, url, detail, extra):
            fields, shape = unpack(extra if own else "")
            inner: JsonObject = {"url": url or f"data:{media_type};base64,{data}"}
            if detail:
                inner["detail"] = detail
            return {"type": "image_url", "image_url": inner | cast(JsonObject, shape.get("image", {})), **fields}
        case Opaque():
            return opaque_body(part)
        case ToolCall() | ToolResult() | Reasoning():
            raise WireError(f"{type(part).__name__} is not content", fmt=FORMAT)
        case _:
            assert_never(part)


# --- calls and results -------------------------------------------------------------------------


def _calls_in(fields: JsonObject) -> list[Part]:
    calls: list[Part] = []
    if isinstance(fields.get("tool_calls"), list) and fields["tool_calls"]:
        calls = [_call_in(call) for call in cast("list[Json]", fields.pop("tool_calls"))]
    old = fields.get("function_call")
    if isinstance(old, dict) and isinstance(old.get("name"), str) and isinstance(old.get("arguments"), str):
        name, arguments = cast(str, old["name"]), cast(str, old["arguments"])
        del fields["function_call"]
        calls.append(ToolCall(_legacy_id(name), name, arguments, pack({}, legacy=True)))
    return calls


def _call_in(raw: Json) -> Part:
    if not isinstance(raw, dict):
        return opaque(raw)
    fields = dict(raw)
    call, kind = fields.pop("id", None), fields.pop("type", None)
    function = fields.pop("function", None)
    if not isinstance(call, str) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return opaque(raw)
    inner = dict(function)
    name, arguments = cast(str, inner.pop("name")), inner.pop("arguments", None)
    written = arguments if isinstance(arguments, str) else dump({} if arguments is None else arguments)
    form = None if isinstance(arguments, str) else "absent" if "arguments" not in function else "value"
    extra = pack(
        fields,
        type=None if kind == "function" else (kind if kind is not None else "absent"),
        function=cast(Json, inner) if inner else None,
        arguments=form,
    )
    return ToolCall(CallId(call), name, written, extra)


def _call_out(call: ToolCall, *, own: bool) -> Json:
    fields, shape = unpack(call.extra if own else "")
    function: JsonObject = {"name": call.name}
    form = shape.get("arguments")
    if form == "value":
        function["arguments"] = load(call.arguments)
    elif form != "absent":
        function["arguments"] = call.arguments
    function |= cast(JsonObject, shape.get("function", {}))
    kind = shape.get("type", "function")
    return {"id": call.id, **({} if kind == "absent" else {"type": kind}), "function": function, **fields}


def _result_call(fields: JsonObject, written_role: str, name: str | None) -> CallId:
    call = fields.get("tool_call_id")
    if isinstance(call, str):
        del fields["tool_call_id"]
        return CallId(call)
    return _legacy_id(name or "") if written_role == "function" else CallId("")


def _legacy_id(name: str) -> CallId:
    """Before ids existed a result named its function."""
    return CallId(f"function:{name}")


# --- reasoning ---------------------------------------------------------------------------------


def _reasoning_in(fields: JsonObject) -> list[Part]:
    found: list[Part] = []
    for field in REASONING_TEXT:
        text = fields.get(field)
        if isinstance(text, str) and not found:
            del fields[field]
            found.append(Reasoning(text, extra="" if field == REASONING_TEXT[0] else pack({}, field=field)))
    for field in REASONING_SEALED:
        sealed = fields.get(field)
        if sealed:
            del fields[field]
            found.append(Reasoning("", signature=dump(sealed), extra=pack({}, field=field)))
    return found


def _reasoning_out(part: Reasoning, *, own: bool) -> JsonObject:
    field = _hints(part, own=own).get("field", REASONING_TEXT[0])
    if field in REASONING_SEALED:
        return {cast(str, field): load(part.signature)}
    return {cast(str, field): part.text}


def _hints(part: ToolCall | Reasoning, *, own: bool) -> JsonObject:
    return unpack(part.extra if own else "")[1]
