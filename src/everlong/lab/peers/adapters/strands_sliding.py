"""strands' `SlidingWindowConversationManager()`: the agent sends, gets an overflow error, reduces, sends again.

The loop below is what the agent does with each overflow error; the model that answers with one counts exactly. That
counting is the provider's work, so every text is counted before the clock starts.
"""

import json
from types import SimpleNamespace
from typing import Any

from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.types.exceptions import ContextWindowOverflowException

from everlong.lab.peers.rules import total
from everlong.lab.peers.shapes import FAILURES, Fitting, Message, split_system, without_empty_calls

SYSTEM, MESSAGES = 0, 1


def _reduced(history: tuple[list[Message], list[Any]], budget: int) -> tuple[list[Message], list[Any]]:
    manager = SlidingWindowConversationManager()
    agent = SimpleNamespace(messages=history[MESSAGES])
    while total(_write((history[SYSTEM], agent.messages), [])) > budget:
        manager.reduce_context(agent, e=ContextWindowOverflowException("too long"))
    return history[SYSTEM], agent.messages


def _read(messages: list[Message]) -> tuple[list[Message], list[Any]]:
    """Return the system prompt apart, and the results of a step in one user message."""
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


def _write(history: tuple[list[Message], list[Any]], _: list[Message]) -> list[Message]:
    written: list[Message] = [*history[SYSTEM]]
    for message in history[MESSAGES]:
        out: Message = {"role": message["role"], "content": None, "tool_calls": []}
        results = []
        for block in message["content"]:
            match block:
                case {"text": text}:
                    out["content"] = text
                case {"reasoningContent": {"reasoningText": {"text": text}}}:
                    out["reasoning_content"] = text
                case {"toolUse": use}:
                    function = {"name": use["name"], "arguments": json.dumps(use["input"])}
                    out["tool_calls"].append({"id": use["toolUseId"], "type": "function", "function": function})
                case {"toolResult": result}:
                    content = result["content"][0]["text"]
                    results.append({"role": "tool", "tool_call_id": result["toolUseId"], "content": content})
        written += results or [out]
    return without_empty_calls(written)


STRATEGIES = {
    "sliding": Fitting(read=_read, fit=_reduced, write=_write, failures=(*FAILURES, ContextWindowOverflowException))
}
