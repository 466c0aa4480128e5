"""LlamaIndex: a `FunctionAgent` with a tool. Its own compaction is `Memory` with a token limit."""

import asyncio
import os
from importlib.metadata import version
from typing import Any

from everlong.lab.adapters.drivers.job import Job, main, read_file

os.environ.pop("TIKTOKEN_CACHE_DIR", None)  # its package brings the files

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer, Memory
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike

from everlong.adapters.llama_index import EverlongMemory

UNLIMITED = 1_000_000
SHARE = 0.7  # of the window; its documentation leaves the rest for the answer


def run(job: Job) -> None:
    """Do the job."""
    asyncio.run(_run(job))


async def _run(job: Job) -> None:
    llm, memory, tools = _llm(job), _memory(job), [read_file]
    if isinstance(memory, EverlongMemory):
        llm, tools = memory.wrap(llm), [*tools, memory.recall_tool()]
    agent = FunctionAgent(tools=tools, llm=llm, system_prompt="You are a careful clerk.", streaming=job.stream)
    for prompt in job.prompts:
        job.answers.append(str(await agent.run(prompt, memory=memory, max_iterations=60)))


def _memory(job: Job) -> BaseMemory:
    if job.how == "everlong":
        return EverlongMemory.from_defaults(job.store, session_id="errand", window=job.window)
    if job.how == "own" and job.window:
        return Memory.from_defaults(session_id="errand", token_limit=int(job.window * SHARE))
    return ChatMemoryBuffer.from_defaults(token_limit=UNLIMITED)


def _llm(job: Job) -> Any:
    url = f"{job.address}/v1"
    common = {"model": job.model, "api_key": "key", "max_retries": 0}
    if job.dialect == "messages":
        return Anthropic(base_url=job.address, max_tokens=1_000, **common)
    if job.dialect == "responses":
        return OpenAIResponses(api_base=url, context_window=UNLIMITED, **common)
    kind = {"is_chat_model": True, "is_function_calling_model": True}
    return OpenAILike(api_base=url, context_window=UNLIMITED, **kind, **common)


if __name__ == "__main__":
    main(run, version("llama-index-core"))
