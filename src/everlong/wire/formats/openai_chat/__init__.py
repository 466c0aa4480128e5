"""OpenAI Chat Completions, and the many servers that speak it."""

from everlong.core import Json, JsonObject
from everlong.wire.formats.format import Api, Format, Signs, Tools
from everlong.wire.formats.openai_chat import exchange, messages
from everlong.wire.formats.openai_chat.rules import RULES, chat_problems, problems_beside
from everlong.wire.formats.openai_chat.server import DELTAS, SERVER
from everlong.wire.formats.openai_chat.written import WRITER

__all__ = ["FORMAT"]

ROLES = ("tool", "function")
FIELDS = ("tool_calls", "function_call")


def _sign(message: JsonObject) -> int:
    if message.get("role") in ROLES or any(field in message for field in FIELDS):
        return 5
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return 3 if any(isinstance(block, dict) and block.get("type") == "image_url" for block in blocks) else 0


def _declare(name: str, description: str, parameters: Json) -> JsonObject:
    function: JsonObject = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


FORMAT = Format(
    name=messages.NAME,
    api=Api(
        path=exchange.PATH,
        messages="messages",
        thinking=("thinking.budget_tokens",),
        lengths=("max_tokens", "max_completion_tokens"),
        usage_on_request=True,
        fixed_headers={},
    ),
    signs=Signs(message=_sign, body=lambda body: isinstance(body.get("messages"), list)),
    read_body=messages.read_body,
    write_body=messages.write_body,
    sent_body=messages.write_body,
    read_message=messages.read_message,
    read_messages=messages.read_messages,
    write_message=messages.write_message,
    write_history=messages.write_history,
    ask=exchange.ask,
    reader=exchange.ChatReader,
    writer=WRITER,
    deltas=DELTAS,
    usage="openai-chat",
    faults=chat_problems,
    faults_beside=problems_beside,
    rules=RULES,
    tools=Tools(declare=_declare, forbid='{"tool_choice":"none"}'),
    server_side=SERVER,
)
