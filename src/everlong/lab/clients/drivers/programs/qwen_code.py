"""Qwen Code: `qwen` with a prompt, then `qwen --continue`; the set-up is the kind of server and its address."""

import json
import os
from pathlib import Path

from everlong.lab.clients.drivers.task import Task, output_of, run


def _openai(task: Task) -> None:
    _talk(task, "openai", {"OPENAI_BASE_URL": f"{task.address}/v1", "OPENAI_API_KEY": "key"})


def _responses(task: Task) -> None:
    _talk(task, "openai-responses", {"OPENAI_BASE_URL": f"{task.address}/v1", "OPENAI_API_KEY": "key"})


#: By default it requests 32,000 tokens for thinking from such a server, which is a whole small window.
PLAIN = {"model": {"generationConfig": {"reasoning": False}}}


def _anthropic(task: Task) -> None:
    home = Path.home() / ".qwen"
    home.mkdir()
    (home / "settings.json").write_text(json.dumps(PLAIN), encoding="utf-8")
    _talk(task, "anthropic", {"ANTHROPIC_BASE_URL": task.address, "ANTHROPIC_API_KEY": "key"})


def _talk(task: Task, kind: str, settings: dict[str, str]) -> None:
    command = [task.program, "--auth-type", kind, "--model", task.model, "--yolo", "--output-format", "text"]
    for turn, prompt in enumerate(task.prompts):
        again = ["--continue"] if turn else []
        task.answers.append(output_of([*command, *again, prompt], os.environ | settings))


if __name__ == "__main__":
    run({"chat": _openai, "responses": _responses, "messages": _anthropic})
