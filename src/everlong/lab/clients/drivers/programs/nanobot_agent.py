"""nanobot: its own agent, one message a process, all in one session; the set-up is its configuration file."""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

from everlong.lab.clients.drivers.task import Task, output_of, run

NANOBOT = Path(sys.executable).with_name("nanobot")


def _chat(task: Task) -> None:
    provider = {"apiKey": "key", "apiBase": f"{task.address}/v1"}
    agent = {"model": task.model, "provider": "custom", "maxTokens": 2_000, "workspace": str(Path.cwd())}
    config = Path.home() / "config.json"
    config.write_text(json.dumps({"providers": {"custom": provider}, "agents": {"defaults": agent}}), encoding="utf-8")
    for prompt in task.prompts:
        command = [
            str(NANOBOT),
            "agent",
            "--config",
            str(config),
            "--session",
            "cli:clerk",
            "--no-markdown",
            "--message",
            prompt,
        ]
        task.answers.append(" ".join(output_of(command, os.environ).split()))  # its lines are as wide as a terminal


if __name__ == "__main__":
    run({"chat": _chat}, version("nanobot-ai"))
