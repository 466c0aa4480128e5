"""Codex: `codex exec`, then `codex exec resume --last`; the set-up is a provider in its config.toml."""

import os
from pathlib import Path

from everlong.lab.clients.drivers.task import Task, output_of, run

CONFIG = """
model = "{model}"
model_provider = "everlong"

[model_providers.everlong]
name = "everlong"
base_url = "{address}/v1"
env_key = "EVERLONG_KEY"
wire_api = "responses"
"""
#: The files are in a folder made for the run, and the calling model is a script.
FREE = "--dangerously-bypass-approvals-and-sandbox"


def _responses(task: Task) -> None:
    home = Path.home() / ".codex"
    home.mkdir()
    (home / "config.toml").write_text(CONFIG.format(model=task.model, address=task.address), encoding="utf-8")
    settings = os.environ | {"CODEX_HOME": str(home), "EVERLONG_KEY": "key"}
    for turn, prompt in enumerate(task.prompts):
        command = [task.program, "exec", *(("resume", "--last") if turn else ())]
        task.answers.append(output_of([*command, "--skip-git-repo-check", FREE, prompt], settings))


if __name__ == "__main__":
    run({"responses": _responses})
