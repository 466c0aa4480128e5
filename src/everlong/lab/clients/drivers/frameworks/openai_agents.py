"""OpenAI Agents SDK: an `Agent` with a function tool, on chat completions or responses."""

import asyncio
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI

from everlong.lab.clients.drivers.task import Task, run


@function_tool  # type: ignore[untyped-decorator]
def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


def _chat(task: Task) -> None:
    asyncio.run(_talk(task, OpenAIChatCompletionsModel))


def _responses(task: Task) -> None:
    asyncio.run(_talk(task, OpenAIResponsesModel))


async def _talk(task: Task, kind: Any) -> None:
    client = AsyncOpenAI(base_url=f"{task.address}/v1", api_key="key", max_retries=0)
    model = kind(model=task.model, openai_client=client)
    agent = Agent(name="clerk", instructions="You are a careful clerk.", tools=[read_file], model=model)
    items: list[Any] = []
    for prompt in task.prompts:
        items.append({"role": "user", "content": prompt})
        if task.stream:
            result: Any = Runner.run_streamed(agent, items)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, items)
        items = result.to_input_list()
        task.answers.append(str(result.final_output))


if __name__ == "__main__":
    run({"chat": _chat, "responses": _responses}, version("openai-agents"))
