"""Haystack: an `Agent` with a tool, on its chat or responses generator."""

from importlib.metadata import version
from typing import Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret

from everlong.lab.adapters.drivers.job import Job, main, read_file

MOST_STEPS = 40
#: The window in the settings of the framework's own compaction.
OWN_WINDOW = 16_000


def _generator(job: Job) -> Any:
    kind = OpenAIResponsesChatGenerator if job.dialect == "responses" else OpenAIChatGenerator
    key, url = Secret.from_token("key"), f"{job.address}/v1"
    return kind(api_key=key, model=job.model, api_base_url=url, max_retries=0)


def _agent(job: Job) -> Agent:
    generator = _generator(job)
    tools: list[Any] = [create_tool_from_function(read_file)]
    hooks: Any = None
    if job.how == "everlong":
        from everlong.adapters.haystack import EverlongChatGenerator  # noqa: PLC0415 - only where it is wanted

        generator = EverlongChatGenerator(generator, job.store, window=job.window)
        tools += generator.tools
    if job.how == "own":
        from haystack.hooks.compaction import CompactionHook, SummarizationCompactor  # noqa: PLC0415 - only here

        compactor = SummarizationCompactor(_generator(job))
        hooks = {"before_llm": [CompactionHook(compactor, context_window=OWN_WINDOW)]}
    return Agent(
        chat_generator=generator,
        tools=tools,
        system_prompt="You are a careful clerk.",
        max_agent_steps=MOST_STEPS,
        hooks=hooks,
    )


def run(job: Job) -> None:
    """Do the job."""
    agent = _agent(job)
    history: list[ChatMessage] = []
    for prompt in job.prompts:
        streamed = {"streaming_callback": lambda _chunk: None} if job.stream else {}
        result = agent.run(messages=[*history, ChatMessage.from_user(prompt)], **streamed)
        job.answers.append(result["last_message"].text)
        history = [message for message in result["messages"] if not message.is_from("system")]


if __name__ == "__main__":
    main(run, version("haystack-ai"))
