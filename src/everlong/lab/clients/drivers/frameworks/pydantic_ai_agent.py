"""pydantic-ai: an `Agent` with a tool, on its OpenAI chat, OpenAI responses or Anthropic model."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from everlong.lab.clients.drivers.task import Task, run


def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


def _chat(task: Task) -> None:
    provider = OpenAIProvider(base_url=f"{task.address}/v1", api_key="key")
    _talk(task, OpenAIChatModel(task.model, provider=provider))


def _responses(task: Task) -> None:
    provider = OpenAIProvider(base_url=f"{task.address}/v1", api_key="key")
    _talk(task, OpenAIResponsesModel(task.model, provider=provider))


def _messages(task: Task) -> None:
    provider = AnthropicProvider(base_url=task.address, api_key="key")
    _talk(task, AnthropicModel(task.model, provider=provider, settings={"max_tokens": 1_000}))


async def _consume(_: Any, events: Any) -> None:
    """Read the events of an agent; with such a handler it streams every answer."""
    async for _event in events:
        pass


def _talk(task: Task, model: Any) -> None:
    agent = Agent(model, tools=[read_file], system_prompt="You are a careful clerk.")
    history: list[Any] = []
    for prompt in task.prompts:
        handler = {"event_stream_handler": _consume} if task.stream else {}
        result = agent.run_sync(prompt, message_history=history, **handler)
        task.answers.append(result.output)
        history = result.all_messages()


if __name__ == "__main__":
    run({"chat": _chat, "responses": _responses, "messages": _messages}, version("pydantic-ai-slim"))
