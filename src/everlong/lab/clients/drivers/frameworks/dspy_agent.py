"""DSPy: `ReActV2` with a tool and native calls. It ends each task by calling its tool `submit`; the history is kept."""

from importlib.metadata import version
from pathlib import Path

import dspy  # type: ignore[import-not-found]

from everlong.lab.clients.drivers.task import Task, run


def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


def _chat(task: Task) -> None:
    model = dspy.LM(f"openai/{task.model}", api_base=f"{task.address}/v1", api_key="key", cache=False, num_retries=0)
    dspy.configure(lm=model, adapter=dspy.ChatAdapter(use_native_function_calling=True))
    agent = dspy.ReActV2("question -> answer", tools=[read_file], max_iters=20)
    history = dspy.History(messages=[])
    for prompt in task.prompts:
        result = agent(question=prompt, history=history)
        history = result.history
        task.answers.append(result.answer)


if __name__ == "__main__":
    run({"chat": _chat}, version("dspy"))
