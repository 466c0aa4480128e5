"""Gemini generateContent."""

from everlong.core import Json, JsonObject
from everlong.wire.formats.format import Api, Format, Signs, Tools
from everlong.wire.formats.gemini import exchange, messages
from everlong.wire.formats.gemini.rules import RULES, gemini_problems, problems_beside
from everlong.wire.formats.gemini.written import WRITER
from everlong.wire.framings import JSON_ARRAY

__all__ = ["FORMAT"]


def _sign(message: JsonObject) -> int:
    return 6 if "parts" in message and "content" not in message else 0


def _can_be_body(body: JsonObject) -> bool:
    contents = body.get("contents")
    if isinstance(contents, dict):
        contents = [contents]
    return isinstance(contents, list) and (
        not contents or any(isinstance(row, dict) and "parts" in row for row in contents)
    )


def _declare(name: str, description: str, parameters: Json) -> JsonObject:
    declaration: JsonObject = {"name": name, "description": description, "parametersJsonSchema": parameters}
    return {"functionDeclarations": [declaration]}


FORMAT = Format(
    name=messages.NAME,
    api=Api(
        path="/models/{model}:generateContent",
        stream_path="/models/{model}:streamGenerateContent",
        base="/v1beta",
        messages="contents",
        system="systemInstruction",
        stream="",
        framing=JSON_ARRAY,
        events_query="alt=sse",
        lengths=("generationConfig.maxOutputTokens",),
        thinking="generationConfig.thinkingConfig.thinkingBudget",
        models="/models?pageSize=1000",
        key_header=exchange.KEY_HEADER,
        key_prefix="",
        fixed_headers={},
    ),
    signs=Signs(message=_sign, body=_can_be_body, oddity="parts and no content"),
    read_body=messages.read_body,
    write_body=messages.write_body,
    sent_body=messages.sent_body,
    read_message=messages.read_message,
    read_messages=messages.read_messages,
    write_message=messages.write_message,
    write_history=messages.write_history,
    ask=exchange.ask,
    reader=exchange.GeminiReader,
    writer=WRITER,
    usage="gemini",
    faults=gemini_problems,
    faults_beside=problems_beside,
    rules=RULES,
    tools=Tools(declare=_declare, forbid='{"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}'),
)
