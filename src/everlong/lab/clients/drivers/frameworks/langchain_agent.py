"""LangChain: `create_agent` with a tool, on langchain-openai (chat or responses) or langchain-anthropic."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic  # type: ignore[import-not-found]
from langchain_openai import ChatOpenAI

from everlong.lab.clients.drivers.task import Task, run


def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


def _openai(task: Task) -> None:
    responses = task.dialect == "responses"
    url = f"{task.address}/v1"
    _talk(task, ChatOpenAI(model=task.model, base_url=url, api_key="key", max_retries=0, use_responses_api=responses))


def _anthropic(task: Task) -> None:
    _talk(task, ChatAnthropic(model=task.model, base_url=task.address, api_key="key", max_retries=0, max_tokens=1_000))


def _talk(task: Task, model: Any) -> None:
    agent = create_agent(model, tools=[read_file], system_prompt="You are a careful clerk.")
    state: dict[str, Any] = {"messages": []}
    for prompt in task.prompts:
        state["messages"].append({"role": "user", "content": prompt})
        if task.stream:
            for kind, part in agent.stream(state, stream_mode=["values", "messages"]):
                state = part if kind == "values" else state
        else:
            state = agent.invoke(state)
        task.answers.append(state["messages"][-1].text)


if __name__ == "__main__":
    run({"chat": _openai, "responses": _openai, "messages": _anthropic}, version("langchain"))
