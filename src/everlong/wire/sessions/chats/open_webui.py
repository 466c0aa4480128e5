"""Open WebUI: a chat of its export, which is a list of them.

    {"id", "title", "updated_at", "archived", "chat": {"title", "models": […], "history": {"currentId",
        "messages": {"<id>": {"id", "parentId", "childrenIds", "role", "content", "timestamp", "model", "files"}}}}}

Older chats have no history: their `messages` are in order.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from everlong.core import CallId, Json, JsonObject, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult, encode
from everlong.wire.fields import dump
from everlong.wire.sessions.records import fresh_uuid, milliseconds
from everlong.wire.sessions.session import text_in
from everlong.wire.sessions.trees import Node, Tree, TreeFormat, picture, seconds, session_of, spoken, thoughts_of

__all__ = ["NAME", "SESSION"]

NAME = "open-webui"
ROLES = {role.value: role for role in Role}


def _recognises(value: JsonObject) -> bool:
    chat = value.get("chat")
    return isinstance(chat, dict) and (isinstance(chat.get("history"), dict) or isinstance(chat.get("messages"), list))


def _chat(raw: JsonObject) -> JsonObject:
    chat = raw.get("chat")
    return chat if isinstance(chat, dict) else {}


def _tree_of(raw: JsonObject) -> Tree:
    chat = _chat(raw)
    history = chat.get("history")
    known = history.get("messages") if isinstance(history, dict) else None
    if isinstance(known, dict):
        nodes = {name: node for name, node in known.items() if isinstance(node, dict)}
        parents = {name: text_in(node.get("parentId")) for name, node in nodes.items()}
        return Tree(nodes, parents, text_in(cast(JsonObject, history).get("currentId")))
    listed = chat.get("messages")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    names = [text_in(row.get("id")) or f"message-{at}" for at, row in enumerate(rows)]
    return Tree(
        dict(zip(names, rows, strict=True)), dict(zip(names, ["", *names], strict=False)), names[-1] if names else ""
    )


def _converse(path: Sequence[Node]) -> list[Message]:
    messages: list[Message] = []
    for node, fields in path:
        role = ROLES.get(text_in(fields.get("role")))
        parts = tuple(_parts(fields))
        if role is None or not parts or (role is Role.SYSTEM and messages):
            continue
        time = seconds(fields.get("timestamp"))
        results = tuple(part for part in parts if isinstance(part, ToolResult))
        rest = tuple(part for part in parts if not isinstance(part, ToolResult))
        if rest:
            messages.append(
                spoken(NAME, node, Role.ASSISTANT if role is Role.TOOL else role, rest, time, fields.get("model"))
            )
        if results:
            messages.append(spoken(NAME, "", Role.TOOL, results, time))
    return messages


def _parts(fields: JsonObject) -> Iterator[Part]:
    if text_in(fields.get("reasoning_content")):
        yield Reasoning(text_in(fields.get("reasoning_content")))
    content = fields.get("content")
    blocks: list[Json] = content if isinstance(content, list) else [content]
    for block in blocks:
        text = text_in(block) or (text_in(block.get("text")) if isinstance(block, dict) else "")
        if text.strip():
            yield Text(text)
    files = fields.get("files")
    for file in files if isinstance(files, list) else []:
        if isinstance(file, dict):
            named = text_in(file.get("name"))
            shown = (
                picture(file.get("url")) if file.get("type") == "image" else Text(f"[file: {named}]") if named else None
            )
            if shown is not None:
                yield shown
    calls = fields.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict) and text_in(call.get("id")):
            yield ToolCall(
                CallId(text_in(call["id"])), text_in(call.get("name")), text_in(call.get("arguments")) or "{}"
            )
            if "result" in call:
                result = call["result"]
                said = result if isinstance(result, str) else dump(result)
                yield ToolResult(CallId(text_in(call["id"])), (Text(said),), name=text_in(call.get("name")))


def _written(fields: JsonObject, name: str, title: str, messages: Sequence[Message]) -> JsonObject:
    nodes: dict[str, JsonObject] = {}
    taken: set[str] = set()
    before = ""
    results = {result.call: result for message in messages for result in message.results}
    for at, message in enumerate(messages):
        if message.role is Role.TOOL:
            continue  # results are written with their calls
        node = fresh_uuid(f"{at}:{encode(message)}", taken)
        said: JsonObject = {"id": node, "parentId": before or None, "childrenIds": [], "role": message.role.value}
        said |= {"content": message.text, "timestamp": milliseconds(message.time) // 1_000}
        calls: list[Json] = [_call(call, results) for call in message.calls]
        beside: JsonObject = {"reasoning_content": thoughts_of(message), "tool_calls": calls}
        said |= {key: value for key, value in beside.items() if value}
        nodes[node] = said
        if before:
            cast("list[Json]", nodes[before]["childrenIds"]).append(node)
        before = node
    history: JsonObject = {"messages": cast(Json, nodes), "currentId": before or None}
    chat = {"title": title} | _chat(fields) | {"history": history, "messages": cast(Json, list(nodes.values()))}
    return {"id": name, "title": title} | fields | {"chat": chat}


def _call(call: ToolCall, results: Mapping[CallId, ToolResult]) -> JsonObject:
    fields: JsonObject = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return fields | {"result": results[call.id].text} if call.id in results else fields


def _model(raw: JsonObject) -> str:
    models = _chat(raw).get("models")
    return next(filter(None, map(text_in, models)), "") if isinstance(models, list) else ""


SESSION = session_of(
    TreeFormat(
        name=NAME,
        program="Open WebUI",
        recognises=_recognises,
        tree_of=_tree_of,
        converse=_converse,
        written=_written,
        session_id=lambda raw: text_in(raw.get("id")) or text_in(_chat(raw).get("id")),
        title=lambda raw: text_in(raw.get("title")) or text_in(_chat(raw).get("title")),
        model=_model,
        began=lambda raw: seconds(raw.get("created_at")),
        changed=lambda raw: seconds(raw.get("updated_at")),
        put_away=lambda raw: raw.get("archived") is True,
    )
)
