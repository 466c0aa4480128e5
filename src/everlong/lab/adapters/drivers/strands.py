"""Strands Agents: an agent with a tool, on chat completions or Anthropic's API."""

import asyncio
from importlib.metadata import version
from typing import Any

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager, SummarizingConversationManager
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel

from everlong.lab.adapters.drivers.job import Job, main, read_file


def _model(job: Job) -> Any:
    known = {"context_window_limit": job.window} if job.how == "own" else {}
    options: dict[str, Any] = {"api_key": "key", "max_retries": 0}
    if job.dialect == "messages":
        return AnthropicModel(
            client_args={**options, "base_url": job.address}, model_id=job.model, max_tokens=1_000, **known
        )
    return OpenAIModel(
        client_args={**options, "base_url": f"{job.address}/v1"}, model_id=job.model, stream=job.stream, **known
    )


def _manager(job: Job) -> Any:
    if job.how == "everlong":
        from everlong.adapters.strands import EverlongConversationManager  # noqa: PLC0415 - only where it is measured

        return EverlongConversationManager(job.store, window=job.window)
    if job.how == "own":
        return SummarizingConversationManager(proactive_compression=True)
    return NullConversationManager()


async def _talk(job: Job) -> None:
    agent = Agent(
        model=_model(job),
        system_prompt="You are a careful clerk.",
        tools=[tool(read_file)],
        conversation_manager=_manager(job),
        callback_handler=None,
    )
    for prompt in job.prompts:
        job.answers.append(str(await agent.invoke_async(prompt)).strip())


def run(job: Job) -> None:
    """Do the job in one event loop, because the clients keep their connections."""
    asyncio.run(_talk(job))


if __name__ == "__main__":
    main(run, version("strands-agents"))
