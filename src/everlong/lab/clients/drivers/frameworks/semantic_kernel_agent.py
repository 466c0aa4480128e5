"""Semantic Kernel: a `ChatCompletionAgent` with a plug-in, on OpenAI chat or Anthropic."""

import asyncio
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent  # type: ignore[import-not-found]
from semantic_kernel.connectors.ai.anthropic import AnthropicChatCompletion  # type: ignore[import-not-found]
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion  # type: ignore[import-not-found]
from semantic_kernel.functions import kernel_function  # type: ignore[import-not-found]

from everlong.lab.clients.drivers.task import Task, run

WHO: dict[str, Any] = {"name": "clerk", "instructions": "You are a careful clerk."}


class Files:
    """The plug-in."""

    @kernel_function(name="read_file", description="Read a text file.")  # type: ignore[untyped-decorator]
    def read_file(self, path: str) -> str:
        """Return the text of a file."""
        return Path(path).read_text(encoding="utf-8")


def _chat(task: Task) -> None:
    client = AsyncOpenAI(base_url=f"{task.address}/v1", api_key="key", max_retries=0)
    service = OpenAIChatCompletion(ai_model_id=task.model, async_client=client)
    asyncio.run(_talk(task, ChatCompletionAgent(service=service, plugins=[Files()], **WHO)))


def _messages(task: Task) -> None:
    client = AsyncAnthropic(base_url=task.address, api_key="key", max_retries=0)
    service = AnthropicChatCompletion(ai_model_id=task.model, api_key="key", async_client=client)
    asyncio.run(_talk(task, ChatCompletionAgent(service=service, plugins=[Files()], **WHO)))


async def _talk(task: Task, agent: Any) -> None:
    thread: Any = None
    for prompt in task.prompts:
        if task.stream:
            pieces = [piece async for piece in agent.invoke_stream(messages=prompt, thread=thread)]
            task.answers.append("".join(str(piece.message) for piece in pieces))
            thread = pieces[-1].thread
        else:
            answer = await agent.get_response(messages=prompt, thread=thread)
            task.answers.append(str(answer.message))
            thread = answer.thread


if __name__ == "__main__":
    run({"chat": _chat, "messages": _messages}, version("semantic-kernel"))
