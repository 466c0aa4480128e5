"""CrewAI: a crew of one agent with a tool. Its own compaction is a summary when the window is full."""

import os
from importlib.metadata import version
from typing import Any

from everlong.lab.adapters.drivers.job import Job, main, read_file

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "CREWAI_TESTING": "true"}

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

from everlong.adapters.crewai import EverlongLLM


def run(job: Job) -> None:
    """Do the job."""
    llm, tools = _llm(job), [tool("read_file")(read_file)]
    if job.how == "everlong":
        llm = EverlongLLM(llm, job.store, thread="errand", window=job.window)
        tools.append(llm.recall_tool())
    who = {"role": "Clerk", "goal": "Read what is asked for.", "backstory": "You are a careful clerk."}
    respect = {"respect_context_window": job.how != "nothing"}
    agent = Agent(**who, **respect, llm=llm, tools=tools, max_iter=100, verbose=False)
    for prompt in job.prompts:
        task = Task(description=prompt, expected_output="A line that says it is done.", agent=agent)
        job.answers.append(str(Crew(agents=[agent], tasks=[task], verbose=False).kickoff()))


def _llm(job: Job) -> Any:
    common = {"api_key": "key", "stream": job.stream, "max_retries": 0}
    if job.dialect == "messages":
        return LLM(model=f"anthropic/{job.model}", base_url=job.address, max_tokens=1_000, **common)
    return LLM(model=f"openai/{job.model}", base_url=f"{job.address}/v1", **common)


if __name__ == "__main__":
    main(run, version("crewai"))
