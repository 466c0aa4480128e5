"""pydantic-ai-harness: `compact_now(strategy, history, model=…)` with its sliding window and its tiers."""

import asyncio
import json

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai_harness.compaction import (
    ClearToolResults,
    SlidingWindowCompaction,
    SummarizingCompaction,
    TieredCompaction,
    compact_now,
)

from everlong.lab.peers.rules import text_tokens
from everlong.lab.peers.shapes import SUMMARY, Fitting, Message, without_empty_calls

MODEL = TestModel(custom_output_text=SUMMARY)


def _sliding(history: list[ModelMessage], budget: int) -> list[ModelMessage]:
    strategy = SlidingWindowCompaction(max_tokens=budget, keep_tokens=budget, tokenizer=text_tokens)
    return asyncio.run(compact_now(strategy, history, model=MODEL))


def _tiered(history: list[ModelMessage], budget: int) -> list[ModelMessage]:
    tiers = [ClearToolResults(max_tokens=1), SummarizingCompaction(model=MODEL, max_messages=1)]
    return asyncio.run(compact_now(TieredCompaction(tiers=tiers, target_tokens=budget), history, model=MODEL))


def _read(messages: list[Message]) -> list[ModelMessage]:
    """Return requests and responses: the system prompt in the first request, results together in one."""
    history: list[ModelMessage] = []
    tools: dict[str, str] = {}
    for message in messages:
        if message["role"] == "assistant":
            tools |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
            history.append(ModelResponse(parts=_response_parts(message)))
            continue
        if not history or isinstance(history[-1], ModelResponse):
            history.append(ModelRequest(parts=[]))
        history[-1].parts.append(_request_part(message, tools))
    return history


def _request_part(message: Message, tools: dict[str, str]) -> SystemPromptPart | UserPromptPart | ToolReturnPart:
    match message["role"]:
        case "system":
            return SystemPromptPart(message["content"])
        case "tool":
            call = message["tool_call_id"]
            return ToolReturnPart(tools.get(call, "tool"), message["content"], tool_call_id=call)
        case _:
            return UserPromptPart(message["content"])


def _response_parts(message: Message) -> list[ThinkingPart | TextPart | ToolCallPart]:
    parts: list[ThinkingPart | TextPart | ToolCallPart] = []
    if message.get("reasoning_content"):
        parts.append(ThinkingPart(message["reasoning_content"]))
    if message.get("content"):
        parts.append(TextPart(message["content"]))
    return parts + [_call(call) for call in message.get("tool_calls") or ()]


def _call(call: Message) -> ToolCallPart:
    function = call["function"]
    return ToolCallPart(function["name"], function["arguments"], tool_call_id=call["id"])


def _write(history: list[ModelMessage], _: list[Message]) -> list[Message]:
    written: list[Message] = []
    for entry in history:
        if isinstance(entry, ModelResponse):
            written.append(_assistant(entry))
            continue
        for part in entry.parts:
            match part:
                case SystemPromptPart(content=content):
                    written.append({"role": "system", "content": content})
                case ToolReturnPart(content=content, tool_call_id=call):
                    written.append({"role": "tool", "tool_call_id": call, "content": content})
                case UserPromptPart(content=content):
                    written.append({"role": "user", "content": content})
    return without_empty_calls(written)


def _assistant(response: ModelResponse) -> Message:
    message: Message = {"role": "assistant", "content": response.text, "tool_calls": []}
    for part in response.parts:
        if isinstance(part, ThinkingPart):
            message["reasoning_content"] = part.content
        elif isinstance(part, ToolCallPart):
            arguments = part.args if isinstance(part.args, str) else json.dumps(part.args)
            function = {"name": part.tool_name, "arguments": arguments}
            message["tool_calls"].append({"id": part.tool_call_id, "type": "function", "function": function})
    return message


STRATEGIES = {
    "sliding": Fitting(read=_read, fit=_sliding, write=_write),
    "tiered": Fitting(read=_read, fit=_tiered, write=_write),
}
