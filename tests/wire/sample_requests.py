"""One request a provider that it takes, and changes that spoil it: the rows of the validators' tests."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

__all__ = ["ACCEPTED", "REFUSED", "Payload", "Spoiled", "chat_call"]

Payload = dict[str, Any]
GONE = object()
MARKED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}


@dataclass(frozen=True)
class Spoiled:
    """A change: the value to put at a path, the problem it makes, and where it shows if not on that path."""

    path: str
    value: Any
    text: str
    where: str = ""

    def apply(self, payload: Payload) -> Payload:
        """The payload with the change."""
        spoiled = deepcopy(payload)
        *steps, last = [int(step) if step.isdigit() else step for step in self.path.split(".")]
        place: Any = spoiled
        for step in steps:
            place = place[step]
        if self.value is GONE:
            del place[last]
        else:
            place[last] = self.value
        return spoiled

    def is_at(self, where: str) -> bool:
        """Whether a problem at `where` is this one. Example: path "a.2.b" -> "a[2]" or "a[2].b" """
        steps = [f"[{step}]" if step.isdigit() else f".{step}" for step in self.path.split(".")]
        return where == self.where if self.where else "".join(steps)[1:].startswith(where)


def chat() -> Payload:
    return {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Read a.py and b.py.", "name": "小明"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
                    {"id": "b", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "b", "content": "y = 2"},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x = 1"}]},
            {"role": "assistant", "content": "x is 1."},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},
            {"role": "assistant", "content": "", "tool_calls": [chat_call("a")]},
            {"role": "tool", "tool_call_id": "a", "content": "the same id again, in a later turn"},
        ]
    }


def chat_call(call: str) -> Payload:
    return {"id": call, "type": "function", "function": {"name": "read", "arguments": "{}"}}


def responses() -> Payload:
    return {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Read a.py."},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
            {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": "{}"},
            {"type": "function_call", "id": "fc_2", "call_id": "b", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "b", "output": "y = 2"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And?"}]},
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "x = 1"}]},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x is 1."}]},
        ],
    }


def anthropic() -> Payload:
    return {
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Read a.py and b.py."},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Two files.", "signature": "EqQB"},
                    {"type": "text", "text": "Reading."},
                    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "y = 2"},
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "x = 1"}]},
                    {"type": "text", "text": "Go on."},
                ],
            },
            {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}}]},
            {"role": "system", "content": "The user is in a hurry."},
            {"role": "assistant", "content": "x is 1."},
        ],
    }


def gemini() -> Payload:
    return {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Read a.py and b.py."}, {"inline_data": {"data": "aGk="}}]},
            {
                "role": "model",
                "parts": [
                    {"text": "", "thoughtSignature": "EqQB"},
                    {"functionCall": {"name": "read", "args": {"path": "a.py"}}, "thoughtSignature": "EqQB"},
                    {"function_call": {"name": "list.all", "args": None}, "text": None},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "list.all", "response": {}}},
                    {"functionResponse": {"name": "read", "response": {"output": "x = 1"}}},
                ],
            },
            {"role": "model", "parts": [{"text": "x is 1."}]},
        ],
    }


def ollama() -> Payload:
    return {
        "model": "llama3.2",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Read a.py and b.py.", "images": ["aGk="]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "Two files.",
                "tool_calls": [
                    {"function": {"name": "read", "arguments": {"path": "a.py"}}},
                    {"id": "b", "function": {"index": 1, "name": "list", "arguments": {}}},
                ],
            },
            {"role": "tool", "tool_call_id": "b", "content": "b.py"},
            {"role": "tool", "tool_name": "read", "content": "x = 1"},
            {"role": "assistant", "content": "x is 1."},
            {"role": "User", "content": "And?"},
            {"role": "assistant", "tool_calls": [{"function": {"name": "read", "arguments": {}}}]},
            {"role": "tool", "content": "nothing names the tool"},
        ],
        "options": {"num_ctx": 8_192},
    }


ACCEPTED: dict[str, Callable[[], Payload]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "ollama": ollama,
}

REFUSED: dict[str, list[Spoiled]] = {
    "openai-chat": [
        Spoiled("messages", [], "no messages"),
        Spoiled("messages", chat()["messages"][:1], "only system messages"),
        Spoiled("messages.1", "hi", "not an object"),
        Spoiled("messages.1.role", "bot", "unknown role 'bot'"),
        Spoiled("messages.1", GONE, "first message is from assistant"),
        Spoiled("messages.1.name", "A B", "name 'A B'"),
        Spoiled("messages.5.content", None, "is empty"),
        Spoiled("messages.1.content", " \n", "user message is empty"),
        Spoiled("messages.3.content", "", "tool message is empty"),
        Spoiled("messages.1.content", 5, "neither text nor"),
        Spoiled("messages.4.content.0.text", "", "block is empty"),
        Spoiled("messages.4.content.0", "hi", "not a content block"),
        Spoiled("messages.6.content.0.image_url.url", "data:image/png;base64,", "image is empty"),
        Spoiled("messages.5.content", chat()["messages"][6]["content"], "contains an image", "messages[5].content[0]"),
        Spoiled("messages.5.tool_calls", [], "empty list"),
        Spoiled("messages.1.tool_calls", [chat_call("z")], "makes calls"),
        Spoiled("messages.2.tool_calls.0.id", "", "no id"),
        Spoiled("messages.2.tool_calls.1.id", "a", "appears twice"),
        Spoiled("messages.2.tool_calls.0.function.name", "", "has no function name"),
        Spoiled("messages.2.tool_calls.0.function.arguments", '{"p', "arguments are not JSON"),
        Spoiled("messages.2.tool_calls.0.function.arguments", "", "arguments are not JSON"),
        Spoiled("messages.2.tool_calls.0.function.arguments", {}, "arguments are not JSON text"),
        Spoiled("messages.2.tool_calls.0.function.arguments", '{"a": NaN}', "arguments are not JSON"),
        Spoiled("messages.2.tool_calls.0.function.arguments", "[" * 101 + "]" * 101, "arguments are not JSON"),
        Spoiled("messages.2.tool_calls.0.function.arguments", '{"a": "\\ud83d"}', "half a surrogate pair"),
        Spoiled("messages.3", GONE, "call b has no result", "messages[2]"),
        Spoiled("messages.3.role", "user", "call b has no result", "messages[2]"),
        Spoiled("messages.8", GONE, "call a has no result", "messages[7]"),
        Spoiled("messages.3.tool_call_id", "z", "tool result z has no matching call"),
        Spoiled("messages.3.tool_call_id", "a", "tool result a appears twice", "messages[4]"),
        Spoiled("messages.3.tool_call_id", GONE, "has no call id"),
        Spoiled("messages.1.content", "\ud83d", "half a surrogate"),
        Spoiled("messages.1.x", {"\ud83d": 1}, "a key contains half"),
    ],
    "openai-responses": [
        Spoiled("input", [], "no input"),
        Spoiled("input", " ", "no input"),
        Spoiled("input.0", "hi", "not an object"),
        Spoiled("input.7", {"id": 5}, "no type"),
        Spoiled("input.0.role", "bot", "unknown role 'bot'"),
        Spoiled("input.0", GONE, "not a user message"),
        Spoiled("input", [{"role": "system", "content": "x"}], "only system messages"),
        Spoiled("input.0.content", "", "user message is empty"),
        Spoiled("input.5.content.0.text", "", "block is empty"),
        Spoiled("input.5.content.0.type", "output_text", "user message contains output_text"),
        Spoiled("input.8.content.0.type", "input_text", "assistant message contains input_text"),
        Spoiled("input.5.content.0", {"type": "input_image", "image_url": ""}, "image is empty"),
        Spoiled("input.2.arguments", '{"p', "arguments are not JSON"),
        Spoiled("input.2.name", "mcp.read", "tool name 'mcp.read'"),
        Spoiled("input.2.call_id", "x" * 65, "is not accepted"),
        Spoiled("input.3.call_id", "a", "call id a is not unique"),
        Spoiled("input.6", GONE, "call a has no result", "input[2]"),
        Spoiled("input.6.call_id", "z", "tool result z has no matching call"),
        Spoiled("input.6.call_id", "b", "tool result b appears twice"),
        Spoiled("input.4.output", "", "tool result is empty"),
        Spoiled("input.8", {"type": "reasoning", "summary": []}, "not followed"),
        Spoiled("input.3", {"type": "reasoning", "summary": []}, "not followed"),
        Spoiled("input.1.summary", GONE, "no summary"),
        Spoiled("input.3.id", "fc_1", "item fc_1 appears twice"),
        Spoiled("instructions", "\ude00", "half a surrogate"),
    ],
    "anthropic": [
        Spoiled("messages", [], "no messages"),
        Spoiled("messages.0.role", "tool", "neither user nor assistant"),
        Spoiled("messages.0", GONE, "first message is from assistant"),
        Spoiled("messages.5.role", "system", "does not follow a user message"),
        Spoiled("messages.0.content", "", "user message is empty"),
        Spoiled("messages.3.content", [], "user message is empty"),
        Spoiled("messages.0.content", None, "neither text nor blocks"),
        Spoiled("messages.1.content.1.text", "", "block is empty"),
        Spoiled("messages.1.content.1.text", "\n", "block is empty"),
        Spoiled("system", [{"type": "text", "text": ""}], "block is empty", "system[0]"),
        Spoiled("messages.3.content.0", {"text": "x"}, "not a content block"),
        Spoiled("messages.5.content", "x is 1. \n", "ends in whitespace"),
        Spoiled("messages.5.content", [{"type": "text", "text": "x "}], "ends in whitespace"),
        Spoiled("messages.1.content.2.id", "functions.read:0", "call id 'functions.read:0'"),
        Spoiled("messages.1.content.2.name", "mcp.read", "tool name 'mcp.read'"),
        Spoiled("messages.1.content.2.name", "r" * 129, "tool name"),
        Spoiled("messages.1.content.2.input", "{}", "input is not an object"),
        Spoiled("messages.1.content.2.input", GONE, "input is not an object"),
        Spoiled("messages.1.content.3.id", "toolu_1", "call id toolu_1 is not unique"),
        Spoiled("messages.2.content.0", GONE, "call toolu_2 has no result"),
        Spoiled("messages.2", GONE, "call toolu_1 has no result"),
        Spoiled(
            "messages.5",
            {"role": "assistant", "content": [{"type": "tool_use", "id": "z", "name": "read", "input": {}}]},
            "call z has no result after it",
        ),
        Spoiled("messages.2.content.0.tool_use_id", "z", "tool result z has no matching call"),
        Spoiled("messages.2.content.0.tool_use_id", "toolu_1", "tool result toolu_1 appears twice"),
        Spoiled(
            "messages.2.content.0",
            {"type": "text", "text": "x"},
            "comes after other content",
            "messages[2].content[1]",
        ),
        Spoiled("messages.2.content.0.content", "", "toolu_2 is empty"),
        Spoiled("messages.1.content.0.cache_control", {"type": "ephemeral"}, "thinking has a cache mark"),
        Spoiled("messages.3.content", [MARKED] * 5, "5 cache marks", "cache_control"),
        Spoiled("tools", [MARKED] * 5, "5 cache marks", "cache_control"),
        Spoiled("messages.2.content.1.content", [MARKED] * 5, "5 cache marks", "cache_control"),
        Spoiled("messages.2.content.1.content.0.text", "", "block is empty"),
        Spoiled("messages.1.content.0.signature", "", "no signature"),
        Spoiled(
            "messages.3.content",
            anthropic()["messages"][1]["content"][:1],
            "user message contains thinking",
            "messages[3].content[0]",
        ),
        Spoiled(
            "messages.5.content",
            anthropic()["messages"][3]["content"],
            "assistant message contains image",
            "messages[5].content[0]",
        ),
        Spoiled("messages.3.content.0.source", {"type": "base64", "data": ""}, "image is empty"),
        Spoiled("messages.5.content", anthropic()["messages"][1]["content"][:1], "ends in thinking"),
        Spoiled("messages.1.content.2.input.path", "\ud83d", "half a surrogate"),
    ],
    "gemini": [
        Spoiled("contents", [], "no contents"),
        Spoiled("contents.0.role", "assistant", "neither user nor model"),
        Spoiled("contents.0", GONE, "first turn is from model"),
        Spoiled("contents.3.role", "user", "two turns from user"),
        Spoiled("contents.3.parts", [], "model turn is empty"),
        Spoiled("contents.3.parts.0.text", "", "text part is empty"),
        Spoiled("contents.3.parts.0", {"thought": True}, "part is empty"),
        Spoiled("systemInstruction.parts.0.text", "", "empty"),
        Spoiled("contents.0.parts.1.inline_data.data", "", "image is empty"),
        Spoiled("contents.1.parts.1.functionCall.name", "", "function name ''"),
        Spoiled("contents.1.parts.1.functionCall.name", "9lives", "function name '9lives'"),
        Spoiled("contents.1.parts.1.functionCall.args", "{}", "args is not an object"),
        Spoiled("contents.2.parts.1.functionResponse.response", "ok", "response is not an object"),
        Spoiled("contents.2.parts.0", GONE, "1 function responses to 2 function calls"),
        Spoiled("contents.1.parts.2", GONE, "2 function responses to 1 function calls", "contents[2]"),
        Spoiled("contents.2.parts.0.functionResponse.name", "read", "responses are from"),
        Spoiled("contents.3.parts.0", {"functionCall": {"name": "read"}}, "0 function responses to 1"),
        Spoiled("contents.0.parts.0", {"functionCall": {"name": "read"}}, "belongs to model"),
        Spoiled("contents.0.parts.0.text", "\ud83d", "half a surrogate"),
    ],
    "ollama": [
        Spoiled("messages", [], "no messages"),
        Spoiled("messages", ollama()["messages"][:1], "only system messages"),
        Spoiled("messages.1", "hi", "not an object"),
        Spoiled("messages.1.role", "developer", "unknown role 'developer'"),
        Spoiled("messages.1", GONE, "first message is from assistant"),
        Spoiled("messages.5.content", [{"type": "text", "text": "x"}], "not text"),
        Spoiled("messages.5.content", " \n", "assistant message is empty"),
        Spoiled("messages.3.content", "", "tool message is empty"),
        Spoiled("messages.2.thinking", 5, "not text"),
        Spoiled("messages.6.thinking", "Hm.", "user message contains thinking"),
        Spoiled("messages.1.images", "aGk=", "not a list"),
        Spoiled("messages.1.images.0", "", "empty or not base64"),
        Spoiled("messages.1.images.0", "data:image/png;base64,aGk=", "empty or not base64"),
        Spoiled("messages.5.images", ["aGk="], "contains an image"),
        Spoiled("messages.2.tool_calls", {}, "not a list"),
        Spoiled("messages.6.tool_calls", ollama()["messages"][7]["tool_calls"], "makes calls"),
        Spoiled("messages.2.tool_calls.0.function.name", "", "has no function name"),
        Spoiled("messages.2.tool_calls.0.function.arguments", "{}", "arguments are not an object"),
        Spoiled("messages.2.tool_calls.1.id", 5, "id is not text"),
        Spoiled("messages.4", GONE, "1 calls have no result", "messages[2]"),
        Spoiled("messages.8", GONE, "1 calls have no result", "messages[7]"),
        Spoiled("messages.4.tool_name", "list", "tool result 'list' has no matching call"),
        Spoiled("messages.5.role", "tool", "has no matching call"),
        Spoiled("options", [], "must be an object"),
        Spoiled("tools", [{"type": "function", "function": {}}], "function with a name", "tools[0]"),
        Spoiled("messages.1.content", "\ud83d", "half a surrogate"),
    ],
}
