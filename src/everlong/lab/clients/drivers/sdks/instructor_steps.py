"""instructor: every answer is an object, the next step, which arrives as the call of a tool; the file is its result."""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import instructor  # type: ignore[import-not-found]
from anthropic import Anthropic
from openai import OpenAI
from pydantic import BaseModel

from everlong.lab.clients.drivers.task import Task, run


class Step(BaseModel):
    """The next step: the path of a file to read, or what is said when all are read."""

    path: str
    said: str


def _chat(task: Task) -> None:
    client = instructor.from_openai(OpenAI(base_url=f"{task.address}/v1", api_key="key", max_retries=0))
    _talk(task, client, _chat_turn)


def _messages(task: Task) -> None:
    client = instructor.from_anthropic(Anthropic(base_url=task.address, api_key="key", max_retries=0))
    _talk(task, client, _messages_turn, max_tokens=1_000)


def _talk(task: Task, client: Any, turn: Callable[[Any, str], list[Any]], **settings: Any) -> None:
    messages: list[Any] = [{"role": "system", "content": "You are a careful clerk."}]
    for prompt in task.prompts:
        messages.append({"role": "user", "content": prompt})
        while True:
            step, answer = client.chat.completions.create_with_completion(
                response_model=Step, model=task.model, messages=messages, max_retries=0, **settings
            )
            messages += turn(answer, Path(step.path).read_text(encoding="utf-8") if step.path else "Noted.")
            if not step.path:
                break
        task.answers.append(step.said)


def _chat_turn(answer: Any, result: str) -> list[Any]:
    """Return an answer and the result of its call as messages."""
    message = answer.choices[0].message
    (call,) = message.tool_calls
    said = {"role": "tool", "tool_call_id": call.id, "content": result}
    return [{"content": ""} | message.model_dump(exclude_none=True), said]


def _messages_turn(answer: Any, result: str) -> list[Any]:
    """The same for Anthropic."""
    (call,) = [block for block in answer.content if block.type == "tool_use"]
    content = [block.model_dump(exclude_none=True) for block in answer.content]
    block = {"type": "tool_result", "tool_use_id": call.id, "content": result}
    return [{"role": "assistant", "content": content}, {"role": "user", "content": [block]}]


if __name__ == "__main__":
    run({"chat": _chat, "messages": _messages}, version("instructor"))
