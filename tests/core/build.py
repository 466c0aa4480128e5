"""Short names for messages, so that a case reads as a conversation."""

from everlong.core.messages import CallId, Message, Reasoning, Role, Text, ToolCall, ToolResult


def system(text: str) -> Message:
    return Message(Role.SYSTEM, (Text(text),))


def user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def assistant(text: str, *, reasoning: str = "") -> Message:
    thought = (Reasoning(reasoning),) if reasoning else ()
    return Message(Role.ASSISTANT, (*thought, Text(text)))


def calls(*ids: str, name: str = "read_file", arguments: str = "{}") -> Message:
    return Message(Role.ASSISTANT, tuple(ToolCall(CallId(call), name, arguments) for call in ids))


def result(call: str, text: str = "done", *, name: str = "", failed: bool = False) -> Message:
    return Message(Role.TOOL, (ToolResult(CallId(call), (Text(text),), name=name, failed=failed),))
