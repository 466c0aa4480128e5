"""CrewAI: a crew of one agent with a tool. Each of its tasks is a separate conversation."""

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "CREWAI_TESTING": "true"}

from crewai import LLM, Agent, Crew, Task as CrewTask  # type: ignore[import-not-found]
from crewai.tools import tool  # type: ignore[import-not-found]

from everlong.lab.clients.drivers.task import Task, run


@tool("read_file")  # type: ignore[untyped-decorator]
def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


def _chat(task: Task) -> None:
    _talk(task, LLM(model=f"openai/{task.model}", base_url=f"{task.address}/v1", api_key="key", stream=task.stream))


def _messages(task: Task) -> None:
    model = f"anthropic/{task.model}"
    _talk(task, LLM(model=model, base_url=task.address, api_key="key", stream=task.stream, max_tokens=1_000))


def _talk(task: Task, model: Any) -> None:
    who = {"role": "Clerk", "goal": "Read what is asked for.", "backstory": "You are a careful clerk."}
    agent = Agent(**who, llm=model, tools=[read_file], max_iter=60, verbose=False)
    for prompt in task.prompts:
        work = CrewTask(description=prompt, expected_output="A line that says it is done.", agent=agent)
        task.answers.append(str(Crew(agents=[agent], tasks=[work], verbose=False).kickoff()))


if __name__ == "__main__":
    run({"chat": _chat, "messages": _messages}, version("crewai"))
