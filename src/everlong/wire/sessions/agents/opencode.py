"""OpenCode: a session as `opencode export` writes it.

    {"info": {"id", "title", "directory", "time": {"created", "updated"}},
     "messages": [{"info": {"id", "role", "time", "modelID"}, "parts": [
        {"type": "text"|"reasoning", "text"},
        {"type": "tool", "callID", "tool", "state": {"status": "completed"|"error"|…, "input", "output"|"error"}},
        {"type": "file", "filename", "mime", "url"}, {"type": "step-start"|"step-finish"|"patch"|…}]}]}

An answer may have several steps: each becomes a message with its calls, followed by the results.
"""

from collections.abc import Iterator, Mapping, Sequence

from everlong.core import CallId, Json, JsonObject, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult, encode
from everlong.wire.fields import dump
from everlong.wire.sessions.records import fresh_uuid, milliseconds, time_of
from everlong.wire.sessions.session import text_in
from everlong.wire.sessions.trees import (
    Node,
    TreeFormat,
    chained,
    given_arguments,
    picture,
    session_of,
    spoken,
    thoughts_of,
)

__all__ = ["NAME", "SESSION"]

NAME = "opencode"
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
#: The field of the state with the result, by the status of the call.
ENDED = {"completed": "output", "error": "error"}


def _recognises(value: JsonObject) -> bool:
    messages = value.get("messages")
    if not isinstance(value.get("info"), dict) or not isinstance(messages, list):
        return False
    return all(
        isinstance(row, dict) and isinstance(row.get("info"), dict) and isinstance(row.get("parts"), list)
        for row in messages
    )


def _object(raw: JsonObject, key: str) -> JsonObject:
    value = raw.get(key)
    return value if isinstance(value, dict) else {}


def _converse(path: Sequence[Node]) -> list[Message]:
    messages: list[Message] = []
    taken: set[str] = set()
    for _, fields in path:
        info = _object(fields, "info")
        role = ROLES.get(text_in(info.get("role")))
        if role is not None:
            node, time = text_in(info.get("id")), time_of(_object(info, "time").get("created"))
            for said, results in _steps(fields.get("parts"), taken):
                messages.append(spoken(NAME, node, role, said, time, info.get("modelID")))
                messages += [spoken(NAME, "", Role.TOOL, results, time)] if results else []
    return messages


def _steps(parts: Json, taken: set[str]) -> Iterator[tuple[list[Part], list[ToolResult]]]:
    """Yield the parts of each step of a message, and the results of its calls."""
    said: list[Part] = []
    results: list[ToolResult] = []
    for part in parts if isinstance(parts, list) else []:
        if not isinstance(part, dict):
            continue
        if part.get("type") == "step-start" and said:
            yield said, results
            said, results = [], []
        if part.get("type") == "tool":
            call, result = _call(part, taken)
            said.append(call)
            results += [result] if result is not None else []
        elif (shown := _shown(part)) is not None:
            said.append(shown)
    if said:
        yield said, results


def _shown(part: JsonObject) -> Part | None:
    text = text_in(part.get("text"))
    match part.get("type"):
        case "text":
            return Text(text) if text else None
        case "reasoning":
            return Reasoning(text) if text else None
        case "file":
            named = text_in(part.get("filename")) or text_in(part.get("url"))[:200]
            pictured = text_in(part.get("mime")).startswith("image/")
            return picture(part.get("url")) if pictured else Text(f"[file: {named}]")
        case _:
            return None


def _call(part: JsonObject, taken: set[str]) -> tuple[ToolCall, ToolResult | None]:
    """Return a call and its result. If the call's id is missing or repeated, the part's id is used."""
    state = _object(part, "state")
    names = (text_in(part.get("callID")), text_in(part.get("id")))
    own = next((name for name in names if name and name not in taken), "") or fresh_uuid(dump(part), taken)
    taken.add(own)
    name = text_in(part.get("tool"))
    call = ToolCall(CallId(own), name, dump(_object(state, "input")))
    ended = text_in(state.get("status"))
    if ended not in ENDED:
        return call, None
    said = state.get(ENDED[ended])
    text = said if isinstance(said, str) else dump(said)
    return call, ToolResult(CallId(own), (Text(text),), name=name, failed=ended == "error")


def _written(fields: JsonObject, name: str, title: str, messages: Sequence[Message]) -> JsonObject:
    results = {result.call: result for message in messages for result in message.results}
    taken: set[str] = set()
    rows: list[Json] = []
    for at, message in enumerate(messages):
        if message.role is Role.TOOL:
            continue  # results are written with their calls
        node = f"msg_{fresh_uuid(f'{at}:{encode(message)}', taken)}"
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        time: JsonObject = {"created": milliseconds(message.time)}
        info: JsonObject = {"id": node, "sessionID": name, "role": role, "time": time}
        if message.model:
            info["modelID"] = message.model
        rows.append({"info": info, "parts": list(_parts(message, results))})
    head: JsonObject = {"id": name, "title": title}
    return {"info": head | _object(fields, "info"), "messages": rows}


def _parts(message: Message, results: Mapping[CallId, ToolResult]) -> Iterator[Json]:
    thoughts = thoughts_of(message)
    if thoughts:
        yield {"type": "reasoning", "text": thoughts}
    if message.text:
        yield {"type": "text", "text": message.text}
    for call in message.calls:
        state: JsonObject = {"status": "pending", "input": given_arguments(call.arguments)}
        result = results.get(call.id)
        if result is not None:
            state |= {"status": "error", "error": result.text} if result.failed else _output(result)
        yield {"type": "tool", "callID": call.id, "tool": call.name, "state": state}


def _output(result: ToolResult) -> JsonObject:
    return {"status": "completed", "output": result.text}


def _model(raw: JsonObject) -> str:
    rows = raw.get("messages")
    infos = [_object(row, "info") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return next(filter(None, (text_in(info.get("modelID")) for info in reversed(infos))), "")


SESSION = session_of(
    TreeFormat(
        name=NAME,
        program="OpenCode",
        recognises=_recognises,
        tree_of=lambda raw: chained(raw.get("messages")),
        converse=_converse,
        written=_written,
        session_id=lambda raw: text_in(_object(raw, "info").get("id")),
        title=lambda raw: text_in(_object(raw, "info").get("title")),
        model=_model,
        began=lambda raw: time_of(_object(_object(raw, "info"), "time").get("created")),
        changed=lambda raw: time_of(_object(_object(raw, "info"), "time").get("updated")),
    )
)
