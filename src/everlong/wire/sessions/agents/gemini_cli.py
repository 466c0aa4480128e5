"""Gemini CLI: a chat as the program records it.

    {"sessionId", "projectHash", "startTime", "lastUpdated", "messages": [
        {"id", "timestamp", "type": "user", "content": text or [{"text"}]},
        {"id", "timestamp", "type": "gemini", "content", "model", "thoughts": [{"subject", "description"}],
         "toolCalls": [{"id", "name", "args", "status", "result": [{"functionResponse": {"response": {…}}}]}]},
        {"type": "info"|"warning"|"error", …}]}

The last three are the program's own messages to the user and not part of the conversation.
"""

from collections.abc import Iterator, Mapping, Sequence

from everlong.core import CallId, Json, JsonObject, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult, encode
from everlong.wire.fields import dump
from everlong.wire.sessions.records import fresh_uuid, stamp, time_of
from everlong.wire.sessions.session import text_in
from everlong.wire.sessions.trees import Node, TreeFormat, chained, given_arguments, session_of, spoken, thoughts_of

__all__ = ["NAME", "SESSION"]

NAME = "gemini-cli"
#: The types of the program's own messages to the user.
OWN_WORDS = ("info", "warning", "error")
FAILED = "error"


def _recognises(value: JsonObject) -> bool:
    return "sessionId" in value and "projectHash" in value and isinstance(value.get("messages"), list)


def _converse(path: Sequence[Node]) -> list[Message]:
    messages: list[Message] = []
    taken: set[str] = set()
    for node, fields in path:
        kind = text_in(fields.get("type"))
        if not kind or kind in OWN_WORDS:
            continue
        role = Role.USER if kind == "user" else Role.ASSISTANT
        time = time_of(fields.get("timestamp"))
        pairs = list(_calls(fields.get("toolCalls"), taken))
        parts: list[Part] = [*_thoughts(fields.get("thoughts"))]
        parts += [Text(text)] if (text := _text(fields.get("content"))) else []
        parts += [call for call, _ in pairs]
        if parts:
            messages.append(spoken(NAME, node, role, parts, time, fields.get("model")))
        results = [result for _, result in pairs if result is not None]
        if results:
            messages.append(spoken(NAME, "", Role.TOOL, results, time))
    return messages


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join(text for part in parts if isinstance(part, dict) and (text := text_in(part.get("text"))))


def _thoughts(thoughts: Json) -> Iterator[Reasoning]:
    for thought in thoughts if isinstance(thoughts, list) else []:
        if isinstance(thought, dict):
            text = "\n".join(filter(None, (text_in(thought.get("subject")), text_in(thought.get("description")))))
            if text.strip():
                yield Reasoning(text)


def _calls(calls: Json, taken: set[str]) -> Iterator[tuple[ToolCall, ToolResult | None]]:
    for call in calls if isinstance(calls, list) else []:
        if not isinstance(call, dict):
            continue
        given = text_in(call.get("id"))
        own = given if given and given not in taken else fresh_uuid(f"{len(taken)}:{dump(call)}", taken)
        taken.add(own)
        name, args = text_in(call.get("name")), call.get("args")
        asked = ToolCall(CallId(own), name, dump(args if isinstance(args, dict) else {}))
        said = _result(call.get("result"))
        failed = call.get("status") == FAILED
        yield asked, None if said is None else ToolResult(CallId(own), (Text(said),), name=name, failed=failed)


def _result(result: Json) -> str | None:
    """Return a tool's answer as text; None if there was no answer."""
    if result is None or isinstance(result, str):
        return result
    answers = []
    for part in result if isinstance(result, list) else [result]:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        answer = response.get("response") if isinstance(response, dict) else part
        if isinstance(answer, dict):
            texts = [text_in(answer.get(key)) for key in ("output", "error", "text")]
            answer = next(filter(None, texts), answer)
        answers.append(answer if isinstance(answer, str) else dump(answer))
    return "\n".join(answers)


def _written(fields: JsonObject, name: str, _title: str, messages: Sequence[Message]) -> JsonObject:
    results = {result.call: result for message in messages for result in message.results}
    taken: set[str] = set()
    rows: list[Json] = []
    for at, message in enumerate(messages):
        if message.role is Role.TOOL:
            continue  # results are written with their calls
        row: JsonObject = {"id": fresh_uuid(f"{at}:{encode(message)}", taken), "timestamp": stamp(message.time)}
        row |= {"type": "gemini" if message.role is Role.ASSISTANT else "user", "content": message.text}
        thoughts: list[Json] = [{"description": text}] if (text := thoughts_of(message)) else []
        beside: JsonObject = {"thoughts": thoughts, "toolCalls": [_call(call, results) for call in message.calls]}
        rows.append(row | {key: value for key, value in beside.items() if value})
    return {"sessionId": name, "projectHash": ""} | fields | {"messages": rows}


def _call(call: ToolCall, results: Mapping[CallId, ToolResult]) -> JsonObject:
    fields: JsonObject = {"id": call.id, "name": call.name, "args": given_arguments(call.arguments)}
    result = results.get(call.id)
    if result is None:
        return fields
    response: JsonObject = {"error" if result.failed else "output": result.text}
    answer: JsonObject = {"functionResponse": {"id": call.id, "name": call.name, "response": response}}
    return fields | {"status": FAILED if result.failed else "success", "result": [answer]}


def _model(raw: JsonObject) -> str:
    rows = raw.get("messages")
    models = [text_in(row.get("model")) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return next(filter(None, reversed(models)), "")


SESSION = session_of(
    TreeFormat(
        name=NAME,
        program="Gemini CLI",
        recognises=_recognises,
        tree_of=lambda raw: chained(raw.get("messages")),
        converse=_converse,
        written=_written,
        session_id=lambda raw: text_in(raw.get("sessionId")),
        title=lambda raw: text_in(raw.get("summary")),
        model=_model,
        began=lambda raw: time_of(raw.get("startTime")),
        changed=lambda raw: time_of(raw.get("lastUpdated")),
        folders=(".gemini/tmp",),
    )
)
