"""pydantic-ai: `ModelRequest` and `ModelResponse`, which consist of parts.

A request becomes several messages: one for each system prompt, user prompt and tool result. A response is one message.
pydantic-ai's own adapter converts its objects to JSON and back, so unknown parts are passed through. A part of a
request that the model does not see (a baseline of instructions, a change of tools) stays with the message before it.
The fields of an object are in the `extra` of its first message.
"""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import TypeAlias, cast

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from everlong.core import (
    CallId,
    History,
    Image,
    Json,
    JsonObject,
    JsonText,
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
from everlong.wire.fields import dump, load, pack, unpack
from everlong.wire.libraries.library import Library, Unit

__all__ = ["LIBRARY"]

NAME = "pydantic_ai"

#: Outcomes of results that the framework reports to the model as failures.
FAILURES = ("failed", "denied", "interrupted", "retried")
#: Contents that are sent to the model as files, also inside tool results.
FILES = ("image-url", "audio-url", "document-url", "video-url", "binary", "uploaded-file")

Block: TypeAlias = Text | Image | Opaque
#: What a part of a request becomes: role, `extra` and parts of a message.
Said: TypeAlias = tuple[Role, JsonText, tuple[Part, ...]]


def read(items: Sequence[ModelMessage]) -> list[Unit[ModelMessage]]:
    """Return each object with its messages."""
    # Values in an application's metadata that are not JSON become text.
    bodies = cast(
        list[JsonObject], ModelMessagesTypeAdapter.dump_python(list(items), mode="json", fallback=str, warnings="none")
    )
    return [Unit((item,), _messages(body, at)) for at, (item, body) in enumerate(zip(items, bodies, strict=True))]


def write(messages: Sequence[Message]) -> list[ModelMessage]:
    """Return objects for these messages. Messages that came from one object become one object again."""
    return ModelMessagesTypeAdapter.validate_json(dump(cast(Json, list(_bodies(messages)))))


LIBRARY: Library[ModelMessage] = Library(name=NAME, packages=("pydantic_ai",), read=read, write=write)


# Reading


def _messages(body: JsonObject, place: int) -> History:
    parts = cast(list[JsonObject], body.pop("parts"))
    if body["kind"] == "response":
        return (Message(Role.ASSISTANT, tuple(map(_answered, parts)), origin=NAME, extra=pack(_without_nulls(body))),)
    groups: list[Said] = []
    first: tuple[Part, ...] = ()  # parts that the model does not see, before the first that it does
    for part in parts:
        kind = cast(str, part["part_kind"])
        if kind in REQUEST_PARTS:
            groups.append(REQUEST_PARTS[kind](part))
        elif groups:
            role, extra, before = groups[-1]
            groups[-1] = (role, extra, (*before, Opaque(kind, dump(part))))
        else:
            first = (*first, Opaque(kind, dump(part)))
    if not groups:
        groups.append(_wordless(body, first))
    elif first:
        role, extra, after = groups[0]
        fields, shape = unpack(extra)
        groups[0] = (role, pack(fields, **shape, before=len(first)), (*first, *after))
    if place == 0 and parts and (instructions := _instructions(body)):
        # Every request repeats the instructions, but they are sent once: they count at the beginning.
        groups.insert(0, instructions)
    return tuple(
        Message(role, said, origin=NAME, extra=_placed(extra, at, body))
        for at, (role, extra, said) in enumerate(groups)
    )


def _wordless(body: JsonObject, silent: tuple[Part, ...]) -> Said:
    """Return a request without content; its instructions, if any, are all that the model reads of it."""
    said = None if silent else _instructions(body)
    return said or (Role.USER, pack({}, kind="none"), silent)


def _instructions(body: JsonObject) -> Said | None:
    instructions = body.get("instructions")
    if not isinstance(instructions, str) or not instructions:
        return None
    del body["instructions"]
    return Role.SYSTEM, pack({}, kind="instructions"), (Text(instructions),)


def _placed(extra: JsonText, at: int, body: JsonObject) -> JsonText:
    """Return the `extra` of a part with its place in the object; the first one also has the object's fields."""
    fields, shape = unpack(extra)
    return pack(fields, **shape, at=at, of=_without_nulls(body) if at == 0 else None)


def _without_nulls(body: JsonObject) -> JsonObject:
    """Return the fields that are not null; null means absent."""
    return {key: value for key, value in body.items() if value is not None}


def _rest(part: JsonObject, *taken: str) -> JsonObject:
    return {key: value for key, value in part.items() if value is not None and key not in (*taken, "part_kind")}


def _system(part: JsonObject) -> Said:
    return Role.SYSTEM, pack(_rest(part, "content"), kind="system-prompt"), (Text(cast(str, part["content"])),)


def _user(part: JsonObject) -> Said:
    content = part["content"]
    blocks = [content] if isinstance(content, str) else cast(list[Json], content)
    shape = "text" if isinstance(content, str) else "list"
    return (
        Role.USER,
        pack(_rest(part, "content"), kind="user-prompt", content=shape),
        tuple(_block(block) for block in blocks),
    )


def _result(part: JsonObject) -> Said:
    content, form = _returned(part["content"])
    kind = cast(str, part["part_kind"])
    result = ToolResult(
        CallId(cast(str, part["tool_call_id"])),
        content,
        name=cast(str, part["tool_name"]),
        failed=kind == "retry-prompt" or part.get("outcome") in FAILURES,
        extra=pack(_rest(part, "content", "tool_call_id", "tool_name"), content=form),
    )
    return Role.TOOL, pack({}, kind=kind), (result,)


def _retry(part: JsonObject) -> Said:
    """Read a request to try again: the result of a call, or a user message."""
    if part.get("tool_name") is not None:
        return _result(part)
    content = part["content"]
    form = None if isinstance(content, str) else "json"
    text = content if isinstance(content, str) else dump(content)
    kind = cast(str, part["part_kind"])
    return Role.USER, pack(_rest(part, "content"), kind=kind, content=form), (Text(text),)


REQUEST_PARTS: dict[str, Callable[[JsonObject], Said]] = {
    "system-prompt": _system,
    "user-prompt": _user,
    "tool-return": _result,
    "retry-prompt": _retry,
    "retry-feedback": _retry,
}


def _block(block: Json) -> Block:
    """Read a piece of the user's content."""
    if isinstance(block, str):
        return Text(block)
    fields = cast(JsonObject, block)
    kind = cast(str, fields["kind"])
    text = fields.get("content")
    if isinstance(text, str):
        # The value that a text came from must be dropped if the text is changed.
        mark = _digest(text) if "value" in fields else None
        return Text(text, pack(_without_nulls({key: fields[key] for key in fields if key != "content"}), words=mark))
    return _picture(fields) or Opaque(kind, dump(fields))


def _picture(fields: JsonObject) -> Image | None:
    """Read an image. All other fields are kept, because a result's files are identified by a digest of all."""
    vendor = fields.get("vendor_metadata")
    detail = vendor.get("detail") if isinstance(vendor, dict) else None
    level = detail if isinstance(detail, str) else ""
    match fields:
        case {"kind": "image-url", "url": str(url), **rest} if url:
            return Image(url=url, detail=level, extra=pack(rest))
        case {"kind": "binary", "data": str(data), "media_type": str(media_type), **rest}:
            if media_type.startswith("image/"):
                return Image(data, media_type, detail=level, extra=pack(rest))
    return None


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _returned(content: Json) -> tuple[tuple[ResultPart, ...], str | None]:
    """Return a tool's result as the model reads it, and the form for writing it again."""
    if isinstance(content, str):
        return (Text(content),), None
    if not _holds_file(content):
        return (Text(dump(content)),), "json"
    if isinstance(content, list):
        return tuple(_returned_block(block) for block in content), "list"
    return (_returned_block(content),), "one"


def _returned_block(block: Json) -> ResultPart:
    if isinstance(block, str):
        return Text(block)
    if not _holds_file(block):
        return Text(dump(block), pack({}, form="json"))
    fields = block if isinstance(block, dict) else {}
    return _picture(fields) or Opaque(cast(str, fields.get("kind", "json")), dump(block))


def _holds_file(content: Json) -> bool:
    if isinstance(content, list):
        return any(map(_holds_file, content))
    if isinstance(content, dict):
        return content.get("kind") in FILES or any(map(_holds_file, content.values()))
    return False


def _answered(part: JsonObject) -> Part:
    """Read a part of a response."""
    match part["part_kind"]:
        case "text":
            return Text(cast(str, part["content"]), pack(_rest(part, "content")))
        case "thinking":
            signature = cast(str, part.get("signature") or "")
            return Reasoning(cast(str, part["content"]), signature, pack(_rest(part, "content", "signature")))
        case "tool-call":
            arguments, form = part.get("args"), None
            if not isinstance(arguments, str):
                form = "none" if arguments is None else "object"
                arguments = "{}" if arguments is None else dump(arguments)
            call, name = cast(str, part["tool_call_id"]), cast(str, part["tool_name"])
            extra = pack(_rest(part, "args", "tool_call_id", "tool_name"), args=form)
            return ToolCall(CallId(call), name, arguments, extra)
        case "file" if picture := _picture(cast(JsonObject, part["content"])):
            return Image(
                picture.data,
                picture.media_type,
                detail=picture.detail,
                extra=pack(_rest(part, "content"), file=picture.extra),
            )
        case kind:
            return Opaque(cast(str, kind), dump(part))


# Writing


def _bodies(messages: Sequence[Message]) -> Iterator[JsonObject]:
    """Yield the JSON of each object, in order."""
    names = {call.id: call.name for message in messages for call in message.calls}
    request: JsonObject | None = None
    place = 0
    for message in messages:
        if message.role is Role.ASSISTANT:
            if request is not None:
                yield request
                request = None
            yield _response(message)
            continue
        fields, shape = unpack(message.extra if message.origin == NAME else "")
        at = cast(int, shape.get("at", place + 1))
        if request is not None and at <= place:
            yield request
            request = None
        if request is None:
            request = {"parts": [], **cast(JsonObject, shape.get("of", {})), "kind": "request"}
        place = at
        _say(request, message, fields, shape, names)
    if request is not None:
        yield request


def _say(
    request: JsonObject, message: Message, fields: JsonObject, shape: JsonObject, names: dict[CallId, str]
) -> None:
    """Add a message to the parts of a request, with its hidden parts where they were."""
    parts = cast(list[Json], request["parts"])
    kind = shape.get("kind")
    if kind == "instructions":
        request["instructions"] = message.text
        return
    silent = [load(part.body) for part in message.parts if isinstance(part, Opaque) and _is_request_part(part)]
    words = [part for part in message.parts if not (isinstance(part, Opaque) and _is_request_part(part))]
    before = cast(int, shape.get("before", 0))
    parts.extend(silent[:before])
    parts.extend(_return(part, message, kind, names) for part in words if isinstance(part, ToolResult))
    said: list[Part] = [part for part in words if not isinstance(part, ToolResult)]
    if said or kind == "user-prompt":
        parts.append(_prompt(message, said, fields, shape))
    parts.extend(silent[before:])


def _is_request_part(part: Opaque) -> bool:
    body = load(part.body)
    return isinstance(body, dict) and "part_kind" in body


def _prompt(message: Message, words: list[Part], fields: JsonObject, shape: JsonObject) -> JsonObject:
    own = message.origin == NAME
    text = "\n".join(part.text for part in words if isinstance(part, Text))
    kind = cast(str, shape.get("kind", "system-prompt" if message.role is Role.SYSTEM else "user-prompt"))
    if kind != "user-prompt":
        said: Json = _parsed(text) if shape.get("content") == "json" else text
        return {**fields, "content": said, "part_kind": kind}
    blocks = [block for part in words if (block := _block_out(part, own)) is not None]
    one = len(blocks) == 1 and isinstance(blocks[0], str) and shape.get("content", "text") == "text"
    return {**fields, "content": blocks[0] if one else cast(Json, blocks), "part_kind": kind}


def _return(result: ToolResult, message: Message, kind: Json, names: dict[CallId, str]) -> JsonObject:
    own = message.origin == NAME
    fields, shape = unpack(result.extra if own else "")
    body: JsonObject = {
        **fields,
        "tool_name": result.name or names.get(result.call, ""),
        "tool_call_id": result.call,
        "content": _content(result, shape.get("content"), own),
        "part_kind": kind if kind == "retry-prompt" else "tool-return",
    }
    if result.failed and not fields:
        body["outcome"] = "failed"
    return body


def _content(result: ToolResult, form: Json, own: bool) -> Json:
    if form == "json":
        return _parsed(result.text)
    blocks = [block for part in result.content if (block := _block_out(part, own)) is not None]
    if all(isinstance(block, str) for block in blocks):
        return "\n".join(cast(list[str], blocks))
    return blocks[0] if form == "one" and len(blocks) == 1 else cast(Json, blocks)


def _parsed(text: str) -> Json:
    """Return the value in a JSON text; the text itself if it was shortened."""
    try:
        return load(text)
    except (ValueError, RecursionError):
        return text


def _block_out(part: Part, own: bool) -> Json:
    """Write a piece of content; None for what only another library or a provider could read."""
    fields, shape = unpack(part.extra if own and isinstance(part, Text | Image) else "")
    match part:
        case Text(text):
            if shape.get("form") == "json":
                return _parsed(text)
            if "words" in shape and shape["words"] != _digest(text):
                return text
            return {**fields, "content": text} if fields.get("kind") else text
        case Image():
            return _picture_out(part, fields)
        case Opaque(_, body) if own:
            return load(body)
    return None


def _picture_out(image: Image, fields: JsonObject) -> JsonObject:
    vendor: JsonObject = {"vendor_metadata": {"detail": image.detail}} if image.detail else {}
    if image.url:
        return {**vendor, **fields, "kind": "image-url", "url": image.url}
    return {**vendor, **fields, "kind": "binary", "data": image.data, "media_type": image.media_type or "image/png"}


def _response(message: Message) -> JsonObject:
    own = message.origin == NAME
    fields = unpack(message.extra)[0] if own else {}
    parts = [body for part in message.parts if (body := _answer(part, own)) is not None]
    return {**fields, "parts": cast(Json, parts), "kind": "response"}


def _answer(part: Part, own: bool) -> JsonObject | None:
    fields, shape = unpack(part.extra if own and not isinstance(part, Opaque) else "")
    match part:
        case Text(text):
            return {**fields, "content": text, "part_kind": "text"}
        case Reasoning(text, signature):
            return {**fields, "content": text, "signature": signature or None, "part_kind": "thinking"}
        case ToolCall(call, name, arguments):
            form = shape.get("args")
            args: Json = (
                _parsed(arguments) if form == "object" else None if (form, arguments) == ("none", "{}") else arguments
            )
            return {**fields, "tool_name": name, "tool_call_id": call, "args": args, "part_kind": "tool-call"}
        case Image():
            inner = unpack(cast(str, shape.get("file", "")))[0]
            return {**fields, "content": _picture_out(part, inner), "part_kind": "file"}
        case Opaque(_, body):
            return cast(JsonObject, load(body)) if own else None
    return None
