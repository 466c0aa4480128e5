"""opencode: `opencode run`, then `opencode run --continue`; the set-up is a provider in its opencode.json."""

import json
import os
from pathlib import Path

from everlong.lab.clients.drivers.task import Task, output_of, run

QUIET = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}


def _chat(task: Task) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "everlong",
        "options": {"baseURL": f"{task.address}/v1", "apiKey": "key"},
        "models": {task.model: {"name": task.model}},
    }
    config = {"provider": {"everlong": provider}, "model": f"everlong/{task.model}", "autoupdate": False}
    Path("opencode.json").write_text(json.dumps(config), encoding="utf-8")
    for turn, prompt in enumerate(task.prompts):
        command = [task.program, "run", *(["--continue"] if turn else []), "--auto", prompt]
        task.answers.append(output_of(command, os.environ | QUIET))


if __name__ == "__main__":
    run({"chat": _chat})
