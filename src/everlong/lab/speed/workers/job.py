"""The frame of every worker. Standard library only: it runs in every environment."""

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["Job", "cpu", "serve", "transcript"]

Job = dict[str, Any]


def serve(work: Callable[[Job], Job]) -> None:
    """Read the job named on the command line, do it, write what came of it."""
    asked, answered = Path(sys.argv[1]), Path(sys.argv[2])
    result = work(json.loads(asked.read_text(encoding="utf-8")))
    answered.write_text(json.dumps(result), encoding="utf-8")


def transcript(file: str) -> list[dict[str, Any]]:
    """The messages of a transcript."""
    messages: list[dict[str, Any]] = json.loads(Path(file).read_text(encoding="utf-8"))
    return messages


def cpu(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """CPU seconds of all threads, and what the call gave. The garbage of others is taken out first."""
    gc.collect()
    start = time.process_time()
    given = call(*arguments)
    return time.process_time() - start, given
