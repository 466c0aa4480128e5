"""What every driver is given and tells. The standard library only: it runs where nothing but a client is installed."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Task", "command_line", "output_of", "read", "run", "tool"]


@dataclass(slots=True)
class Task:
    """The task of a driver, and the answers it has so far. `address` is the server's, without /v1.

    `program` is where a client that is a program of its own lies.
    """

    address: str
    mode: str
    model: str
    prompts: list[str]
    program: str = ""
    answers: list[str] = field(default_factory=list)

    @property
    def stream(self) -> bool:
        """Whether answers are to be streamed."""
        return self.mode.endswith("stream")

    @property
    def dialect(self) -> str:
        """Which of its formats the client is to speak. Example: "chat stream" -> "chat" """
        return self.mode.partition(" ")[0]


def tool() -> dict[str, Any]:
    """The one tool of clients that bring none."""
    path = {"type": "string", "description": "The file to read"}
    parameters = {"type": "object", "properties": {"path": path}, "required": ["path"]}
    return {"name": "read_file", "description": "Read a text file.", "parameters": parameters}


def read(arguments: str) -> str:
    """What the tool gives."""
    return Path(json.loads(arguments)["path"]).read_text(encoding="utf-8")


def output_of(command: Sequence[str], settings: Mapping[str, str]) -> str:
    """What a program says on its standard output; raises with its last words if it fails."""
    done = subprocess.run(
        command, env=settings, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        words = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise RuntimeError(" / ".join(words[-3:]) or f"exit code {done.returncode}")
    return done.stdout


def command_line() -> Task:
    """The task, as the first argument holds it."""
    return Task(**json.loads(sys.argv[1]))


def run(dialects: Mapping[str, Callable[[Task], None]], version: str = "") -> None:
    """Do the task in the wanted dialect and tell how far it came; what the client raises goes on to standard error.

    A client that is a program of its own is asked for its version.
    """
    given = command_line()
    version = version or _version(given.program)
    try:
        dialects[given.dialect](given)
    finally:
        sys.stdout.write("\n" + json.dumps({"version": version, "answers": given.answers}) + "\n")


def _version(program: str) -> str:
    """Example: a program that says "codex-cli 0.166.0" -> 0.166.0"""
    found = re.search(r"\d+(\.\d+)+", output_of([program, "--version"], os.environ))
    return found[0] if found else ""
