"""pi: `pi --print`, then `pi --print --continue`; the set-up is a provider in its models.json."""

import json
import os
from pathlib import Path

from everlong.lab.clients.drivers.task import Task, output_of, run

#: pi's names for the formats.
APIS = {"chat": "openai-completions", "responses": "openai-responses", "messages": "anthropic-messages"}
QUIET = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}


def _talk(task: Task) -> None:
    home = Path.home() / ".pi" / "agent"
    home.mkdir(parents=True)
    address = task.address if task.dialect == "messages" else f"{task.address}/v1"
    provider = {"baseUrl": address, "api": APIS[task.dialect], "apiKey": "key", "models": [{"id": task.model}]}
    (home / "models.json").write_text(json.dumps({"providers": {"everlong": provider}}), encoding="utf-8")
    command = [task.program, "--print", "--provider", "everlong", "--model", task.model]
    for turn, prompt in enumerate(task.prompts):
        again = ["--continue"] if turn else []
        task.answers.append(output_of([*command, *again, prompt], os.environ | QUIET))


if __name__ == "__main__":
    run(dict.fromkeys(APIS, _talk))
