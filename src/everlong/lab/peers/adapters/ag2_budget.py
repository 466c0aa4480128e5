"""AG2's `TokenBudgetPolicy(max_tokens=…)` behind `ConversationPolicy()`, as an `Agent(assembly=[…])` applies them.

It counts a quarter of the characters of each event's representation. The system prompt is separate and is subtracted
from the budget. AG2's `compaction_verifier` is not a way to fit: it measures ways to fit by letting an agent continue.
"""

import asyncio
from typing import Any

from ag2.context import ConversationContext
from ag2.events import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallEvent,
    ToolCallsEvent,
    ToolResultEvent,
    ToolResultsEvent,
)
from ag2.events.tool_events import ToolResult
from ag2.policies import ConversationPolicy, TokenBudgetPolicy
from ag2.stream import MemoryStream

from everlong.lab.peers.rules import total
from everlong.lab.peers.shapes import Fitting, Message, split_system

#: The system prompt, and each event with its messages.
History = tuple[list[Message], list[tuple[Any, list[Message]]]]


def _budgeted(history: History, budget: int) -> History:
    return asyncio.run(_applied(history, budget))


async def _applied(history: History, budget: int) -> History:
    system, pairs = history
    context = ConversationContext(MemoryStream())
    prompts: list[str] = []
    events = [event for event, _ in pairs]
    for policy in (ConversationPolicy(), TokenBudgetPolicy(max_tokens=budget - total(system))):
        prompts, events = await policy.apply(prompts, events, context)
    left = {id(event) for event in events}
    return system, [pair for pair in pairs if id(pair[0]) in left]


def _read(messages: list[Message]) -> History:
    system, rest = split_system(messages)
    events: list[tuple[Any, list[Message]]] = []
    names: dict[str, str] = {}
    for message in rest:
        match message["role"]:
            case "user" | "system":
                events.append((ModelRequest.ensure_request([message["content"]]), [message]))
            case "tool":
                result = _result(message, names)
                if events and isinstance(events[-1][0], ToolResultsEvent):
                    events[-1][0].results.append(result)
                    events[-1][1].append(message)
                else:
                    events.append((ToolResultsEvent([result]), [message]))
            case _:
                names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
                events.append((_response(message), [message]))
    return system, events


def _response(message: Message) -> ModelResponse:
    calls = [
        ToolCallEvent(call["function"]["name"], id=call["id"], arguments=call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    words = message.get("content")
    return ModelResponse(ModelMessage(words) if words else None, tool_calls=ToolCallsEvent(calls))


def _result(message: Message, names: dict[str, str]) -> ToolResultEvent:
    call = message["tool_call_id"]
    return ToolResultEvent(parent_id=call, name=names.get(call, "tool"), result=ToolResult(message["content"]))


def _write(history: History, _: list[Message]) -> list[Message]:
    system, pairs = history
    return [*system, *(message for _, messages in pairs for message in messages)]


STRATEGIES = {"budget": Fitting(read=_read, fit=_budgeted, write=_write)}
