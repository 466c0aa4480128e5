"""The Anthropic SDK: an agent's loop over messages, plain or streamed, its cache marker on the newest message."""

import json
from typing import Any

import anthropic

from everlong.lab.clients.drivers.task import Task, read, run, tool

TOOL: Any = {"name": "read_file", "description": tool()["description"], "input_schema": tool()["parameters"]}


def _marked(messages: list[Any]) -> list[Any]:
    """Move the cache marker to the newest block with every request, as is usual."""
    *before, last = messages
    content = last["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    blocks[-1] = blocks[-1] | {"cache_control": {"type": "ephemeral"}}
    return [*before, last | {"content": blocks}]


def _messages(task: Task) -> None:
    client = anthropic.Anthropic(base_url=task.address, api_key="key", max_retries=0)
    messages: list[Any] = []
    for prompt in task.prompts:
        messages.append({"role": "user", "content": prompt})
        while True:
            request: Any = {"model": task.model, "max_tokens": 1_000, "tools": [TOOL], "messages": _marked(messages)}
            request["system"] = "You are a careful clerk."
            if task.stream:
                with client.messages.stream(**request) as stream:
                    message: Any = stream.get_final_message()
            else:
                message = client.messages.create(**request)
            messages.append(
                {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]}
            )
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                break
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": read(json.dumps(call.input))}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})
        task.answers.append(message.content[0].text)


if __name__ == "__main__":
    run({"messages": _messages}, anthropic.__version__)
