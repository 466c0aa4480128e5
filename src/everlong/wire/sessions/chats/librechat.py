"""LibreChat: the export of a conversation.

    {"conversationId", "title", "endpoint", "options": {"model"}, "recursive", "messages": [{"messageId",
        "parentMessageId", "isCreatedByUser", "sender", "text", "createdAt", "content": [{"type": "text" | "think" |
        "tool_call", …}], "children": […]}]}

Messages name their parent, or are nested as `children`; the newest message ends the branch that was open.
"""

from collections.abc import Iterator, Sequence
from typing import cast

from everlong.core import CallId, Json, JsonObject, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult, encode
from everlong.wire.fields import dump
from everlong.wire.sessions.records import fresh_uuid, stamp, time_of
from everlong.wire.sessions.session import text_in
from everlong.wire.sessions.trees import Node, Tree, TreeFormat, call_arguments, session_of, spoken

__all__ = ["NAME", "SESSION"]

NAME = "librechat"
NO_PARENT = "00000000-0000-0000-0000-000000000000"


def _recognises(value: JsonObject) -> bool:
    return "conversationId" in value and (
        isinstance(value.get("messages"), list) or isinstance(value.get("messagesTree"), list)
    )


def _tree_of(raw: JsonObject) -> Tree:
    nodes: dict[str, JsonObject] = {}
    parents: dict[str, str] = {}
    listed = raw.get("messages") if isinstance(raw.get("messages"), list) else raw.get("messagesTree")
    waiting: list[tuple[Json, str]] = [(row, "") for row in reversed(cast("list[Json]", listed or []))]
    while waiting:
        row, above = waiting.pop()
        if not isinstance(row, dict):
            continue
        name = text_in(row.get("messageId")) or f"message-{len(nodes)}"
        parent = text_in(row.get("parentMessageId"))
        nodes[name] = row
        parents[name] = above or ("" if parent == NO_PARENT else parent)
        children = row.get("children")
        waiting += [(child, name) for child in reversed(children if isinstance(children, list) else [])]
    return Tree(nodes, parents, "")


def _converse(path: Sequence[Node]) -> list[Message]:
    messages: list[Message] = []
    for node, fields in path:
        role = Role.USER if fields.get("isCreatedByUser") is True else Role.ASSISTANT
        if text_in(fields.get("sender")).lower() == "system":
            role = Role.SYSTEM
        parts = tuple(_parts(fields))
        if not parts or (role is Role.SYSTEM and messages):
            continue
        time = time_of(fields.get("createdAt"))
        said: list[Part] = []
        for part in parts:
            if isinstance(part, ToolResult):
                messages.append(spoken(NAME, node, role, said, time, fields.get("model")))
                messages.append(spoken(NAME, "", Role.TOOL, (part,), time))
                said, node = [], ""
            else:
                said.append(part)
        if said:
            messages.append(spoken(NAME, node, role, said, time, fields.get("model")))
    return messages


def _parts(fields: JsonObject) -> Iterator[Part]:
    content = fields.get("content")
    blocks: list[Json] = content if isinstance(content, list) else []
    found = False
    for block in blocks:
        for part in _block(block) if isinstance(block, dict) else ():
            found = True
            yield part
    if not found and text_in(fields.get("text")).strip():
        yield Text(text_in(fields.get("text")))
    files = fields.get("files")
    for file in files if isinstance(files, list) else []:
        if isinstance(file, dict) and text_in(file.get("filename")):
            yield Text(f"[file: {text_in(file.get('filename'))}]")


def _block(block: JsonObject) -> Iterator[Part]:
    kind = block.get("type")
    inner = block.get(text_in(kind)) if isinstance(kind, str) else None
    words = text_in(inner) or (text_in(inner.get("value")) if isinstance(inner, dict) else "")
    if kind == "text" and words.strip():
        yield Text(words)
    elif kind == "think" and words.strip():
        yield Reasoning(words)
    elif kind == "tool_call" and isinstance(inner, dict):
        call = CallId(text_in(inner.get("id")) or "call")
        name, given = text_in(inner.get("name")), inner.get("args")
        yield ToolCall(call, name, call_arguments(given) if isinstance(given, str) else dump(given or {}))
        if "output" in inner:
            said = inner["output"]
            yield ToolResult(call, (Text(said if isinstance(said, str) else dump(said)),), name=name)


def _written(fields: JsonObject, name: str, title: str, messages: Sequence[Message]) -> JsonObject:
    rows: list[Json] = []
    taken: set[str] = set()
    before = NO_PARENT
    results = {result.call: result for message in messages for result in message.results}
    for at, message in enumerate(messages):
        if message.role is Role.TOOL:
            continue  # results are written with their calls
        node = fresh_uuid(f"{at}:{encode(message)}", taken)
        blocks: list[Json] = []
        for part in message.parts:
            match part:
                case Text(text=text):
                    blocks.append({"type": "text", "text": {"value": text}})
                case Reasoning(text=text):
                    blocks.append({"type": "think", "think": text})
                case ToolCall(id=call, name=tool, arguments=arguments):
                    output: JsonObject = {"output": results[call].text} if call in results else {}
                    call_fields: JsonObject = {"id": call, "name": tool, "args": arguments}
                    blocks.append({"type": "tool_call", "tool_call": call_fields | output})
                case _:
                    continue
        sender = {Role.USER: "User", Role.SYSTEM: "System"}.get(message.role, "Assistant")
        rows.append(
            {
                "messageId": node,
                "parentMessageId": before,
                "isCreatedByUser": message.role is Role.USER,
                "sender": sender,
                "text": message.text,
                "content": blocks,
                "createdAt": stamp(message.time),
            }
        )
        before = node
    whole: JsonObject = {"conversationId": name, "title": title, "recursive": False, **fields}
    whole.pop("messagesTree", None)
    return whole | {"messages": rows}


def _model(raw: JsonObject) -> str:
    options = raw.get("options")
    return text_in(options.get("model")) if isinstance(options, dict) else ""


SESSION = session_of(
    TreeFormat(
        name=NAME,
        program="LibreChat",
        recognises=_recognises,
        tree_of=_tree_of,
        converse=_converse,
        written=_written,
        session_id=lambda raw: text_in(raw.get("conversationId")),
        title=lambda raw: text_in(raw.get("title")),
        model=_model,
        began=lambda raw: time_of(raw.get("createdAt")),
        changed=lambda raw: time_of(raw.get("updatedAt")),
        put_away=lambda raw: raw.get("isArchived") is True,
    )
)
