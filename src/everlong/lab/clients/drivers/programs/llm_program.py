"""`llm`: its command line with a function as a tool, then `llm --continue`; the set-up is extra-openai-models.yaml."""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

from everlong.lab.clients.drivers.task import Task, output_of, run

LLM = Path(sys.executable).with_name("llm")
TOOL = """from pathlib import Path


def read_file(path: str) -> str:
    "Read a text file."
    return Path(path).read_text(encoding="utf-8")
"""
ENDLESS = ("--chain-limit", "0")  # its default is five answers, and a task needs more


def _talk(task: Task) -> None:
    home = Path.home() / "llm"
    home.mkdir()
    model = {"model_id": task.model, "model_name": task.model, "api_base": f"{task.address}/v1", "supports_tools": True}
    model["responses"] = task.dialect == "responses"
    (home / "extra-openai-models.yaml").write_text(json.dumps([model]), encoding="utf-8")
    tools = home / "tools.py"
    tools.write_text(TOOL, encoding="utf-8")
    command = [str(LLM), "prompt", "--model", task.model, "--functions", str(tools), *ENDLESS]
    command += [] if task.stream else ["--no-stream"]
    for turn, prompt in enumerate(task.prompts):
        how = ["--continue"] if turn else ["--system", "You are a careful clerk."]
        task.answers.append(output_of([*command, *how, prompt], os.environ | {"LLM_USER_PATH": str(home)}))


if __name__ == "__main__":
    run({"chat": _talk, "responses": _talk}, version("llm"))
