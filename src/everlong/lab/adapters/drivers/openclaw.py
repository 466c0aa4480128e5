"""OpenClaw: `openclaw agent --local`, one message a process, all in one session; the adapter is its context engine."""

import json
import os
from pathlib import Path
from typing import Any

from everlong.lab.adapters.drivers.job import Job, main
from everlong.lab.adapters.drivers.npm_package import build_package, count_compactions
from everlong.lab.clients.drivers.task import output_of

QUIET = {"OPENCLAW_SKIP_CHANNELS": "1", "NO_COLOR": "1"}
WINDOW = 32_000
ANSWER = 1_000


def _config(job: Job) -> dict[str, Any]:
    window = job.window or WINDOW
    model = {
        "id": job.model,
        "name": job.model,
        "reasoning": False,
        "input": ["text"],
        "contextWindow": window,
        "maxTokens": ANSWER,
    }
    provider = {
        "baseUrl": f"{job.address}/v1",
        "apiKey": "key",
        "api": "openai-completions",
        "models": [model],
    }
    defaults = {"workspace": str(Path.cwd()), "model": {"primary": f"lab/{job.model}"}}
    config: dict[str, Any] = {"models": {"providers": {"lab": provider}}, "agents": {"defaults": defaults}}
    if job.how == "everlong":
        package = build_package(job.program, Path.cwd().parent / "everlong")
        config["plugins"] = {
            "load": {"paths": [str(package)]},
            "slots": {"contextEngine": "everlong"},
            "entries": {"everlong": {"enabled": True, "config": {"url": job.everlong}}},
        }
    return config


def _run(job: Job) -> None:
    home = Path.home() / ".openclaw"
    home.mkdir()
    (home / "openclaw.json").write_text(json.dumps(_config(job)), encoding="utf-8")
    for prompt in job.prompts:
        command = [job.program, "agent", "--local", "--session-id", "clerk", "--message", prompt]
        job.answers.append(output_of(command, os.environ | QUIET))
    if job.how == "everlong":
        job.compactions = count_compactions(job.everlong)


if __name__ == "__main__":
    main(_run, "")
