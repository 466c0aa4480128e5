"""pydantic-ai-harness: `compact_now(strategy, history, model=…)` with its strategies.

`sliding` and `tiered` have a model that always returns the same summary; `summarize` and `relevance` have an extract.
The judge of `relevance` is not a model either: a step is needed as much as it shares long words with the task that the
judge sees. Compaction in the background keeps the same as `summarize`, only sooner. Pins are marks that an application
sets, and nothing here says on what.
"""

import asyncio
import json
import re

from pydantic_ai.messages import (
    CompactionPart,
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
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai_harness.compaction import (
    ClearToolResults,
    RelevanceCompaction,
    SlidingWindowCompaction,
    SummarizingCompaction,
    TieredCompaction,
    compact_now,
)

from everlong.lab.peers.extract import extract, room_for_summary
from everlong.lab.peers.rules import MESSAGE_FRAME, text_tokens, total
from everlong.lab.peers.shapes import SUMMARY, Fitting, Message, without_empty_calls

MODEL = TestModel(custom_output_text=SUMMARY)
ALL = 10_000_000  # tokens: everything that is not summarised is kept, whatever the budget is
NEWEST_SHARE = 4  # one quarter of the budget is kept without judging
FRAME = 200  # tokens around a summary
HEADROOM = 10  # one tenth of the budget: whole messages may exceed their limit, according to its documentation
_WORD = re.compile(r"\w{3,}")
_TASK = re.compile(r"<current_task>(.*?)</current_task>", re.DOTALL)
_STEP = re.compile(r"<earlier_step>(.*?)</earlier_step>", re.DOTALL)


def _sliding(history: list[ModelMessage], budget: int) -> list[ModelMessage]:
    strategy = SlidingWindowCompaction(max_tokens=budget, keep_tokens=budget, tokenizer=text_tokens)
    return asyncio.run(compact_now(strategy, history, model=MODEL))


def _tiered(history: list[ModelMessage], budget: int) -> list[ModelMessage]:
    tiers = [ClearToolResults(max_tokens=1), SummarizingCompaction(model=MODEL, max_messages=1)]
    return asyncio.run(compact_now(TieredCompaction(tiers=tiers, target_tokens=budget), history, model=MODEL))


def _summarized(history: list[ModelMessage], budget: int) -> list[ModelMessage]:
    if _tokens(history) <= budget:
        return history
    room = room_for_summary(budget)
    strategy = SummarizingCompaction(
        model=_summarizer(room),
        max_tokens=budget,
        keep_tokens=max(1, budget - room - FRAME - budget // HEADROOM),
        preserve_first_user_message=False,
        tool_return_max_chars=None,
        tokenizer=_framed,
    )
    return asyncio.run(compact_now(strategy, history, model=MODEL))


def _relevant(history: list[ModelMessage], budget: int) -> list[ModelMessage]:
    if _tokens(history) <= budget:
        return history
    room = room_for_summary(budget)
    strategy = RelevanceCompaction(
        FunctionModel(_judged),
        summarizer=SummarizingCompaction(model=_summarizer(room), max_messages=1, tool_return_max_chars=None),
        max_tokens=budget,
        target_tokens=budget - FRAME,
        keep_tokens=budget // NEWEST_SHARE,
        summary_input_tokens=ALL,
        tokenizer=_framed,
    )
    return asyncio.run(compact_now(strategy, history, model=MODEL))


def _summarizer(room: int) -> FunctionModel:
    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart(extract(_prompt(messages), room, text_tokens))])

    return FunctionModel(answer)


def _judged(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answer the judge's two questions with the share of the task's words, long ones first, that the step contains."""
    prompt = _prompt(messages)
    task, step = (set(_WORD.findall(" ".join(tag.findall(prompt)).lower())) for tag in (_TASK, _STEP))
    weights = {word: len(word) for word in task}
    share = sum(weights[word] for word in task & step) / max(1, sum(weights.values()))
    answer = {"needed_verbatim": min(1.0, share), "still_matters": min(1.0, share)}
    return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, answer)])


def _prompt(messages: list[ModelMessage]) -> str:
    parts = (part for message in messages for part in message.parts if isinstance(part, UserPromptPart))
    return "\n".join(part.content for part in parts if isinstance(part.content, str))


def _framed(text: str) -> int:
    """Count a part with the overhead of its message."""
    return text_tokens(text) + MESSAGE_FRAME


def _tokens(history: list[ModelMessage]) -> int:
    return total(_write(history, []))


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
                case CompactionPart(content=content):
                    words = f"<conversation_summary>\n{content}\n</conversation_summary>"
                    written.append({"role": "user", "content": words})
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
    "summarize": Fitting(read=_read, fit=_summarized, write=_write),
    "relevance": Fitting(read=_read, fit=_relevant, write=_write),
}
