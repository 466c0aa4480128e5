"""OpenClaw: `openclaw agent --local`, one message a process, all in one session; the set-up is its openclaw.json."""

import json
import os
from pathlib import Path

from everlong.lab.clients.drivers.task import Task, output_of, run

QUIET = {"OPENCLAW_SKIP_CHANNELS": "1", "NO_COLOR": "1"}


def _chat(task: Task) -> None:
    home = Path.home() / ".openclaw"
    home.mkdir()
    model = {"id": task.model, "name": task.model, "reasoning": False, "input": ["text"]}
    provider = {
        "baseUrl": f"{task.address}/v1",
        "apiKey": "key",
        "api": "openai-completions",
        "models": [model],
    }
    defaults = {"workspace": str(Path.cwd()), "model": {"primary": f"everlong/{task.model}"}}
    config = {"models": {"providers": {"everlong": provider}}, "agents": {"defaults": defaults}}
    (home / "openclaw.json").write_text(json.dumps(config), encoding="utf-8")
    for prompt in task.prompts:
        command = [task.program, "agent", "--local", "--session-id", "clerk", "--message", prompt]
        task.answers.append(output_of(command, os.environ | QUIET))


if __name__ == "__main__":
    run({"chat": _chat})
