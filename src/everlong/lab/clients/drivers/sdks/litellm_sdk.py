"""litellm as an SDK: an agent's loop over `completion`, sent as OpenAI chat or as Anthropic messages."""

from importlib.metadata import version
from typing import Any

import litellm

from everlong.lab.clients.drivers.task import Task, read, run, tool

TOOL: Any = {"type": "function", "function": tool()}


def _chat(task: Task) -> None:
    _talk(task, {"model": f"openai/{task.model}", "api_base": f"{task.address}/v1"})


def _messages(task: Task) -> None:
    _talk(task, {"model": f"anthropic/{task.model}", "api_base": task.address, "max_tokens": 1_000})


def _talk(task: Task, settings: dict[str, Any]) -> None:
    messages: list[Any] = [{"role": "system", "content": "You are a careful clerk."}]
    for prompt in task.prompts:
        messages.append({"role": "user", "content": prompt})
        while True:
            answer: Any = litellm.completion(
                messages=messages, tools=[TOOL], stream=task.stream, api_key="key", num_retries=0, **settings
            )
            if task.stream:
                answer = litellm.stream_chunk_builder(list(answer), messages=messages)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": read(call.function.arguments)}
                for call in message.tool_calls
            ]
        task.answers.append(message.content or "")


if __name__ == "__main__":
    run({"chat": _chat, "messages": _messages}, version("litellm"))
