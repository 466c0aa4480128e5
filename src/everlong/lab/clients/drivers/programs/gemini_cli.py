"""Gemini CLI: `gemini` with a prompt, then `gemini --resume latest`; the set-up is the address and a key."""

import json
import os
from pathlib import Path

from everlong.lab.clients.drivers.task import Task, output_of, run

#: With another address it chooses a login that does not work for programs; a key does.
SETTINGS = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}


def _talk(task: Task) -> None:
    home = Path.home() / ".gemini"
    home.mkdir(exist_ok=True)
    (home / "settings.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    settings = {"GOOGLE_GEMINI_BASE_URL": task.address, "GEMINI_API_KEY": "key"}
    command = [task.program, "--model", task.model, "--yolo", "--skip-trust", "--output-format", "text"]
    for turn, prompt in enumerate(task.prompts):
        again = ["--resume", "latest"] if turn else []
        task.answers.append(output_of([*command, *again, "--prompt", prompt], os.environ | settings))


if __name__ == "__main__":
    run({"contents": _talk})
