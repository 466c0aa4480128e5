"""Whose messages are these? Told from what only that provider writes, never from a file's name.

Knows signs, not formats: nothing is parsed here. The whole list is looked at, because a long chat may begin
with plain words and show its first call late. Plain words alone, which all providers write alike, count as
OpenAI chat. What only looks like a conversation is refused in one line that says what it is.
"""

from collections.abc import Sequence

from everlong.core import Json, JsonObject
from everlong.errors import InputError

__all__ = ["body_format", "fields_named", "holds_a_conversation", "is_message", "list_format"]

CHAT, RESPONSES, ANTHROPIC, GEMINI = "openai-chat", "openai-responses", "anthropic", "gemini"
#: Signs of several providers in one list: the first of these that was seen decides.
BY_STRENGTH = (CHAT, GEMINI, RESPONSES, ANTHROPIC)

CHAT_ROLES = ("tool", "function")
CHAT_FIELDS = ("tool_calls", "function_call")
RESPONSES_ITEMS = frozenset(
    {
        *("reasoning", "item_reference", "compaction", "web_search_call"),
        *("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
    }
)
ANTHROPIC_BLOCKS = frozenset(
    {"document", "redacted_thinking", "search_result", "server_tool_use", "thinking", "tool_result", "tool_use"}
)
RESPONSES_BLOCKS = frozenset({"input_text", "input_image", "input_file", "output_text"})
#: Beside a text as `input`, one of these tells a request from any other object with that field.
RESPONSES_FIELDS = frozenset({"conversation", "instructions", "model", "previous_response_id", "prompt"})

SHOWN_FIELDS = 6


def body_format(body: JsonObject) -> str:
    """The format of a request body. Raises InputError if it is none."""
    messages, contents, asked = body.get("messages"), body.get("contents"), body.get("input")
    if isinstance(messages, list):
        return _chat_or_anthropic(messages, body)
    if isinstance(contents, dict):
        contents = [contents]
    if isinstance(contents, list) and (
        not contents or any(isinstance(row, dict) and "parts" in row for row in contents)
    ):
        return GEMINI
    if isinstance(asked, list) or (isinstance(asked, str) and (body.keys() & RESPONSES_FIELDS or len(body) == 1)):
        return RESPONSES
    raise InputError(f"not a conversation: an object with {fields_named(body)}; expected messages, input or contents")


def list_format(messages: Sequence[Json]) -> str:
    """The format of a bare list of messages; of one without any, OpenAI chat."""
    rows = _rows(messages)
    signs = _signs(rows)
    found = next((fmt for fmt in BY_STRENGTH if fmt in signs), None)
    if found is None and rows and not any("role" in row for row in rows):
        raise InputError(f"not a conversation: a list of objects with {fields_named(rows[0])}")
    return found or CHAT


def holds_a_conversation(row: JsonObject) -> bool:
    """Whether a row of a data set brings messages, in any format."""
    return any(isinstance(row.get(field), list) for field in ("messages", "contents", "input"))


def is_message(record: JsonObject) -> bool:
    """Whether a record by itself could be one message of a list."""
    return "role" in record and not holds_a_conversation(record)


def fields_named(record: JsonObject) -> str:
    """A few of its fields, for a message to a person. Example: {"b": 1, "a": 2} -> "a, b" """
    return ", ".join(sorted(record)[:SHOWN_FIELDS]) or "no fields"


def _chat_or_anthropic(messages: Sequence[Json], body: JsonObject) -> str:
    """Both keep their list under `messages`."""
    rows = _rows(messages)
    signs = _signs(rows)
    if CHAT in signs:
        return CHAT
    if GEMINI in signs:
        raise InputError("not a conversation: messages with parts and no content")
    tools = body.get("tools")
    schemas = tools if isinstance(tools, list) else []
    if "system" in body or any(isinstance(tool, dict) and "input_schema" in tool for tool in schemas):
        return ANTHROPIC
    if rows and not any("role" in row for row in rows):
        raise InputError(f"not a conversation: messages with {fields_named(rows[0])} and no role")
    return ANTHROPIC if ANTHROPIC in signs else CHAT


def _rows(messages: Sequence[Json]) -> list[JsonObject]:
    rows = [row for row in messages if isinstance(row, dict)]
    if messages and not rows:
        raise InputError(f"not a conversation: a list of {type(messages[0]).__name__}")
    return rows


def _signs(rows: Sequence[JsonObject]) -> set[str]:
    """Whose messages these may be, as far as it takes: nothing stands against a sign of Chat."""
    signs = set()
    for row in rows:
        sign = _sign(row)
        if sign is not None:
            signs.add(sign)
        if sign == CHAT:
            break
    return signs


def _sign(row: JsonObject) -> str | None:
    """The provider that alone writes a message like this, if there is one."""
    if "parts" in row and "content" not in row:
        return GEMINI
    if row.get("role") in CHAT_ROLES or any(field in row for field in CHAT_FIELDS):
        return CHAT
    if row.get("type") in RESPONSES_ITEMS:
        return RESPONSES
    content = row.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    kinds = {kind for block in blocks if isinstance(kind := block.get("type"), str)}
    if "image_url" in kinds:
        return CHAT
    if kinds & ANTHROPIC_BLOCKS or "stop_reason" in row:
        return ANTHROPIC
    if any(block.get("type") == "image" and "source" in block for block in blocks):
        return ANTHROPIC
    return RESPONSES if kinds & RESPONSES_BLOCKS or (row.get("type") == "message" and "role" in row) else None
