"""strands' `SlidingWindowConversationManager()`: the agent sends, gets an overflow error, reduces, and sends again.

The loop below is what the agent does with each overflow error; the model that returns the error counts exactly. That
counting is the provider's work, so every text is counted before the clock starts.
"""

import json
from types import SimpleNamespace
from typing import Any

from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.types.exceptions import ContextWindowOverflowException

from everlong.lab.peers.rules import total
from everlong.lab.peers.shapes import FAILURES, Fitting, Message, split_system, without_empty_calls

__all__ = ["MESSAGES", "STRATEGIES", "SYSTEM", "read", "write"]

SYSTEM, MESSAGES = 0, 1


def _reduced(history: tuple[list[Message], list[Any]], budget: int) -> tuple[list[Message], list[Any]]:
    manager = SlidingWindowConversationManager()
    agent = SimpleNamespace(messages=history[MESSAGES])
    while total(write((history[SYSTEM], agent.messages), [])) > budget:
        manager.reduce_context(agent, e=ContextWindowOverflowException("too long"))
    return history[SYSTEM], agent.messages


def read(messages: list[Message]) -> tuple[list[Message], list[Any]]:
    """Return the system prompt separately, and the results of a step in one user message."""
    total(messages)
    system, rest = split_system(messages)
    history: list[Any] = []
    for message in rest:
        if message["role"] == "tool":
            result = {
                "toolUseId": message["tool_call_id"],
                "status": "success",
                "content": [{"text": message["content"]}],
            }
            if history and "toolResult" in history[-1]["content"][-1]:
                history[-1]["content"].append({"toolResult": result})
            else:
                history.append({"role": "user", "content": [{"toolResult": result}]})
        else:
            history.append({"role": message["role"], "content": _blocks(message)})
    return system, history


def _blocks(message: Message) -> list[Any]:
    blocks: list[Any] = []
    if message.get("reasoning_content"):
        blocks.append({"reasoningContent": {"reasoningText": {"text": message["reasoning_content"]}}})
    if message.get("content"):
        blocks.append({"text": message["content"]})
    for call in message.get("tool_calls") or ():
        function = call["function"]
        use = {"toolUseId": call["id"], "name": function["name"], "input": json.loads(function["arguments"])}
        blocks.append({"toolUse": use})
    return blocks


def write(history: tuple[list[Message], list[Any]], _: list[Message]) -> list[Message]:
    """Return OpenAI messages: results separate, the texts of a message joined."""
    written: list[Message] = [*history[SYSTEM]]
    for message in history[MESSAGES]:
        out: Message = {"role": message["role"], "content": None, "tool_calls": []}
        results = []
        for block in message["content"]:
            match block:
                case {"text": text}:
                    out["content"] = text if out["content"] is None else f"{out['content']}\n\n{text}"
                case {"reasoningContent": {"reasoningText": {"text": text}}}:
                    out["reasoning_content"] = text
                case {"toolUse": use}:
                    function = {"name": use["name"], "arguments": json.dumps(use["input"])}
                    out["tool_calls"].append({"id": use["toolUseId"], "type": "function", "function": function})
                case {"toolResult": result}:
                    content = result["content"][0]["text"]
                    results.append({"role": "tool", "tool_call_id": result["toolUseId"], "content": content})
        written += results
        if not results or out["content"]:
            written.append(out)
    return without_empty_calls(written)


STRATEGIES = {
    "sliding": Fitting(read=read, fit=_reduced, write=write, failures=(*FAILURES, ContextWindowOverflowException))
}
