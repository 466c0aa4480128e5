"""What Gemini refuses in generateContent.

ai.google.dev/api/caching#Content, ai.google.dev/gemini-api/docs/function-calling
"""

import re
from collections.abc import Iterator
from typing import Any

from tests.attack.bodies import Payload
from tests.attack.rules_shared import declared, filled, listed

__all__ = ["generate_content"]

DATA = ("text", "inlineData", "functionCall", "functionResponse", "fileData", "executableCode", "codeExecutionResult")
FUNCTION = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")


def generate_content(body: Payload) -> Iterator[str]:
    contents = body.get("contents")
    contents = [contents] if isinstance(contents, dict) else contents
    if not isinstance(contents, list) or not contents:
        yield "contents: contents is not specified"
        return
    yield from _gemini_system(body)
    tools = body.get("tools")
    yield from declared({"tools": [tools] if isinstance(tools, dict) else tools}, _gemini_tool)
    waiting: list[Any] = []
    before = "model"
    for at, content in enumerate(contents):
        where = f"contents[{at}]"
        role = (content.get("role") or "user") if isinstance(content, dict) else None
        if not isinstance(role, str) or role not in ("user", "model", "function", ""):
            yield f"{where}: please use a valid role: user, model"
            return
        voice = "model" if role == "model" else "user"
        if voice == before:
            yield f"{where}: turns of {voice} do not alternate"
        parts = content.get("parts")
        parts = [_camel(part) for part in ([parts] if isinstance(parts, dict) else listed(parts))]
        if not parts:
            yield f"{where}.parts: must not be empty"
        for index, part in enumerate(parts):
            yield from _gemini_part(f"{where}.parts[{index}]", part, voice)
        answers = [_camel(part["functionResponse"]).get("name") for part in parts if "functionResponse" in part]
        if len(answers) != len(waiting):
            yield f"{where}: the number of function response parts must equal that of the function calls"
        elif sorted(map(str, answers)) != sorted(map(str, waiting)):
            yield f"{where}: function responses to {answers}, calls of {waiting}"
        waiting = [_camel(part["functionCall"]).get("name") for part in parts if "functionCall" in part]
        before = voice
    if waiting:
        yield f"contents: function calls without a function response turn: {waiting}"


def _camel(value: Any) -> Payload:
    """The filled fields in camelCase: the API takes both spellings, and null as absent."""
    if not isinstance(value, dict):
        return {"": value}
    return {
        re.sub(r"_([a-z])", lambda found: found[1].upper(), key): inner
        for key, inner in value.items()
        if inner is not None
    }


def _gemini_part(where: str, part: Payload, voice: str) -> Iterator[str]:  # noqa: C901 - one branch a type
    data = [key for key in DATA if key in part]
    if len(data) > 1:
        yield f"{where}: oneof field 'data' is already set: {data}"
    if not data and not part.get("thoughtSignature") and not set(part) - {"thought", "", "thoughtSignature"}:
        yield f"{where}: required oneof field 'data' must have one initialized field"
    if "" in part and len(part) == 1 and not isinstance(part[""], str):
        yield f"{where}: a part is an object"
    if "text" in part and not filled(part["text"]) and not (part["text"] == "" and part.get("thoughtSignature")):
        yield f"{where}.text: empty, or no string"
    for field, whose, inner in (("functionCall", "model", "args"), ("functionResponse", "user", "response")):
        if field in part:
            function = _camel(part[field])
            if voice != whose:
                yield f"{where}: {field} in a turn of {voice}"
            if not isinstance(function.get("name"), str) or not FUNCTION.fullmatch(function["name"]):
                yield f"{where}.{field}.name: {function.get('name')!r}"
            if not isinstance(function.get(inner, {}), dict):
                yield f"{where}.{field}.{inner}: no object"
            if not isinstance(function.get("id", ""), str):
                yield f"{where}.{field}.id: no string"
    for field, inner in (("inlineData", "data"), ("fileData", "fileUri")):
        if field in part and not filled(_camel(part[field]).get(inner)):
            yield f"{where}.{field}: empty"


def _gemini_system(body: Payload) -> Iterator[str]:
    for field in ("systemInstruction", "system_instruction"):
        system = body.get(field)
        if system is None:
            continue
        parts = system.get("parts") if isinstance(system, dict) else None
        parts = [parts] if isinstance(parts, dict) else parts
        if not isinstance(parts, list) or not parts:
            yield f"{field}: no content"
        for part in listed(parts):
            if not filled(_camel(part).get("text")) or len([key for key in DATA if key in _camel(part)]) > 1:
                yield f"{field}: parts are text"


def _gemini_tool(tool: Any) -> str:
    if not isinstance(tool, dict):
        return "no object"
    declared = _camel(tool).get("functionDeclarations")
    if declared is not None and not isinstance(declared, list):
        return "function declarations are no array"
    named = all(isinstance(each, dict) and filled(each.get("name")) for each in listed(declared))
    return "" if named else "a function has no name"
