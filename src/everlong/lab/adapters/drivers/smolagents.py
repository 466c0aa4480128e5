"""smolagents: a `ToolCallingAgent` with a tool. Its own compaction is a step callback that drops old observations."""

from importlib.metadata import version
from typing import Any

from smolagents import ActionStep, OpenAIModel, ToolCallingAgent, tool

from everlong.adapters.smolagents import EverlongModel
from everlong.lab.adapters.drivers.job import Job, main, read_file

RECENT = 5  # steps whose observations stay, as its documentation does it with screenshots


@tool
def read(path: str) -> str:
    """Read a text file.

    Args:
        path: The file to read.
    """
    return read_file(path)


def forget_old(_: Any, agent: Any) -> None:
    """Drop the observations of old steps."""
    for earlier in [step for step in agent.memory.steps if isinstance(step, ActionStep)][:-RECENT]:
        earlier.observations = None


def run(job: Job) -> None:
    """Do the job."""
    model: Any = OpenAIModel(job.model, api_base=f"{job.address}/v1", api_key="key", client_kwargs={"max_retries": 0})
    read.name = "read_file"
    tools, callbacks = [read], []
    if job.how == "everlong":
        model = EverlongModel(model, job.store, thread="errand", window=job.window)
        tools.append(model.recall_tool())
    elif job.how == "own":
        callbacks.append(forget_old)
    agent = ToolCallingAgent(
        tools,
        model,
        instructions="You are a careful clerk.",
        step_callbacks=callbacks,
        max_steps=60,
        stream_outputs=job.stream,
        verbosity_level=0,
    )
    for turn, prompt in enumerate(job.prompts):
        job.answers.append(str(agent.run(prompt, reset=turn == 0)))


if __name__ == "__main__":
    main(run, version("smolagents"))
