"""Claude Code: `claude -p`, then `claude -p --continue`, in one folder; the set-up is two environment variables."""

import json
import os

from everlong.lab.clients.drivers.task import Task, output_of, run

SET_UP = {"ANTHROPIC_API_KEY": "key", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4000"}
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}


def _messages(task: Task) -> None:
    settings = os.environ | QUIET | SET_UP | {"ANTHROPIC_BASE_URL": task.address}
    for turn, prompt in enumerate(task.prompts):
        command = [
            task.program,
            "-p",
            prompt,
            "--model",
            task.model,
            "--allowedTools",
            "Read",
            "--output-format",
            "json",
        ]
        command += ["--continue"] if turn else []
        reply = json.loads(output_of(command, settings))
        if reply["is_error"]:
            raise RuntimeError(reply["result"])
        task.answers.append(reply["result"])


if __name__ == "__main__":
    run({"messages": _messages})
