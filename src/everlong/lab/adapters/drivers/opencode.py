"""opencode: `opencode run`, then `opencode run --continue`; the adapter is a plugin in its opencode.json."""

import json
import os
from pathlib import Path
from typing import Any

from everlong.lab.adapters.drivers.job import Job, main
from everlong.lab.adapters.drivers.npm_package import build_package, count_compactions
from everlong.lab.clients.drivers.task import output_of

QUIET = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
WINDOW = 32_000
ANSWER = 1_000


def _config(job: Job) -> dict[str, Any]:
    window = job.window or WINDOW
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "lab",
        "options": {"baseURL": f"{job.address}/v1", "apiKey": "key"},
        "models": {job.model: {"name": job.model, "limit": {"context": window, "output": ANSWER}}},
    }
    config: dict[str, Any] = {"provider": {"lab": provider}, "model": f"lab/{job.model}", "autoupdate": False}
    if job.how == "everlong":
        package = build_package(job.program, Path.cwd().parent / "everlong")
        config["plugin"] = [[package.as_uri(), {"url": job.everlong}]]
    if job.how == "nothing":
        config["compaction"] = {"auto": False, "prune": False}
    return config


def _run(job: Job) -> None:
    Path("opencode.json").write_text(json.dumps(_config(job)), encoding="utf-8")
    for turn, prompt in enumerate(job.prompts):
        command = [job.program, "run", *(["--continue"] if turn else []), "--auto", prompt]
        job.answers.append(output_of(command, os.environ | QUIET))
    if job.how == "everlong":
        job.compactions = count_compactions(job.everlong)


if __name__ == "__main__":
    main(_run, "")
