"""The same short errand as a file of every kind that is recognised: name -> the format it must be found to be."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from everlong.core import Json, JsonObject
from tests.wire.sessions.agent_samples import GEMINI_CLI, OPENCODE, SWE_AGENT, SWE_AGENT_CALLS
from tests.wire.sessions.samples import (
    CHATBOX,
    CHATGPT,
    CLAUDE,
    CLAUDE_COMPACTED,
    CODEX,
    CODEX_OLD,
    EVERLONG,
    LIBRECHAT,
    NANOBOT,
    OPEN_WEBUI,
    PI_1,
    PI_2,
    PI_3,
)

CHAT: list[Json] = [
    {"role": "system", "content": "You are kind."},
    {"role": "user", "content": [{"type": "text", "text": "read a.py 文件"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a.py"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "hello"},
    {"role": "assistant", "content": "It says hello."},
]
PLAIN: list[Json] = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
ANTHROPIC: list[Json] = [
    {"role": "user", "content": "read a.py 文件"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "hello"}]},
    {"role": "assistant", "content": "It says hello."},
]
RESPONSES: list[Json] = [
    {"role": "user", "content": "read a.py 文件"},
    {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path":"a.py"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "hello"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It says hello."}]},
]
GEMINI: list[Json] = [
    {"role": "user", "parts": [{"text": "read a.py 文件"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"path": "a.py"}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "hello"}}}]},
    {"role": "model", "parts": [{"text": "It says hello."}]},
]
OLLAMA: list[Json] = [
    {"role": "user", "content": "read a.py 文件"},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read", "arguments": {"path": "a.py"}}}]},
    {"role": "tool", "tool_name": "read", "content": "hello"},
    {"role": "assistant", "content": "It says hello."},
]

CHAT_BODY: JsonObject = {"model": "gpt-x", "messages": CHAT, "tools": [{"type": "function", "function": {"name": "f"}}]}
ANTHROPIC_BODY: JsonObject = {"model": "claude-x", "max_tokens": 9, "system": "You are kind.", "messages": ANTHROPIC}
RESPONSES_BODY: JsonObject = {"model": "gpt-x", "instructions": "You are kind.", "input": RESPONSES, "store": False}
GEMINI_BODY: JsonObject = {"systemInstruction": {"parts": [{"text": "You are kind."}]}, "contents": GEMINI}
OLLAMA_BODY: JsonObject = {"model": "llama3.2", "messages": OLLAMA, "options": {"num_ctx": 8_192}}

CHATBOX_EXPORT: JsonObject = {
    "chat-sessions-list": [{"id": "s1", "name": "Searching"}],
    "session:s1": CHATBOX,
    "__exported_items": ["conversations"],
}


class Payload(NamedTuple):
    name: str
    fmt: str
    data: bytes


def one(value: Json) -> bytes:
    return json.dumps(value).encode()


def lines(values: Sequence[Json]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


#: Files that hold a list or body of a provider.
BODIES = [
    Payload("chat list", "openai-chat", one(CHAT)),
    Payload("chat list of plain words", "openai-chat", one(PLAIN)),
    Payload("chat body", "openai-chat", one(CHAT_BODY)),
    Payload("chat lines", "openai-chat", lines(CHAT)),
    Payload("chat, a single line", "openai-chat", lines(PLAIN[:1])),
    Payload("Anthropic list", "anthropic", one(ANTHROPIC)),
    Payload("Anthropic body", "anthropic", one(ANTHROPIC_BODY)),
    Payload("Anthropic body of plain words", "anthropic", one({"system": "Be kind.", "messages": PLAIN})),
    Payload("Anthropic lines", "anthropic", lines(ANTHROPIC)),
    Payload("Responses list", "openai-responses", one(RESPONSES)),
    Payload("Responses body", "openai-responses", one(RESPONSES_BODY)),
    Payload("Responses body, a text as input", "openai-responses", one({"model": "gpt-x", "input": "hi"})),
    Payload("Responses lines", "openai-responses", lines(RESPONSES)),
    Payload("Gemini list", "gemini", one(GEMINI)),
    Payload("Gemini body", "gemini", one(GEMINI_BODY)),
    Payload("Gemini body, one content", "gemini", one({"contents": GEMINI[0]})),
    Payload("Gemini lines", "gemini", lines(GEMINI)),
    Payload("Ollama list", "ollama", one(OLLAMA)),
    Payload("Ollama body", "ollama", one(OLLAMA_BODY)),
    Payload("Ollama body of plain words", "ollama", one({"model": "m", "messages": PLAIN, "keep_alive": "5m"})),
    Payload("Ollama lines", "ollama", lines(OLLAMA)),
]

#: Files of programs.
SESSIONS = [
    Payload("pi version 1", "pi", lines(PI_1)),
    Payload("pi version 2", "pi", lines(PI_2)),
    Payload("pi version 3", "pi", lines(PI_3)),
    Payload("pi, just begun", "pi", lines(PI_3[:1])),
    Payload("pi, records as one list", "pi", one([*PI_3])),
    Payload("Claude Code", "claude-code", lines(CLAUDE)),
    Payload("Claude Code, compacted", "claude-code", lines(CLAUDE_COMPACTED)),
    Payload("Codex", "codex", lines(CODEX)),
    Payload("Codex, just begun", "codex", lines(CODEX[:1])),
    Payload("Codex, items bare", "codex", lines(CODEX_OLD)),
    Payload("nanobot", "nanobot", lines(NANOBOT)),
    Payload("nanobot, just begun", "nanobot", lines(NANOBOT[:1])),
    Payload("Chatbox session", "chatbox", one(CHATBOX)),
    Payload("ChatGPT conversation", "chatgpt", one(CHATGPT)),
    Payload("Open WebUI chat", "open-webui", one(OPEN_WEBUI)),
    Payload("LibreChat conversation", "librechat", one(LIBRECHAT)),
    Payload("OpenCode session", "opencode", one(OPENCODE)),
    Payload("Gemini CLI chat", "gemini-cli", one(GEMINI_CLI)),
    Payload("SWE-agent trajectory", "swe-agent", one(SWE_AGENT)),
    Payload("SWE-agent trajectory with calls", "swe-agent", one(SWE_AGENT_CALLS)),
    Payload("Everlong thread", "everlong", one(EVERLONG)),
]
