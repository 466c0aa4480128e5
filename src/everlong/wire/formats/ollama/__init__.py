"""Ollama's own chat: messages as text, one object per line, and a window that each request may set."""

from everlong.core import JsonObject
from everlong.wire.formats.format import Api, Format, Signs, Tools
from everlong.wire.formats.ollama import exchange, messages
from everlong.wire.formats.ollama.hidden_tool import declare
from everlong.wire.formats.ollama.rules import RULES, chat_problems, problems_beside
from everlong.wire.formats.ollama.server import DELTAS, SERVER
from everlong.wire.formats.ollama.written import WRITER
from everlong.wire.framings import NDJSON

__all__ = ["FORMAT"]

#: Fields of a body that no other format with messages has.
BESIDE = ("keep_alive", "options", "think")


def _sign(message: JsonObject) -> int:
    if message.get("role") == "tool" and "tool_name" in message:
        return 6
    pictures, calls = message.get("images"), message.get("tool_calls")
    if isinstance(pictures, list) and pictures and all(isinstance(each, str) for each in pictures):
        return 6
    listed = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    functions = [call.get("function") for call in listed if not call.get("id")]
    return 6 if any(isinstance(each, dict) and isinstance(each.get("arguments"), dict) for each in functions) else 0


FORMAT = Format(
    name=messages.NAME,
    api=Api(
        path=exchange.PATH,
        prompt_path="/generate",
        base="/api",
        messages="messages",
        streams_unasked=True,
        framing=NDJSON,
        lengths=(f"options.{exchange.LENGTH}",),
        top_p="options.top_p",
        window="options.num_ctx",
        uncut={"truncate": False},
        loads=True,
        models="/tags",
        fixed_headers={},
    ),
    signs=Signs(
        message=_sign,
        body=lambda body: isinstance(body.get("messages"), list),
        beside=lambda body: any(name in body for name in BESIDE),
    ),
    read_body=messages.read_body,
    write_body=messages.write_body,
    sent_body=messages.write_body,
    read_message=messages.read_message,
    read_messages=messages.read_messages,
    write_message=messages.write_message,
    write_history=messages.write_history,
    ask=exchange.ask,
    reader=exchange.OllamaReader,
    writer=WRITER,
    deltas=DELTAS,
    usage="ollama",
    faults=chat_problems,
    faults_beside=problems_beside,
    rules=RULES,
    tools=Tools(declare=declare, forbid='{"tools":[]}'),
    server_side=SERVER,
)
