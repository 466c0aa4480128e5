"""smolagents: a `CodeAgent` with one tool. The model writes code; the output of the code becomes a user message."""

from importlib.metadata import version
from pathlib import Path

from smolagents import CodeAgent, OpenAIModel, tool  # type: ignore[import-not-found]

from everlong.lab.clients.drivers.task import Task, run


@tool  # type: ignore[untyped-decorator]
def read_file(path: str) -> str:
    """Read a text file.

    Args:
        path: The file to read.
    """
    return Path(path).read_text(encoding="utf-8")


def _chat(task: Task) -> None:
    model = OpenAIModel(model_id=task.model, api_base=f"{task.address}/v1", api_key="key")
    agent = CodeAgent(tools=[read_file], model=model, stream_outputs=task.stream, verbosity_level=0)
    for turn, prompt in enumerate(task.prompts):
        task.answers.append(str(agent.run(prompt, reset=turn == 0)))


if __name__ == "__main__":
    run({"chat": _chat}, version("smolagents"))
