"""OpenAI Agents SDK: an agent with a function tool in one session, on chat completions or responses."""

import asyncio
from importlib.metadata import version
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
)
from agents.extensions import ToolOutputTrimmer
from openai import AsyncOpenAI

from everlong.lab.adapters.drivers.job import Job, main, read_file

MOST_TURNS = 40
KINDS: dict[str, Any] = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


async def _talk(job: Job) -> None:
    client = AsyncOpenAI(base_url=f"{job.address}/v1", api_key="key", max_retries=0)
    model = KINDS[job.dialect](model=job.model, openai_client=client)
    agent = Agent(name="clerk", instructions="You are a careful clerk.", tools=[function_tool(read_file)])
    session: Any = SQLiteSession("errand")
    config = RunConfig(
        model=model, call_model_input_filter=ToolOutputTrimmer(recent_turns=1) if job.how == "own" else None
    )
    if job.how == "everlong":
        from everlong.adapters.openai_agents import EverlongSession, recall_tool  # noqa: PLC0415 - only where it is used

        agent.tools.append(recall_tool)
        session = EverlongSession("errand", job.store, window=job.window)
        config = session.run_config(config)
    for prompt in job.prompts:
        options: Any = {"session": session, "run_config": config, "max_turns": MOST_TURNS}
        if job.stream:
            result: Any = Runner.run_streamed(agent, prompt, **options)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, prompt, **options)
        job.answers.append(str(result.final_output))


def run(job: Job) -> None:
    """Do the job."""
    asyncio.run(_talk(job))


if __name__ == "__main__":
    main(run, version("openai-agents"))
