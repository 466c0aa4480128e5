"""The ollama client for Python: an agent's loop over its chat, plain or streamed. Nothing has an id."""

import json
from importlib.metadata import version
from typing import Any

import ollama  # type: ignore[import-not-found]

from everlong.lab.clients.drivers.task import Task, read, run, tool

TOOL: Any = {"type": "function", "function": tool()}


def _chat(task: Task) -> None:
    client = ollama.Client(host=task.address)
    messages: list[Any] = [{"role": "system", "content": "You are a careful clerk."}]
    for prompt in task.prompts:
        messages.append({"role": "user", "content": prompt})
        while True:
            message = _answer(client, task, messages)
            messages.append(message)
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                text = read(json.dumps(dict(call.function.arguments)))
                messages.append({"role": "tool", "tool_name": call.function.name, "content": text})
        task.answers.append(message.content or "")


def _answer(client: ollama.Client, task: Task, messages: list[Any]) -> Any:
    request: Any = {"model": task.model, "messages": messages, "tools": [TOOL]}
    if not task.stream:
        return client.chat(**request).message
    said = ""
    calls: list[Any] = []
    for part in client.chat(**request, stream=True):
        said += part.message.content or ""
        calls += part.message.tool_calls or []
    return ollama.Message(role="assistant", content=said, tool_calls=calls or None)


if __name__ == "__main__":
    run({"chat": _chat}, version("ollama"))
