"""AutoGen: an `AssistantAgent` with a tool, on its OpenAI or Anthropic model client."""

import asyncio
from importlib.metadata import version
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent  # type: ignore[import-not-found]
from autogen_ext.models.anthropic import AnthropicChatCompletionClient  # type: ignore[import-not-found]
from autogen_ext.models.openai import OpenAIChatCompletionClient  # type: ignore[import-not-found]

from everlong.lab.clients.drivers.task import Task, run

ABLE = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "structured_output": False,
    "family": "unknown",
}


async def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


def _chat(task: Task) -> None:
    url = f"{task.address}/v1"
    asyncio.run(_talk(task, OpenAIChatCompletionClient(model=task.model, base_url=url, **_common())))


def _messages(task: Task) -> None:
    client = AnthropicChatCompletionClient(model=task.model, base_url=task.address, max_tokens=1_000, **_common())
    asyncio.run(_talk(task, client))


def _common() -> dict[str, Any]:
    return {"api_key": "key", "max_retries": 0, "model_info": ABLE}


async def _talk(task: Task, client: Any) -> None:
    agent = AssistantAgent(
        "clerk",
        client,
        tools=[read_file],
        system_message="You are a careful clerk.",
        max_tool_iterations=20,
        model_client_stream=task.stream,
    )
    for prompt in task.prompts:
        result = await agent.run(task=prompt)
        task.answers.append(result.messages[-1].to_text())


if __name__ == "__main__":
    run({"chat": _chat, "messages": _messages}, version("autogen-agentchat"))
