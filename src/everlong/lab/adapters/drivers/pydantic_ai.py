"""pydantic-ai: an `Agent` with a tool, on its OpenAI chat, OpenAI responses or Anthropic model."""

import asyncio
from importlib.metadata import version
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from everlong.lab.adapters.drivers.job import Job, main, read_file

#: The window in the settings of the framework's own compaction: its profiles do not know scripted models.
OWN_WINDOW = 16_000


#: Requests to Anthropic always name a length, by default that of the longest possible answer.
LONGEST_ANSWER = 1_000


def _model(job: Job) -> Any:
    if job.dialect == "messages":
        provider = AnthropicProvider(base_url=job.address, api_key="key")
        return AnthropicModel(job.model, provider=provider, settings={"max_tokens": LONGEST_ANSWER})
    openai = OpenAIProvider(base_url=f"{job.address}/v1", api_key="key")
    kind = OpenAIResponsesModel if job.dialect == "responses" else OpenAIChatModel
    return kind(job.model, provider=openai)


def _capabilities(job: Job) -> list[Any]:
    if job.how == "everlong":
        from everlong.adapters.pydantic_ai import EverlongCapability  # noqa: PLC0415 - only where it is wanted

        return [EverlongCapability(job.store, window=job.window)]
    if job.how == "own":
        from pydantic_ai_harness import (  # noqa: PLC0415 - its environment alone has it
            ClearToolResults,
            SummarizingCompaction,
            TieredCompaction,
        )

        # As its documentation recommends: cheap tiers first, a summary only if they are not enough.
        tiers = [ClearToolResults(max_tokens=1, keep_pairs=3), SummarizingCompaction(max_messages=1)]
        return [TieredCompaction(tiers=tiers, target_fraction=0.8, context_window=OWN_WINDOW)]
    return []


async def _consume(_: Any, events: Any) -> None:
    """Read the events of an agent; with such a handler it streams every answer."""
    async for _event in events:
        pass


async def _talk(job: Job) -> None:
    agent: Any = Agent(
        _model(job), tools=[read_file], system_prompt="You are a careful clerk.", capabilities=_capabilities(job)
    )
    history: list[Any] = []
    async with agent:
        for prompt in job.prompts:
            handler = {"event_stream_handler": _consume} if job.stream else {}
            result = await agent.run(prompt, message_history=history, **handler)
            job.answers.append(result.output)
            history = result.all_messages()


def run(job: Job) -> None:
    """Do the job."""
    asyncio.run(_talk(job))


if __name__ == "__main__":
    main(run, version("pydantic-ai-slim"))
