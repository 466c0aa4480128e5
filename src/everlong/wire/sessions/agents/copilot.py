"""GitHub Copilot CLI: the events of a session.

    {"type": "session.start", "data": {"sessionId", …}, "id", "timestamp", "parentId"}
    {"type": "system.message"|"user.message", "data": {"content"}}
    {"type": "assistant.message", "data": {"content", "model", "reasoningText",
        "toolRequests": [{"toolCallId", "name", "arguments"}]}}
    {"type": "tool.execution_complete", "data": {"toolCallId", "success", "result": {"content"}, "error": {"message"}}}

All other events are not part of the conversation.
"""

from collections.abc import Iterator, Sequence

from everlong.core import CallId, Json, JsonObject, Message, Part, Reasoning, Role, ToolCall, ToolResult, encode
from everlong.wire.fields import dump
from everlong.wire.sessions.agents.logs import LogFormat, log_of, texts_in, words
from everlong.wire.sessions.records import fresh_uuid, stamp, time_of
from everlong.wire.sessions.session import record_text, text_in
from everlong.wire.sessions.trees import given_arguments, thoughts_of

__all__ = ["NAME", "SESSION"]

NAME = "copilot"
SYSTEM, ASKED, ANSWERED = "system.message", "user.message", "assistant.message"
STARTED, DONE = "session.start", "tool.execution_complete"
ROLES = {SYSTEM: Role.SYSTEM, ASKED: Role.USER, ANSWERED: Role.ASSISTANT}


def _recognises(first: Sequence[JsonObject]) -> bool:
    return any(row.get("type") in (STARTED, ASKED, ANSWERED) and isinstance(row.get("data"), dict) for row in first)


def _data(row: JsonObject) -> JsonObject:
    data = row.get("data")
    return data if isinstance(data, dict) else {}


def _converse(rows: Sequence[JsonObject]) -> list[Message]:
    messages: list[Message] = []
    for row in rows:
        data, time = _data(row), time_of(row.get("timestamp"))
        role = ROLES.get(text_in(row.get("type")))
        if role is not None and not (role is Role.SYSTEM and messages):
            parts = tuple(_parts(data))
            messages.append(Message(role, parts, time=time, origin=NAME, model=text_in(data.get("model"))))
        elif row.get("type") == DONE and text_in(data.get("toolCallId")):
            messages.append(Message(Role.TOOL, (_result(data),), time=time, origin=NAME))
    return messages


def _parts(data: JsonObject) -> Iterator[Part]:
    thought = text_in(data.get("reasoningText"))
    if thought:
        yield Reasoning(thought)
    yield from words(texts_in(data.get("content")))
    requests = data.get("toolRequests")
    for request in requests if isinstance(requests, list) else []:
        if isinstance(request, dict) and text_in(request.get("toolCallId")):
            given = request.get("arguments")
            arguments = dump(given if isinstance(given, dict) else {"text": texts_in(given)})
            yield ToolCall(CallId(text_in(request["toolCallId"])), text_in(request.get("name")), arguments)


def _result(data: JsonObject) -> ToolResult:
    result, error = data.get("result"), data.get("error")
    text = texts_in(result.get("content")) if isinstance(result, dict) else texts_in(result)
    if not text and isinstance(error, dict):
        text = text_in(error.get("message"))
    failed = data.get("success") is False
    return ToolResult(CallId(text_in(data["toolCallId"])), words(text), failed=failed)


def _written(messages: Sequence[Message]) -> list[JsonObject]:
    taken: set[str] = set()
    started: JsonObject = {"sessionId": fresh_uuid("".join(map(encode, messages)), taken), "version": 1}
    rows: list[JsonObject] = [{"type": STARTED, "data": started}]
    for message in messages:
        rows += [_row(DONE, _done(result), message, taken) for result in message.results]
        if message.role is not Role.TOOL:
            kind = next(kind for kind, role in ROLES.items() if role is message.role)
            rows.append(_row(kind, _said(message), message, taken))
    return rows


def _row(kind: str, data: JsonObject, message: Message, taken: set[str]) -> JsonObject:
    return {
        "type": kind,
        "data": data,
        "id": fresh_uuid(f"{len(taken)}:{dump(data)}", taken),
        "timestamp": stamp(message.time),
    }


def _said(message: Message) -> JsonObject:
    requests: list[Json] = [
        {"toolCallId": call.id, "name": call.name, "arguments": given_arguments(call.arguments)}
        for call in message.calls
    ]
    beside: JsonObject = {"toolRequests": requests, "reasoningText": thoughts_of(message), "model": message.model}
    fields: JsonObject = {"content": message.text}
    return fields | {key: value for key, value in beside.items() if value}


def _done(result: ToolResult) -> JsonObject:
    fields: JsonObject = {"toolCallId": result.call, "success": not result.failed}
    answer: JsonObject = {"error": {"message": result.text}} if result.failed else {"result": {"content": result.text}}
    return fields | answer


def _model(rows: Sequence[JsonObject]) -> str:
    return next(filter(None, (text_in(_data(row).get("model")) for row in reversed(rows))), "")


SESSION = log_of(
    LogFormat(
        name=NAME,
        program="GitHub Copilot CLI",
        recognises=_recognises,
        converse=_converse,
        written=_written,
        session_id=record_text((STARTED, "data.sessionId")),
        model=_model,
        folders=(".copilot/session-state",),
    )
)
