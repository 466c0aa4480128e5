"""Handing a job to a peer in its own environment and taking the result back, both as JSON files.

A job names a worker module (`benchmarks.workers.…`), which is started in a fresh process of that environment. What a
peer prints on the way is nobody's result.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.environments import KEPT, Environment, settings, tell
from benchmarks.rules import Message
from benchmarks.transcripts import build

__all__ = ["perform", "stored"]

PATIENCE = 900  # seconds for one job

Result = dict[str, Any]


def perform(environment: Environment, worker: str, **job: Any) -> Result | None:
    """What the worker found, or None, after one line, if it came back without a result."""
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:
        asked, answered = Path(folder, "job.json"), Path(folder, "result.json")
        asked.write_text(json.dumps(job), encoding="utf-8")
        command = [str(environment.python), "-m", f"benchmarks.workers.{worker}", str(asked), str(answered)]
        try:
            done = subprocess.run(
                command, cwd=folder, env=settings(), capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            tell(f"left out: not done after {PATIENCE} s")
            return None
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            tell(f"left out: {said[-1]}")
            return None
        result: Result = json.loads(answered.read_text(encoding="utf-8"))
        return result


def stored(tokens: int, seed: int, *, largest: int | None = None) -> Path:
    """The file with the messages of a transcript, made when first asked for."""
    path = KEPT / "transcripts" / f"{tokens}-{seed}{'' if largest is None else f'-{largest}'}.json"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        messages: list[Message] = build(tokens, seed, largest=largest).messages
        path.write_text(json.dumps(messages, ensure_ascii=False), encoding="utf-8")
    return path
