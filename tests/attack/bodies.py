"""Requests as careful clients write them, one grammar a format: where every attack on a format begins.

Fast rather than varied: `mutations` brings the variety. The same dice give the same body on every machine.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, TypeAlias

__all__ = ["BODIES", "Payload", "words"]

Payload: TypeAlias = dict[str, Any]

WORDS = (
    "hello",
    "Please read src/app.py and fix the bug in line 42.",
    "请把配置文件里的端口改成 8080，然后重启服务。",
    "👩‍👩‍👧‍👦 family and é",
    "done\n\n```python\nprint('x')\n```",
    "ends in white space \n",
)
#: Long ones pass the smaller budgets. A pool, so that what was counted once is known.
LONG = tuple((phrase * (size // len(phrase) + 1))[:size] for size in (600, 3_000) for phrase in WORDS[1:3])
NAMES = ("read_file", "bash", "mcp__db__query")
ARGUMENTS: tuple[tuple[str, Payload], ...] = (
    ("{}", {}),
    ('{"path": "a.py"}', {"path": "a.py"}),
    ('{"q": "天气", "n": 3}', {"q": "天气", "n": 3}),
)
PICTURE = "aGk="
SCHEMA: Payload = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
MARK: Payload = {"type": "ephemeral"}


def words(dice: Random) -> str:
    """Some words, now and then many."""
    return dice.choice(LONG) if dice.random() < 0.15 else dice.choice(WORDS)


def _schema() -> Payload:
    return {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


# --- OpenAI Chat Completions ---------------------------------------------------------------------


def chat(dice: Random) -> Payload:
    """A body of Chat Completions."""
    messages: list[Payload] = []
    if dice.random() < 0.5:
        messages.append({"role": dice.choice(("system", "developer")), "content": "You are a careful assistant."})
    for turn in range(dice.randint(1, 3)):
        messages.append({"role": "user", "content": _chat_content(dice)})
        for step in range(dice.choice((0, 0, 1, 2))):
            calls = [_chat_call(dice, f"call_{turn}_{step}_{at}") for at in range(dice.randint(1, 2))]
            said: Payload = {
                "role": "assistant",
                "content": dice.choice((None, "", "Let me look.")),
                "tool_calls": calls,
            }
            if dice.random() < 0.2:
                said["reasoning_content"] = "First I list the files."
            messages.append(said)
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": words(dice)} for call in calls]
        messages.append({"role": "assistant", "content": words(dice)})
    if dice.random() < 0.7:
        messages.append({"role": "user", "content": words(dice)})
    body: Payload = {"model": "gpt-4o", "messages": messages}
    if dice.random() < 0.4:
        body["tools"] = [
            {"type": "function", "function": {"name": name, "description": "Reads.", "parameters": _schema()}}
            for name in NAMES[: dice.randint(1, 2)]
        ]
    return body


def _chat_content(dice: Random) -> Any:
    if dice.random() < 0.7:
        return words(dice)
    blocks: list[Payload] = [{"type": "text", "text": words(dice)}]
    if dice.random() < 0.6:
        url = dice.choice(("https://example.org/cat.png", f"data:image/png;base64,{PICTURE}"))
        blocks.append({"type": "image_url", "image_url": {"url": url, "detail": "low"}})
    return blocks


def _chat_call(dice: Random, name: str) -> Payload:
    arguments, _ = dice.choice(ARGUMENTS)
    return {"id": name, "type": "function", "function": {"name": dice.choice(NAMES), "arguments": arguments}}


# --- OpenAI Responses ----------------------------------------------------------------------------


def responses(dice: Random) -> Payload:
    """A body of Responses."""
    items: list[Payload] = []
    for turn in range(dice.randint(1, 3)):
        items.append(_responses_question(dice))
        if dice.random() < 0.1:
            items.append({"role": "developer", "content": "Be brief."})
        for step in range(dice.choice((0, 0, 1, 2))):
            calls = [_responses_call(dice, f"{turn}_{step}_{at}") for at in range(dice.randint(1, 2))]
            if dice.random() < 0.3:
                summary = [{"type": "summary_text", "text": "Look first."}] if dice.random() < 0.5 else []
                items.append(
                    {"type": "reasoning", "id": f"rs_{turn}_{step}", "summary": summary, "encrypted_content": "gAAA"}
                )
            items += calls
            items += [
                {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": words(dice)} for call in calls
            ]
        items.append(
            {
                "type": "message",
                "role": "assistant",
                "id": f"msg_{turn}",
                "status": "completed",
                "content": [{"type": "output_text", "text": words(dice), "annotations": []}],
            }
        )
    if dice.random() < 0.7:
        items.append(_responses_question(dice))
    body: Payload = {"model": "gpt-4o", "input": items if dice.random() < 0.97 else words(dice)}
    if dice.random() < 0.4:
        body["instructions"] = "You are a careful assistant."
    if dice.random() < 0.4:
        body["tools"] = [{"type": "function", "name": NAMES[0], "description": "Reads.", "parameters": _schema()}]
    return body


def _responses_question(dice: Random) -> Payload:
    if dice.random() < 0.5:
        return {"role": "user", "content": words(dice)}
    blocks: list[Payload] = [{"type": "input_text", "text": words(dice)}]
    if dice.random() < 0.4:
        blocks.append({"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}", "detail": "auto"})
    return {"type": "message", "role": "user", "content": blocks}


def _responses_call(dice: Random, name: str) -> Payload:
    if dice.random() < 0.1:
        return {"type": "custom_tool_call", "id": f"ctc_{name}", "call_id": f"call_{name}", "name": "sh", "input": "ls"}
    arguments, _ = dice.choice(ARGUMENTS)
    call: Payload = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}"}
    return call | {"name": dice.choice(NAMES), "arguments": arguments, "status": "completed"}


# --- Anthropic Messages --------------------------------------------------------------------------


def anthropic(dice: Random) -> Payload:
    """A body of Anthropic Messages."""
    messages: list[Payload] = []
    for turn in range(dice.randint(1, 3)):
        messages.append({"role": "user", "content": _anthropic_content(dice)})
        for step in range(dice.choice((0, 0, 1, 2))):
            calls = [_anthropic_call(dice, f"toolu_{turn}_{step}_{at}") for at in range(dice.randint(1, 2))]
            thought = [{"type": "thinking", "thinking": "Two files.", "signature": "EqQB"}] * (dice.random() < 0.3)
            said = [{"type": "text", "text": "Reading."}] * (dice.random() < 0.5)
            messages.append({"role": "assistant", "content": [*thought, *said, *calls]})
            messages.append({"role": "user", "content": [_anthropic_result(dice, call["id"]) for call in calls]})
        messages.append({"role": "assistant", "content": words(dice).strip()})
    if dice.random() < 0.7:
        messages.append({"role": "user", "content": words(dice)})
    body: Payload = {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": messages}
    if dice.random() < 0.4:
        system: Any = "You are a careful assistant."
        block: Payload = {"type": "text", "text": system, "cache_control": dict(MARK)}
        body["system"] = system if dice.random() < 0.5 else [block]
    if dice.random() < 0.4:
        body["tools"] = [{"name": NAMES[0], "description": "Reads.", "input_schema": _schema()}]
    return body


def _anthropic_content(dice: Random) -> Any:
    if dice.random() < 0.6:
        return words(dice)
    block: Payload = {"type": "text", "text": words(dice)}
    if dice.random() < 0.3:
        block["cache_control"] = dict(MARK)
    picture: Payload = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    source = dice.choice((picture, {"type": "url", "url": "https://example.org/cat.png"}))
    return [block, *[{"type": "image", "source": dict(source)}] * (dice.random() < 0.4)]


def _anthropic_call(dice: Random, name: str) -> Payload:
    _, arguments = dice.choice(ARGUMENTS)
    return {"type": "tool_use", "id": name, "name": dice.choice(NAMES), "input": dict(arguments)}


def _anthropic_result(dice: Random, call: str) -> Payload:
    content: Any = words(dice)
    if dice.random() < 0.4:
        content = [{"type": "text", "text": content}]
    return {"type": "tool_result", "tool_use_id": call, "content": content}


# --- Gemini generateContent ----------------------------------------------------------------------


def gemini(dice: Random) -> Payload:
    """A body of generateContent."""
    contents: list[Payload] = []
    for turn in range(dice.randint(1, 3)):
        contents.append({"role": "user", "parts": _gemini_parts(dice)})
        for step in range(dice.choice((0, 0, 1, 2))):
            calls = [_gemini_call(dice, f"{turn}{step}{at}") for at in range(dice.randint(1, 2))]
            thought = [{"text": "Two files.", "thought": True}] * (dice.random() < 0.2)
            contents.append({"role": "model", "parts": [*thought, *calls]})
            contents.append({"role": "user", "parts": [_gemini_result(dice, call) for call in calls]})
        contents.append({"role": "model", "parts": [{"text": words(dice)}]})
    if dice.random() < 0.7:
        contents.append({"role": "user", "parts": _gemini_parts(dice)})
    body: Payload = {"contents": contents}
    if dice.random() < 0.4:
        body["systemInstruction"] = {"parts": [{"text": "You are a careful assistant."}]}
    if dice.random() < 0.4:
        body["tools"] = [
            {"functionDeclarations": [{"name": NAMES[0], "description": "Reads.", "parameters": _schema()}]}
        ]
    if dice.random() < 0.3:
        body["generationConfig"] = {"maxOutputTokens": 500}
    return body


def _gemini_parts(dice: Random) -> list[Payload]:
    picture: Payload = {"inlineData": {"mimeType": "image/png", "data": PICTURE}}
    return [{"text": words(dice)}, *[picture] * (dice.random() < 0.2)]


def _gemini_call(dice: Random, name: str) -> Payload:
    _, arguments = dice.choice(ARGUMENTS)
    call: Payload = {"name": dice.choice(NAMES), "args": dict(arguments)}
    if dice.random() < 0.3:
        call["id"] = name
    part: Payload = {"functionCall": call}
    if dice.random() < 0.3:
        part["thoughtSignature"] = "EqQB"
    return part


def _gemini_result(dice: Random, call: Payload) -> Payload:
    made = call["functionCall"]
    response: Payload = {"name": made["name"], "response": {dice.choice(("output", "error", "result")): words(dice)}}
    return {"functionResponse": response | ({"id": made["id"]} if "id" in made else {})}


# --- Ollama --------------------------------------------------------------------------------------


def ollama(dice: Random) -> Payload:
    """A body of Ollama's chat."""
    messages: list[Payload] = []
    if dice.random() < 0.5:
        messages.append({"role": "system", "content": "You are a careful assistant."})
    for _ in range(dice.randint(1, 3)):
        asked: Payload = {"role": "user", "content": words(dice)}
        messages.append(asked | ({"images": [PICTURE]} if dice.random() < 0.2 else {}))
        for _ in range(dice.choice((0, 0, 1, 2))):
            calls = [_ollama_call(dice) for _ in range(dice.randint(1, 2))]
            messages.append({"role": "assistant", "content": dice.choice(("", "Let me look.")), "tool_calls": calls})
            named = [call["function"]["name"] for call in calls]
            messages += [{"role": "tool", "tool_name": name, "content": words(dice)} for name in named]
        messages.append({"role": "assistant", "content": words(dice)})
    if dice.random() < 0.7:
        messages.append({"role": "user", "content": words(dice)})
    body: Payload = {"model": "llama3.2", "messages": messages}
    if dice.random() < 0.4:
        declared = {"name": NAMES[0], "description": "Reads.", "parameters": _schema()}
        body["tools"] = [{"type": "function", "function": declared}]
    return body


def _ollama_call(dice: Random) -> Payload:
    _, arguments = dice.choice(ARGUMENTS)
    return {"function": {"name": dice.choice(NAMES), "arguments": dict(arguments)}}


#: A body of each format, from dice.
BODIES: Mapping[str, Callable[[Random], Payload]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "ollama": ollama,
}
