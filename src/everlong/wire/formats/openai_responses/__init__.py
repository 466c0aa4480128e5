"""OpenAI Responses."""

from everlong.core import Json, JsonObject
from everlong.wire.formats.format import Api, Format, Signs, Tools
from everlong.wire.formats.openai_responses import compaction, exchange, messages
from everlong.wire.formats.openai_responses.rules import RULES, problems_beside, responses_problems
from everlong.wire.formats.openai_responses.server import DELTAS, SERVER
from everlong.wire.formats.openai_responses.written import WRITER

__all__ = ["FORMAT"]

ITEMS = frozenset(
    {
        *("reasoning", "item_reference", "compaction", "web_search_call"),
        *("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
    }
)
BLOCKS = frozenset({"input_text", "input_image", "input_file", "output_text"})
#: If `input` is a text, a request also has one of these; other objects with an `input` do not.
FIELDS = frozenset({"conversation", "instructions", "model", "previous_response_id", "prompt"})


def _sign(item: JsonObject) -> int:
    kind, content = item.get("type"), item.get("content")
    if isinstance(kind, str) and kind in ITEMS:
        return 4
    blocks = content if isinstance(content, list) else []
    kinds = {inner for block in blocks if isinstance(block, dict) and isinstance(inner := block.get("type"), str)}
    return 1 if kinds & BLOCKS or (kind == "message" and "role" in item) else 0


def _can_be_body(body: JsonObject) -> bool:
    given = body.get("input")
    return isinstance(given, list) or (isinstance(given, str) and bool(body.keys() & FIELDS or len(body) == 1))


def _declare(name: str, description: str, parameters: Json) -> JsonObject:
    return {"type": "function", "name": name, "description": description, "parameters": parameters}


FORMAT = Format(
    name=messages.NAME,
    api=Api(
        path=exchange.PATH,
        compact_path=compaction.PATH,
        messages="input",
        system="instructions",
        lengths=("max_output_tokens",),
        held_elsewhere=("previous_response_id", "conversation", "prompt"),
        fixed_headers={},
    ),
    signs=Signs(message=_sign, body=_can_be_body),
    read_body=messages.read_body,
    write_body=messages.write_body,
    sent_body=messages.write_body,
    read_message=messages.read_message,
    read_messages=messages.read_messages,
    write_message=messages.write_message,
    write_history=messages.write_history,
    item_is_message=False,
    ask=exchange.ask,
    reader=exchange.ResponsesReader,
    writer=WRITER,
    deltas=DELTAS,
    usage="openai-responses",
    faults=responses_problems,
    faults_beside=problems_beside,
    rules=RULES,
    tools=Tools(declare=_declare, forbid='{"tool_choice":"none"}'),
    server_side=SERVER,
)
