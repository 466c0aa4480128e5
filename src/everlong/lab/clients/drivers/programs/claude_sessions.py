"""Claude Code in sessions of several kinds: a process for each turn, hooks with constant text, its own compaction off.

The mode names the kind: how a turn continues the session before it, and what else is set.
"""

import json
import os
from pathlib import Path

from everlong.lab.clients.drivers.programs.claude_code import QUIET
from everlong.lab.clients.drivers.task import Task, output_of, run

#: As `everlong wrap` sets them; the length of answers is the program's own.
SET_UP = {"ANTHROPIC_API_KEY": "key", "DISABLE_AUTO_COMPACT": "1"}
INSTRUCTION = "Keep to the style guide of the harbour office, and report what is unclear."
COMPACTED_EVERY = 6  # turns, by hand
LINE = {"type": "command", "command": f"echo '{INSTRUCTION}'"}
SETTINGS = {"hooks": {"UserPromptSubmit": [{"hooks": [LINE]}], "SessionStart": [{"hooks": [LINE]}]}}


def _messages(task: Task) -> None:
    kind = task.mode.partition(" ")[2]
    settings = os.environ | QUIET | SET_UP | {"ANTHROPIC_BASE_URL": task.address}
    hooks = Path.home() / "settings.json"
    hooks.write_text(json.dumps(SETTINGS), encoding="utf-8")
    shared = ["--model", task.model, "--settings", str(hooks), "--output-format", "json"]
    shared += ["--permission-mode", "plan"] if kind == "plan" else ["--allowedTools", "Read,Task,Agent"]
    session = ""
    for turn, prompt in enumerate(task.prompts):
        if kind == "compact" and turn and turn % COMPACTED_EVERY == 0:
            session = _said([task.program, "-p", "/compact", "--continue", *shared], settings)["session_id"]
        reply = _said([task.program, "-p", prompt, *_going_on(kind, session), *shared], settings)
        session = reply["session_id"]
        task.answers.append(reply["result"])


def _going_on(kind: str, session: str) -> list[str]:
    """Return the options with which a turn continues the session before it."""
    if not session:
        return []
    match kind:
        case "resume":
            return ["--resume", session]
        case "fork":
            return ["--resume", session, "--fork-session"]
        case _:
            return ["--continue"]


def _said(command: list[str], settings: dict[str, str]) -> dict[str, str]:
    reply: dict[str, str] = json.loads(output_of(command, settings))
    if reply["is_error"]:
        raise RuntimeError(reply["result"])
    return reply


if __name__ == "__main__":
    run({"messages": _messages})
