"""Anthropic Messages."""

from everlong.core import Json, JsonObject
from everlong.wire.formats.anthropic import exchange, marks, messages
from everlong.wire.formats.anthropic.rules import RULES, anthropic_problems, problems_beside
from everlong.wire.formats.anthropic.server import DELTAS, SERVER
from everlong.wire.formats.anthropic.written import WRITER
from everlong.wire.formats.format import Api, CacheMarks, Format, Signs, Tools

__all__ = ["FORMAT"]

#: Blocks that only this format has.
BLOCKS = frozenset(
    {"document", "redacted_thinking", "search_result", "server_tool_use", "thinking", "tool_result", "tool_use"}
)


def _sign(message: JsonObject) -> int:
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    kinds = {kind for block in blocks if isinstance(kind := block.get("type"), str)}
    pictures = any(block.get("type") == "image" and "source" in block for block in blocks)
    return 2 if kinds & BLOCKS or "stop_reason" in message or pictures else 0


def _stands_beside(body: JsonObject) -> bool:
    """Whether the body has a system field, or tools declared in this format."""
    tools = body.get("tools")
    schemas = tools if isinstance(tools, list) else []
    return "system" in body or any(isinstance(tool, dict) and "input_schema" in tool for tool in schemas)


def _declare(name: str, description: str, parameters: Json) -> JsonObject:
    return {"name": name, "description": description, "input_schema": parameters}


FORMAT = Format(
    name=messages.NAME,
    api=Api(
        path=exchange.PATH,
        count_path=f"{exchange.PATH}/count_tokens",
        messages="messages",
        system="system",
        lengths=("max_tokens",),
        needs_length=True,
        thinking=("thinking.budget_tokens",),
        models="/models?limit=1000",
        key_header=exchange.KEY_HEADER,
        key_prefix="",
        fixed_headers=exchange.HEADERS,
    ),
    signs=Signs(
        message=_sign,
        body=lambda body: isinstance(body.get("messages"), list),
        beside=_stands_beside,
    ),
    read_body=messages.read_body,
    write_body=messages.write_body,
    sent_body=messages.sent_body,
    read_message=messages.read_message,
    read_messages=messages.read_messages,
    write_message=messages.write_message,
    write_history=messages.write_history,
    ask=exchange.ask,
    reader=exchange.MessagesReader,
    writer=WRITER,
    deltas=DELTAS,
    usage="anthropic",
    faults=anthropic_problems,
    faults_beside=problems_beside,
    rules=RULES,
    tools=Tools(declare=_declare, forbid='{"tool_choice":{"type":"none"}}'),
    marks=CacheMarks(
        field=marks.FIELD,
        most=marks.MOST,
        mark=marks.marker,
        may_bear=marks.may_bear,
        tool_may_bear=marks.tool_may_bear,
        add=marks.with_marks,
        remove=marks.without_marks,
        write_history=messages.write_placed,
    ),
    server_side=SERVER,
)
