"""The recall tool: what it is in each format, who called it, and what goes back to the model.

The gateway offers it beside the client's own tools and answers it itself. Pure: nothing is looked up here
(`engine.recall` does) and no stream is touched (`recall_hiding` does).
"""

import json
from collections.abc import Mapping

from everlong.core import CallId, Json, JsonObject, Message, Role, Text, ToolCall, ToolResult
from everlong.wire import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES

__all__ = [
    "NAME",
    "answered",
    "may_offer",
    "recall_calls",
    "rendered",
    "results_of",
    "wanted",
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
FUNCTION: JsonObject = {"name": NAME, "description": DESCRIPTION, "parameters": SCHEMA}
TOOLS: Mapping[str, JsonObject] = {
    "openai-chat": {"type": "function", "function": FUNCTION},
    "openai-responses": {"type": "function", **FUNCTION, "strict": False},
    "anthropic": {"name": NAME, "description": DESCRIPTION, "input_schema": SCHEMA},
}
RENDER = {
    "openai-chat": OPENAI_CHAT.write_message,
    "openai-responses": OPENAI_RESPONSES.write_message,
    "anthropic": ANTHROPIC.write_message,
}


# --- offering --------------------------------------------------------------------------------------


def may_offer(fields: Mapping[str, Json]) -> bool:
    """Whether a request with these fields (all but the messages) may get the tool.

    Not where calling is forbidden, where several answers are asked for at once, where the functions are of the old
    kind, or where the answer is made in the background. A request without tools may.
    """
    choice = fields.get("tool_choice")
    forbidden = (choice.get("type") if isinstance(choice, dict) else choice) == "none"
    several = fields.get("n") not in (None, 1)
    return not (forbidden or several or fields.get("functions") or fields.get("background"))


def with_recall_tool(fmt: str, tools: list[Json]) -> list[Json]:
    """The tools and ours, last; the same list if one of that name is there."""
    return tools if any(_name(tool) == NAME for tool in tools) else [*tools, TOOLS[fmt]]


def _name(tool: Json) -> Json:
    if not isinstance(tool, dict):
        return None
    function = tool.get("function")
    return function.get("name") if isinstance(function, dict) else tool.get("name")


# --- being called ----------------------------------------------------------------------------------


def recall_calls(message: Message) -> tuple[ToolCall, ...]:
    """The calls of our tool in an answer."""
    return tuple(call for call in message.calls if call.name == NAME)


def without_recall(message: Message) -> Message:
    """The answer as the client sees it."""
    return message.with_parts(tuple(p for p in message.parts if not (isinstance(p, ToolCall) and p.name == NAME)))


def wanted(call: ToolCall) -> str:
    """What is to be recalled; "" if the arguments do not say."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ""
    what = arguments.get(ARGUMENT) if isinstance(arguments, dict) else arguments
    return what.strip() if isinstance(what, str) else ""


# --- answering -------------------------------------------------------------------------------------


def rendered(fmt: str, message: Message) -> list[JsonObject]:
    """An answer as a later request carries it: one message, or the items of Responses."""
    out = RENDER[fmt](message)
    return _without_unsealed(out) if fmt == "openai-responses" else out


def answered(fmt: str, message: Message, results: Mapping[CallId, str]) -> list[JsonObject]:
    """What the request is continued with: the model's message and the results of our calls, in this order."""
    return [*rendered(fmt, message), *results_of(fmt, message, results)]


def results_of(fmt: str, message: Message, results: Mapping[CallId, str]) -> list[JsonObject]:
    """The results alone, as messages or items."""
    given = tuple(
        ToolResult(call.id, (Text(results[call.id]),)) for call in recall_calls(message) if call.id in results
    )
    return RENDER[fmt](Message(Role.TOOL, given, origin=fmt)) if given else []


def _without_unsealed(items: list[JsonObject]) -> list[JsonObject]:
    """Reasoning that is not sealed is known to the provider by its id alone, which it may not have kept.

    Where such an item goes, the others go without their ids, under which it would be looked for.
    """
    sealed = [item for item in items if item.get("type") != "reasoning" or item.get("encrypted_content")]
    if len(sealed) == len(items):
        return items
    return [{name: value for name, value in item.items() if name != "id"} for item in sealed]
