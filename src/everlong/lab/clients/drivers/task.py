"""The task of a driver and its report. Standard library only: it runs where only a client is installed."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["Task", "command_line", "output_of", "read", "run", "tool"]

T = TypeVar("T")


@dataclass(slots=True)
class Task:
    """The task of a driver, and its answers so far. `address` is the server's address without /v1.

    `program` is the path of a client that is a separate program.
    """

    address: str
    mode: str
    model: str
    prompts: list[str]
    program: str = ""
    answers: list[str] = field(default_factory=list)

    @property
    def stream(self) -> bool:
        """Return whether answers are streamed."""
        return self.mode.endswith("stream")

    @property
    def dialect(self) -> str:
        """Return the format that the client speaks. Example: "chat stream" -> "chat" """
        return self.mode.partition(" ")[0]


def tool() -> dict[str, Any]:
    """Return the one tool for clients without tools."""
    path = {"type": "string", "description": "The file to read"}
    parameters = {"type": "object", "properties": {"path": path}, "required": ["path"]}
    return {"name": "read_file", "description": "Read a text file.", "parameters": parameters}


def read(arguments: str) -> str:
    """Return the result of the tool."""
    return Path(json.loads(arguments)["path"]).read_text(encoding="utf-8")


def output_of(command: Sequence[str], settings: Mapping[str, str]) -> str:
    """Return the standard output of a program. Raises RuntimeError with its last lines if it fails."""
    done = subprocess.run(
        command, env=settings, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        words = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise RuntimeError(" / ".join(words[-3:]) or f"exit code {done.returncode}")
    return done.stdout


def command_line(kind: Callable[..., T]) -> T:
    """Return the task from the file that the first argument names."""
    return kind(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))


def run(dialects: Mapping[str, Callable[[Task], None]], version: str = "") -> None:
    """Do the task in its dialect and print the answers so far. The client's exceptions go to standard error.

    A client that is a separate program is asked for its version.
    """
    task = command_line(Task)
    version = version or _version(task.program)
    try:
        dialects[task.dialect](task)
    finally:
        sys.stdout.write("\n" + json.dumps({"version": version, "answers": task.answers}) + "\n")


def _version(program: str) -> str:
    """Return the version that a program prints. Example: "codex-cli 0.166.0" -> 0.166.0"""
    done = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    match = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return match[0] if match else ""
