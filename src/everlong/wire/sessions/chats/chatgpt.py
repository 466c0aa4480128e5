"""ChatGPT: a conversation of the data export (`conversations.json` is a list of them).

    {"id", "title", "create_time", "current_node", "mapping": {"<id>": {"id", "parent", "children", "message": {
        "id", "author": {"role", "name"}, "recipient": "all", "content": {"content_type", "parts": […]}, …}}}}

A call is a message to a tool (`recipient` is its name); the tool's messages right after it are its result. Thinking is
in separate messages; here it belongs to the answer that follows. Images are separate files, so they are only named.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from everlong.core import CallId, Json, JsonObject, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult, encode
from everlong.wire.sessions.records import fresh_uuid, milliseconds
from everlong.wire.sessions.session import text_in
from everlong.wire.sessions.trees import Node, Tree, TreeFormat, call_arguments, seconds, session_of, spoken

__all__ = ["NAME", "SESSION"]

NAME = "chatgpt"
ROLES = {role.value: role for role in Role}
EVERYBODY = ("", "all")  # recipients of a message that calls no tool
UNSAID = ("reasoning_recap", "model_editable_context")  # kinds of content that are not part of the conversation


def _recognises(value: JsonObject) -> bool:
    mapping = value.get("mapping")
    if not isinstance(mapping, dict) or ("current_node" not in value and "title" not in value):
        return False
    first = next(iter(mapping.values()), {"message": None})
    return isinstance(first, dict) and ("message" in first or "children" in first)


def _tree_of(raw: JsonObject) -> Tree:
    mapping = raw.get("mapping")
    nodes = (
        {name: node for name, node in mapping.items() if isinstance(node, dict)} if isinstance(mapping, dict) else {}
    )
    parents = {name: text_in(node.get("parent")) for name, node in nodes.items()}
    return Tree(nodes, parents, text_in(raw.get("current_node")))


# --- reading -------------------------------------------------------------------------------------


def _converse(path: Sequence[Node]) -> list[Message]:
    """Return the messages of a path: thinking with the answer it led to, results after their calls."""
    messages: list[Message] = []
    thinking: list[Part] = []
    call: ToolCall | None = None
    for node, fields in path:
        said = fields.get("message")
        if not isinstance(said, dict):
            continue
        role, tool = _author(said)
        parts = list(_parts(said))
        if role is Role.TOOL:
            words = tuple(part for part in parts if isinstance(part, Text))
            if call is not None:
                _answer(messages, node, call, tool, words)
            continue
        if role is None or (role is Role.SYSTEM and messages):
            continue
        call = None
        if role is Role.ASSISTANT:
            thinking += [part for part in parts if isinstance(part, Reasoning)]
            parts = [part for part in parts if not isinstance(part, Reasoning)]
            recipient = text_in(said.get("recipient"))
            if recipient not in EVERYBODY:
                call = ToolCall(CallId(node), recipient, call_arguments(_words(parts)))
                parts = [call]
            if not parts:
                continue
            parts, thinking = [*thinking, *parts], []
        messages.append(spoken(NAME, node, role, parts, seconds(said.get("create_time")), _slug(said)))
    return messages


def _answer(messages: list[Message], node: str, call: ToolCall, tool: str, words: tuple[Text, ...]) -> None:
    """Add the result of a call; further messages of the tool belong to the same result."""
    last = messages[-1]
    if last.role is Role.TOOL and last.results[0].call == call.id:
        result = last.results[0]
        grown = ToolResult(result.call, (*result.content, *words), name=result.name)
        messages[-1] = last.with_parts((grown,))
    else:
        result = ToolResult(call.id, words or (Text(""),), name=tool or call.name)
        messages.append(spoken(NAME, node, Role.TOOL, (result,)))


def _author(said: JsonObject) -> tuple[Role | None, str]:
    author = said.get("author")
    fields = author if isinstance(author, dict) else {}
    return ROLES.get(text_in(fields.get("role"))), text_in(fields.get("name"))


def _parts(said: JsonObject) -> Iterator[Part]:
    content = said.get("content")
    fields = content if isinstance(content, dict) else {}
    kind = text_in(fields.get("content_type"))
    if kind in UNSAID:
        return
    if kind == "thoughts":
        yield from _thoughts(fields)
        return
    listed = fields.get("parts")
    for part in listed if isinstance(listed, list) else []:
        if (text := _part_text(part)).strip():
            yield Text(text)
    for key in ("text", "result", "user_profile", "user_instructions"):
        if text_in(fields.get(key)).strip():
            yield Text(text_in(fields.get(key)))
    metadata = said.get("metadata")
    attached = metadata.get("attachments") if isinstance(metadata, dict) else None
    for file in attached if isinstance(attached, list) else []:
        if isinstance(file, dict) and text_in(file.get("name")):
            yield Text(f"[file: {text_in(file.get('name'))}]")


def _thoughts(fields: JsonObject) -> Iterator[Part]:
    listed = fields.get("thoughts")
    for thought in listed if isinstance(listed, list) else []:
        if isinstance(thought, dict):
            text = "\n".join(filter(None, (text_in(thought.get("summary")), text_in(thought.get("content")))))
            if text:
                yield Reasoning(text)


def _part_text(part: Json) -> str:
    match part:
        case str():
            return part
        case {"text": str(text)}:
            return text
        case {"asset_pointer": str(asset)}:
            return f"[image: {asset[:200]}]"
        case _:
            return ""


def _words(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _slug(said: JsonObject) -> str:
    metadata = said.get("metadata")
    return text_in(metadata.get("model_slug")) if isinstance(metadata, dict) else ""


def _model(raw: JsonObject) -> str:
    tree = _tree_of(raw)
    for _, node in reversed(tree.path(tree.open_leaf)):
        said = node.get("message")
        if isinstance(said, dict) and (model := _slug(said)):
            return model
    return text_in(raw.get("default_model_slug"))


# --- writing -------------------------------------------------------------------------------------


def _written(fields: JsonObject, name: str, title: str, messages: Sequence[Message]) -> JsonObject:
    root = fresh_uuid(f"{name}:root", set())
    mapping: dict[str, JsonObject] = {root: {"id": root, "message": None, "parent": None, "children": []}}
    taken = {root}
    before = root
    results = {str(result.call): result for message in messages for result in message.results}
    for at, message in enumerate(messages):
        for wanted, said in _nodes(message, results):
            node = wanted if wanted and wanted not in taken else fresh_uuid(f"{at}:{encode(message)}", taken)
            taken.add(node)
            mapping[node] = {"id": node, "message": said | {"id": node}, "parent": before, "children": []}
            cast("list[Json]", mapping[before]["children"]).append(node)
            before = node
    whole = {"id": name, "conversation_id": name, "title": title} | fields
    return whole | {"mapping": cast(Json, mapping), "current_node": before}


def _nodes(message: Message, results: Mapping[str, ToolResult]) -> Iterator[tuple[str, JsonObject]]:
    """Yield ChatGPT's messages for one of ours: thinking, text, each call (with its id) followed by its result."""
    time: Json = milliseconds(message.time) / 1_000 if message.time else None
    shared: JsonObject = {"create_time": time, "status": "finished_successfully", "metadata": {}}
    who = message.role.value
    thoughts: list[Json] = [
        {"summary": "", "content": part.text} for part in message.parts if isinstance(part, Reasoning)
    ]
    if thoughts:
        yield "", shared | _said(who, {"content_type": "thoughts", "thoughts": thoughts})
    words: list[Json] = [part.text for part in message.parts if isinstance(part, Text)]
    if words and message.role is not Role.TOOL:
        yield "", shared | _said(who, {"content_type": "text", "parts": words})
    for call in message.calls:
        code: JsonObject = {"content_type": "code", "text": call.arguments}
        yield call.id, shared | _said(who, code, recipient=call.name or "tool")
        if call.id in results:
            answer: JsonObject = {"content_type": "text", "parts": [results[call.id].text]}
            yield "", shared | _said("tool", answer, name=call.name)


def _said(role: str, content: JsonObject, *, recipient: str = "all", name: str | None = None) -> JsonObject:
    return {"author": {"role": role, "name": name, "metadata": {}}, "content": content, "recipient": recipient}


SESSION = session_of(
    TreeFormat(
        name=NAME,
        program="ChatGPT",
        recognises=_recognises,
        tree_of=_tree_of,
        converse=_converse,
        written=_written,
        session_id=lambda raw: text_in(raw.get("conversation_id")) or text_in(raw.get("id")),
        title=lambda raw: text_in(raw.get("title")),
        model=_model,
        began=lambda raw: seconds(raw.get("create_time")),
        changed=lambda raw: seconds(raw.get("update_time")),
        put_away=lambda raw: raw.get("is_archived") is True,
    )
)
