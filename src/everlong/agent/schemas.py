"""Tools as each wire format declares them, and how a request in it forbids calls. Tables, nothing else."""

import json
from collections.abc import Callable, Mapping, Sequence

from everlong.agent.tool import Tool
from everlong.core import Json, JsonObject, JsonText
from everlong.errors import InputError

__all__ = ["NO_CALLS", "schemas_of"]


def _chat(tool: Tool, parameters: Json) -> JsonObject:
    return {"type": "function", "function": {**_named(tool), "parameters": parameters}}


def _responses(tool: Tool, parameters: Json) -> JsonObject:
    return {"type": "function", **_named(tool), "parameters": parameters}


def _anthropic(tool: Tool, parameters: Json) -> JsonObject:
    return {**_named(tool), "input_schema": parameters}


def _gemini(tool: Tool, parameters: Json) -> JsonObject:
    return {"functionDeclarations": [{**_named(tool), "parametersJsonSchema": parameters}]}


def _named(tool: Tool) -> JsonObject:
    return {"name": tool.name, "description": tool.description}


SHAPES: Mapping[str, Callable[[Tool, Json], JsonObject]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "openai-chat": _chat,
    "openai-responses": _responses,
}
#: Fields of a body by which the model answers in words. The tools stay declared: the calls before need them.
NO_CALLS: Mapping[str, JsonText] = {
    "anthropic": '{"tool_choice":{"type":"none"}}',
    "gemini": '{"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}',
    "openai-chat": '{"tool_choice":"none"}',
    "openai-responses": '{"tool_choice":"none"}',
}


def schemas_of(tools: Sequence[Tool], fmt: str) -> tuple[JsonText, ...]:
    """The tools in the order given, as the format declares them. Raises InputError for one whose schema is no JSON."""
    schemas = []
    for tool in tools:
        try:
            parameters: Json = json.loads(tool.parameters)
        except ValueError as error:
            raise InputError(f"the parameters of tool {tool.name!r} are no JSON schema: {error}") from None
        schemas.append(json.dumps(SHAPES[fmt](tool, parameters), ensure_ascii=False))
    return tuple(schemas)
