"""The job of a driver and its report. Standard library only, next to the framework and everlong's adapter."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from everlong.lab.clients.drivers.task import Task, command_line

__all__ = ["Job", "main", "read_file"]


@dataclass(slots=True)
class Job(Task):
    """What a driver does: all `prompts` in one conversation, each answer appended to `answers`.

    `how` is "everlong" (our adapter), "own" (the framework's own compaction) or "nothing". `store` is the URL for our
    adapter, so that its compactions can be counted afterwards. `window` is the model's window in tokens; None if our
    adapter does not get it and has to recover from a refusal.
    """

    how: str = "nothing"
    store: str = "memory:"
    window: int | None = None
    #: The address of `everlong serve`, if the row needs one.
    everlong: str = ""
    #: How often our adapter replaced what was sent before; set only if the store does not show it.
    compactions: int | None = None


def main(run: Callable[[Job], None], version: str) -> None:
    """Do the job and print the report. The framework's exceptions go to standard error."""
    job = command_line(Job)
    try:
        run(job)
    finally:
        report = {"version": version, "answers": job.answers, "compactions": job.compactions}
        sys.stdout.write("\n" + json.dumps(report) + "\n")


def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")
