"""The recall tool: its name and description, its calls, and the results for the model.

The gateway offers it together with the client's own tools and answers it itself. Pure: `engine.recall` does the
look-up, and `recall.stream` edits streams.
"""

import json
from collections.abc import Mapping

from everlong.core import CallId, Json, JsonObject, Message, Role, Text, ToolCall, ToolResult
from everlong.wire import Format

__all__ = [
    "NAME",
    "continuation",
    "query_of",
    "recall_calls",
    "results_of",
    "with_recall_tool",
    "without_recall",
]

NAME = "everlong_recall"
ARGUMENT = "what"
DESCRIPTION = (
    "Returns parts of this conversation that were left out of view. Give the ref from a marker (16 hex digits) to get "
    "the original, or a few words, in any language (中文亦可), to search earlier messages."
)
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {ARGUMENT: {"type": "string", "description": "A ref, or a few words to search for."}},
    "required": [ARGUMENT],
}


# --- offering --------------------------------------------------------------------------------------


def with_recall_tool(format_: Format, tools: list[Json]) -> list[Json]:
    """Return the tools with ours at the end; the same list if one has its name."""
    ours = format_.server.tool
    if any(NAME in ours.declared(tool) for tool in tools):
        return tools
    return ours.offer(tools, ours.declare(NAME, DESCRIPTION, SCHEMA))


# --- being called ----------------------------------------------------------------------------------


def recall_calls(message: Message) -> tuple[ToolCall, ...]:
    """Return the calls of our tool in an answer."""
    return tuple(call for call in message.calls if call.name == NAME)


def without_recall(message: Message) -> Message:
    """Return the answer as the client sees it."""
    return message.with_parts(tuple(p for p in message.parts if not (isinstance(p, ToolCall) and p.name == NAME)))


def query_of(call: ToolCall) -> str:
    """Return what to recall; "" if the arguments do not say."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ""
    query = arguments.get(ARGUMENT) if isinstance(arguments, dict) else arguments
    return query.strip() if isinstance(query, str) else ""


# --- answering -------------------------------------------------------------------------------------


def continuation(format_: Format, message: Message, results: Mapping[CallId, str]) -> list[JsonObject]:
    """Return what a request continues with: the model's message and the results of our calls, in this order."""
    return [*format_.server.tool.resent(message), *results_of(format_, message, results)]


def results_of(format_: Format, message: Message, results: Mapping[CallId, str]) -> list[JsonObject]:
    """Return only the results, as messages or items."""
    parts = tuple(
        ToolResult(call.id, (Text(results[call.id]),)) for call in recall_calls(message) if call.id in results
    )
    if not parts:
        return []
    reply, answers = Message(Role.TOOL, parts, origin=format_.name), format_.server.tool.answers
    return format_.write_message(reply) if answers is None else answers(message, reply)
