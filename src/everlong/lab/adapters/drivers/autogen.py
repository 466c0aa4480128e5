"""AutoGen: an `AssistantAgent` with a tool. Its own compaction is a context of the last messages."""

import asyncio
from importlib.metadata import version
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.model_context import BufferedChatCompletionContext, UnboundedChatCompletionContext
from autogen_ext.models.anthropic import AnthropicChatCompletionClient  # type: ignore[import-not-found]
from autogen_ext.models.openai import OpenAIChatCompletionClient  # type: ignore[import-not-found]

from everlong.adapters.autogen import EverlongChatCompletionContext
from everlong.lab.adapters.drivers.job import Job, main, read_file

ABLE = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "structured_output": False,
    "family": "unknown",
}
BUFFER = 12  # messages: six steps of about 2,000 tokens


def run(job: Job) -> None:
    """Do the job."""
    asyncio.run(_run(job))


async def _run(job: Job) -> None:
    client, tools = _client(job), [read_file]
    context: Any = UnboundedChatCompletionContext()
    if job.how == "everlong":
        context = EverlongChatCompletionContext(job.store, thread="errand", window=job.window)
        client, tools = context.wrap(client), [*tools, context.recall_tool()]
    elif job.how == "own":
        context = BufferedChatCompletionContext(buffer_size=BUFFER)
    agent = AssistantAgent(
        "clerk",
        client,
        tools=tools,
        model_context=context,
        system_message="You are a careful clerk.",
        max_tool_iterations=60,
        model_client_stream=job.stream,
    )
    for prompt in job.prompts:
        result = await agent.run(task=prompt)
        job.answers.append(result.messages[-1].to_text())


def _client(job: Job) -> Any:
    common = {"model": job.model, "api_key": "key", "max_retries": 0, "model_info": ABLE}
    if job.dialect == "messages":
        return AnthropicChatCompletionClient(base_url=job.address, max_tokens=1_000, **common)
    return OpenAIChatCompletionClient(base_url=f"{job.address}/v1", **common)


if __name__ == "__main__":
    main(run, version("autogen-agentchat"))
