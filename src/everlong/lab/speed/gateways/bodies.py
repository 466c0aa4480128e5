"""Requests as a client sends them: all messages so far, tools, a model with a window so large that nothing is cut."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everlong.lab.speed.transcripts import TOOLS

__all__ = ["ANTHROPIC", "MODEL", "OPENAI", "Conversation", "hello", "pace"]

OPENAI, ANTHROPIC = "openai-chat", "anthropic"
MODEL = "gpt-4.1"  # a million tokens
ANTHROPIC_MODEL = "claude-opus-4-6"  # a million tokens
HEAD = "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
PATHS = {OPENAI: "/v1/chat/completions", ANTHROPIC: "/v1/messages"}
KEYS = {
    OPENAI: "authorization: Bearer none\r\n\r\n",
    ANTHROPIC: "x-api-key: none\r\nanthropic-version: 2023-06-01\r\n\r\n",
}

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of a transcript as they are sent, what stands before and behind them, and when a client asks."""

    fmt: str
    settings: bytes
    messages: tuple[bytes, ...]
    tools: bytes
    asks: tuple[int, ...]

    @classmethod
    def read(cls, file: str, fmt: str = OPENAI) -> "Conversation":
        """Out of a stored transcript."""
        messages: list[Message] = json.loads(Path(file).read_text(encoding="utf-8"))
        return cls.of(messages, fmt)

    @classmethod
    def of(cls, messages: list[Message], fmt: str = OPENAI) -> "Conversation":
        """A client asks after a question and when the last result of a step has come.

        Example: system, user, call, result, result, answer, user -> after 2, 5, 7 messages
        """
        settings: Message = {"model": MODEL}
        tools: list[Message] = TOOLS
        if fmt == ANTHROPIC:
            system, messages = _as_anthropic(messages)
            settings = {"model": ANTHROPIC_MODEL, "max_tokens": 1_024, "system": system}
            tools = [_anthropic_tool(tool["function"]) for tool in TOOLS]
        roles = [message["role"] for message in messages]
        asks = tuple(
            count
            for count, (role, following) in enumerate(zip(roles, [*roles[1:], ""], strict=True), 1)
            if role == "user" or (role == "tool" and following != "tool")
        )
        return cls(fmt, _packed(settings)[1:-1], tuple(map(_packed, messages)), _packed(tools), asks)

    def request(self, count: int, *, streamed: bool) -> bytes:
        """The whole request after so many messages."""
        start = b'{"stream":%b,%b,"messages":[' % (b"true" if streamed else b"false", self.settings)
        body = b"".join((start, b",".join(self.messages[:count]), b'],"tools":', self.tools, b"}"))
        return (HEAD.format(path=PATHS[self.fmt], length=len(body)) + KEYS[self.fmt]).encode() + body


def hello(fmt: str = OPENAI, *, streamed: bool = False) -> bytes:
    """The smallest request that must be answered."""
    return Conversation.of([{"role": "user", "content": "Hello"}], fmt).request(1, streamed=streamed)


def pace(milliseconds: int) -> bytes:
    """Asks the upstream to think so long from now on."""
    return (HEAD.format(path=f"/pace/{milliseconds}", length=0) + KEYS[OPENAI]).encode()


def _as_anthropic(messages: list[Message]) -> tuple[str, list[Message]]:
    """The system text and the rest, the results of a step together in one message."""
    system = ""
    written: list[Message] = []
    for message in messages:
        match message["role"]:
            case "system":
                system = message["content"]
            case "assistant":
                written.append({"role": "assistant", "content": _blocks(message)})
            case "tool":
                block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
                if isinstance(written[-1]["content"], list) and written[-1]["role"] == "user":
                    written[-1]["content"].append(block)
                else:
                    written.append({"role": "user", "content": [block]})
            case _:
                written.append(message)
    return system, written


def _blocks(message: Message) -> list[Message]:
    text = [{"type": "text", "text": message["content"]}] if message["content"] else []
    calls = [
        {"type": "tool_use", "id": call["id"], "name": call["function"]["name"]}
        | {"input": json.loads(call["function"]["arguments"])}
        for call in message.get("tool_calls", ())
    ]
    return [*text, *calls]


def _anthropic_tool(function: Message) -> Message:
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }


def _packed(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
