"""OpenHands: the events of a conversation, in a list or one per line; older and newer forms.

    {"id": 4, "source": "agent", "action": "run", "args": {"command", "thought"}, "tool_call_metadata": {…}}
    {"id": 5, "source": "agent", "observation": "run", "content", "cause": 4}
    {"source": "user"|"agent", "action": "message", "args": {"content"}}

    {"kind": "MessageEvent", "llm_message": {"role", "content": [{"text"}]}}
    {"kind": "ActionEvent", "thought": [{"text"}], "tool_name", "tool_call_id", "tool_call": {"arguments"}}
    {"kind": "ObservationEvent"|"AgentErrorEvent", "tool_call_id", "observation": {"content": [{"text"}]}, "error"}

States, recalls and other events are not part of the conversation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from everlong.core import CallId, Json, JsonObject, Message, Part, Role, ToolCall, ToolResult
from everlong.wire.fields import dump
from everlong.wire.sessions.agents.logs import LogFormat, log_of, texts_in, words
from everlong.wire.sessions.records import stamp, time_of
from everlong.wire.sessions.session import text_in
from everlong.wire.sessions.trees import call_arguments, given_arguments

__all__ = ["NAME", "SESSION"]

NAME = "openhands"
#: Actions that are messages, not tool calls.
SPEECH = {"message": Role.USER, "system": Role.SYSTEM}
SILENT = frozenset({"change_agent_state", "recall", "null", "condensation", ""})
SAID, DID, SAW, FAILED, SYSTEM = (
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "AgentErrorEvent",
    "SystemPromptEvent",
)
NEWER = frozenset({SAID, DID, SAW, FAILED, SYSTEM})
ROLES = {role.value: role for role in (Role.USER, Role.ASSISTANT, Role.SYSTEM)}


def _recognises(first: Sequence[JsonObject]) -> bool:
    return any(text_in(row.get("kind")) in NEWER or _is_older(row) for row in first)


def _is_older(row: JsonObject) -> bool:
    acts = isinstance(row.get("action"), str) and isinstance(row.get("args"), dict)
    return "source" in row and (acts or (isinstance(row.get("observation"), str) and "content" in row))


def _object(row: JsonObject, key: str) -> JsonObject:
    value = row.get(key)
    return value if isinstance(value, dict) else {}


def _converse(rows: Sequence[JsonObject]) -> list[Message]:
    messages: list[Message] = []
    asked: set[str] = set()
    for row in rows:
        found = _newer(row, asked) if text_in(row.get("kind")) in NEWER else _older(row, asked)
        if found is None or (found.role is Role.SYSTEM and messages):
            continue
        if messages and messages[-1].calls and found.calls and not found.text:
            messages[-1] = replace(messages[-1], parts=(*messages[-1].parts, *found.parts))  # parallel calls
        else:
            messages.append(found)
    return messages


def _message(role: Role, parts: Sequence[Part], row: JsonObject) -> Message:
    return Message(role, tuple(parts), time=time_of(row.get("timestamp")), origin=NAME)


def _newer(row: JsonObject, asked: set[str]) -> Message | None:
    call = text_in(row.get("tool_call_id"))
    match row.get("kind"):
        case "MessageEvent":
            body = _object(row, "llm_message")
            role = ROLES.get(text_in(body.get("role")))
            return None if role is None else _message(role, words(texts_in(body.get("content"))), row)
        case "SystemPromptEvent":
            return _message(Role.SYSTEM, words(texts_in(row.get("system_prompt"))), row)
        case "ActionEvent" if call and call not in asked:
            asked.add(call)
            given = _object(row, "tool_call")
            arguments = text_in(given.get("arguments")) or text_in(_object(given, "function").get("arguments"))
            made = ToolCall(CallId(call), text_in(row.get("tool_name")), call_arguments(arguments or "{}"))
            return _message(Role.ASSISTANT, (*words(texts_in(row.get("thought"))), made), row)
        case "ObservationEvent" | "AgentErrorEvent" if call in asked:
            seen = row.get("observation")
            result_text = texts_in(seen.get("content")) if isinstance(seen, dict) else text_in(row.get("error"))
            failed = row.get("kind") == FAILED
            return _message(Role.TOOL, (ToolResult(CallId(call), words(result_text), failed=failed),), row)
        case _:
            return None


def _older(row: JsonObject, asked: set[str]) -> Message | None:
    action, args = text_in(row.get("action")), _object(row, "args")
    if action in SPEECH:
        spoken = Role.ASSISTANT if row.get("source") == "agent" and action == "message" else SPEECH[action]
        return _message(spoken, words(texts_in(args.get("content"))), row)
    call = _call_id(row, row.get("id"))
    if action and action not in SILENT and row.get("source") == "agent" and call not in asked:
        asked.add(call)
        thought = words(text_in(args.get("thought")))
        return _message(Role.ASSISTANT, (*thought, _older_call(row, action, args, call)), row)
    answered = _call_id(row, row.get("cause"))
    if "observation" in row and answered in asked:
        asked.discard(answered)
        result = ToolResult(CallId(answered), words(texts_in(row.get("content"))))
        return _message(Role.TOOL, (result,), row)
    return None


def _call_id(row: JsonObject, number: Json) -> str:
    """Return the id of the call that an event is or answers: the model's own, otherwise one from the event's number."""
    return text_in(_object(row, "tool_call_metadata").get("tool_call_id")) or f"event-{number}"


def _older_call(row: JsonObject, action: str, args: JsonObject, call: str) -> ToolCall:
    """Return the call as the model made it, if the event has it; otherwise the action with its arguments."""
    metadata = _object(row, "tool_call_metadata")
    name = text_in(metadata.get("function_name")) or action
    for made in _calls_of(_object(metadata, "model_response")):
        if made.get("id") == call:
            return ToolCall(CallId(call), name, call_arguments(text_in(_object(made, "function").get("arguments"))))
    return ToolCall(CallId(call), name, dump({key: value for key, value in args.items() if key != "thought"}))


def _calls_of(response: JsonObject) -> Iterator[JsonObject]:
    choices = response.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        calls = _object(choice, "message").get("tool_calls") if isinstance(choice, dict) else None
        yield from (call for call in (calls if isinstance(calls, list) else []) if isinstance(call, dict))


def _written(messages: Sequence[Message]) -> list[JsonObject]:
    rows: list[JsonObject] = []
    for message in messages:
        moment: JsonObject = {"timestamp": stamp(message.time)}
        text: Json = [{"type": "text", "text": message.text}]
        for result in message.results:
            seen: Json = [{"type": "text", "text": result.text}]
            outcome: JsonObject = {"error": result.text} if result.failed else {"observation": {"content": seen}}
            kind = FAILED if result.failed else SAW
            rows.append({"kind": kind, "source": "environment", "tool_call_id": result.call, **outcome, **moment})
        if message.role is Role.SYSTEM:
            rows.append({"kind": SYSTEM, "source": "agent", "system_prompt": {"text": message.text}, **moment})
        elif message.role is not Role.TOOL and not message.calls:
            speaker = "user" if message.role is Role.USER else "agent"
            said: JsonObject = {"role": message.role.value, "content": text}
            rows.append({"kind": SAID, "source": speaker, "llm_message": said, **moment})
        for at, call in enumerate(message.calls):
            made: JsonObject = {"id": call.id, "name": call.name, "arguments": dump(given_arguments(call.arguments))}
            thought: Json = text if at == 0 else []
            act: JsonObject = {"kind": DID, "source": "agent", "tool_name": call.name, "tool_call_id": call.id}
            rows.append({**act, "tool_call": made, "thought": thought, **moment})
    return rows


SESSION = log_of(
    LogFormat(name=NAME, program="OpenHands", recognises=_recognises, converse=_converse, written=_written)
)
