"""Gemini generateContent."""

from everlong.core import JsonObject
from everlong.wire.formats.format import Api, Format, Signs, Tools
from everlong.wire.formats.gemini import exchange, messages
from everlong.wire.formats.gemini.hidden_tool import declare
from everlong.wire.formats.gemini.rules import RULES, gemini_problems, problems_beside
from everlong.wire.formats.gemini.server import DELTAS, SERVER
from everlong.wire.formats.gemini.written import WRITER
from everlong.wire.framings import JSON_ARRAY

__all__ = ["FORMAT"]

#: Google accepts both spellings of its fields.
SPELLINGS = {
    "cached_content": "cachedContent",
    "generate_content_request": "generateContentRequest",
    "generation_config": "generationConfig",
    "safety_settings": "safetySettings",
    "system_instruction": "systemInstruction",
    "tool_config": "toolConfig",
}


def _sign(message: JsonObject) -> int:
    return 6 if "parts" in message and "content" not in message else 0


def _can_be_body(body: JsonObject) -> bool:
    contents = body.get("contents")
    if isinstance(contents, dict):
        contents = [contents]
    return isinstance(contents, list) and (
        not contents or any(isinstance(row, dict) and "parts" in row for row in contents)
    )


FORMAT = Format(
    name=messages.NAME,
    api=Api(
        path="/models/{model}:generateContent",
        stream_path="/models/{model}:streamGenerateContent",
        count_path="/models/{model}:countTokens",
        counted_inside="generateContentRequest",
        base="/v1beta",
        base_aliases=("/v1",),
        other_bases=("/v1alpha",),
        other_heads=("/tunedModels/",),
        messages="contents",
        system="systemInstruction",
        stream="",
        framing=JSON_ARRAY,
        events_query="alt=sse",
        lengths=("generationConfig.maxOutputTokens", "generationConfig.max_output_tokens"),
        top_p="generationConfig.topP",
        thinking=(
            "generationConfig.thinkingConfig.thinkingBudget",
            "generationConfig.thinking_config.thinking_budget",
        ),
        held_elsewhere=("cachedContent",),
        spellings=SPELLINGS,
        lone=("contents", "tools"),
        key_query="key",
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
    deltas=DELTAS,
    usage="gemini",
    faults=gemini_problems,
    faults_beside=problems_beside,
    rules=RULES,
    tools=Tools(declare=declare, forbid='{"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}'),
    server_side=SERVER,
)
