"""Microsoft's Agent Framework: an agent with a function tool in one session, on chat completions or responses."""

import asyncio
from importlib.metadata import version
from typing import Any

from agent_framework import Agent, ContextWindowCompactionStrategy
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from openai import AsyncOpenAI

from everlong.lab.adapters.drivers.job import Job, main, read_file

REPLY = 1_000
KINDS: dict[str, Any] = {"chat": OpenAIChatCompletionClient, "responses": OpenAIChatClient}


def _agent(job: Job) -> Agent:
    strategy = None
    if job.how == "own" and job.window:
        strategy = ContextWindowCompactionStrategy(max_context_window_tokens=job.window, max_output_tokens=REPLY)
    client = AsyncOpenAI(base_url=f"{job.address}/v1", api_key="key", max_retries=0)
    providers: list[Any] = []
    if job.how == "everlong":
        from everlong.adapters.agent_framework import EverlongProvider  # noqa: PLC0415 - only where it is measured

        providers = [EverlongProvider(job.store, window=job.window)]
    return Agent(
        KINDS[job.dialect](model=job.model, async_client=client),
        instructions="You are a careful clerk.",
        tools=[read_file],
        context_providers=providers,
        compaction_strategy=strategy,
        default_options={"store": False},  # the history is kept here, not by the provider
    )


async def _talk(job: Job) -> None:
    agent = _agent(job)
    session = agent.create_session()
    for prompt in job.prompts:
        if job.stream:
            stream = agent.run(prompt, session=session, stream=True)
            async for _ in stream:
                pass
            answer: Any = await stream.get_final_response()
        else:
            answer = await agent.run(prompt, session=session)
        job.answers.append(answer.messages[-1].text)


def run(job: Job) -> None:
    """Do the job."""
    asyncio.run(_talk(job))


if __name__ == "__main__":
    main(run, version("agent-framework-core"))
