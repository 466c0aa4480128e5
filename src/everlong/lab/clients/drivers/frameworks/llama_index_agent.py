"""LlamaIndex: a `FunctionAgent` with a tool, on its OpenAI-like, OpenAI responses or Anthropic model.

Its memory leaves out messages beyond a limit, by default three quarters of the window that it assumes; a larger limit
prevents that, because it is the gateway's task.
"""

import asyncio
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.pop("TIKTOKEN_CACHE_DIR", None)  # its package brings the files

from llama_index.core.agent.workflow import FunctionAgent  # type: ignore[import-not-found]
from llama_index.core.memory import ChatMemoryBuffer  # type: ignore[import-not-found]
from llama_index.llms.anthropic import Anthropic  # type: ignore[import-not-found]
from llama_index.llms.openai import OpenAIResponses  # type: ignore[import-not-found]
from llama_index.llms.openai_like import OpenAILike  # type: ignore[import-not-found]

from everlong.lab.clients.drivers.task import Task, run

LIMIT = 1_000_000  # tokens


def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


def _chat(task: Task) -> None:
    kind = {"is_chat_model": True, "is_function_calling_model": True}
    url = f"{task.address}/v1"
    _talk(task, OpenAILike(model=task.model, api_base=url, api_key="key", max_retries=0, context_window=LIMIT, **kind))


def _responses(task: Task) -> None:
    url = f"{task.address}/v1"
    _talk(task, OpenAIResponses(model=task.model, api_base=url, api_key="key", max_retries=0, context_window=LIMIT))


def _messages(task: Task) -> None:
    _talk(task, Anthropic(model=task.model, base_url=task.address, api_key="key", max_retries=0, max_tokens=1_000))


def _talk(task: Task, model: Any) -> None:
    asyncio.run(_run(task, model))


async def _run(task: Task, model: Any) -> None:
    prompt = "You are a careful clerk."
    agent = FunctionAgent(tools=[read_file], llm=model, system_prompt=prompt, streaming=task.stream)
    memory = ChatMemoryBuffer.from_defaults(token_limit=LIMIT)
    for words in task.prompts:
        task.answers.append(str(await agent.run(words, memory=memory)))


if __name__ == "__main__":
    run({"chat": _chat, "responses": _responses, "messages": _messages}, version("llama-index-core"))
