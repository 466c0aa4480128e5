"""openai-agents' `ToolOutputTrimmer()`, called as in `RunConfig(call_model_input_filter=…)`; it takes no budget."""

from agents import Agent
from agents.extensions import ToolOutputTrimmer
from agents.run import CallModelData, ModelInputData

from everlong.lab.peers.shapes import Fitting, Message, split_system, without_empty_calls

AGENT = Agent(name="agent")


def _read(messages: list[Message]) -> ModelInputData:
    """Return items of the Responses API, with the system prompt as instructions."""
    system, rest = split_system(messages)
    items: list[Message] = []
    for message in rest:
        if message["role"] == "tool":
            items.append(
                {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
            )
            continue
        if message.get("reasoning_content"):
            thought = {"type": "summary_text", "text": message["reasoning_content"]}
            items.append({"type": "reasoning", "id": f"rs_{len(items)}", "summary": [thought]})
        if message.get("content"):
            items.append({"role": message["role"], "content": message["content"]})
        calls = message.get("tool_calls") or ()
        items += [{"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls]
    return ModelInputData(input=items, instructions=system[0]["content"] if system else None)


def _trimmed(data: ModelInputData, budget: int) -> ModelInputData:  # noqa: ARG001 - it has no budget to be given
    return ToolOutputTrimmer()(CallModelData(model_data=data, agent=AGENT, context=None))


def _write(data: ModelInputData, _: list[Message]) -> list[Message]:
    system = {"role": "system", "content": data.instructions}
    written: list[Message] = [system] if data.instructions is not None else []
    for item in data.input:
        match item:
            case {"type": "function_call_output"}:
                written.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
            case {"type": "reasoning"}:
                thought = item["summary"][0]["text"]
                written.append({"role": "assistant", "content": None, "tool_calls": [], "reasoning_content": thought})
            case {"type": "function_call"}:
                function = {"name": item["name"], "arguments": item["arguments"]}
                _assistant_message(written)["tool_calls"].append(
                    {"id": item["call_id"], "type": "function", "function": function}
                )
            case {"role": "assistant"}:
                _assistant_message(written, words=True)["content"] = item["content"]
            case _:
                written.append(dict(item))
    return without_empty_calls(written)


def _assistant_message(written: list[Message], *, words: bool = False) -> Message:
    """Return the assistant message under construction. Text after text or calls starts a new one."""
    last = written[-1] if written else {"role": ""}
    if last["role"] != "assistant" or (words and (last["content"] or last["tool_calls"])):
        written.append({"role": "assistant", "content": None, "tool_calls": []})
    return written[-1]


STRATEGIES = {"trim": Fitting(read=_read, fit=_trimmed, write=_write)}
