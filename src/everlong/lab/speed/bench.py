"""The bench: runs a benchmark's program in the environment of a library, and keeps the transcripts.

A job and its result are JSON files; the program runs in a fresh process. What a library prints is ignored.
"""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everlong.lab.environments import CORE, HERE, Environment, Environments
from everlong.lab.peers.shapes import Message
from everlong.lab.speed.transcripts import build, build_talk

__all__ = ["Bench"]

PATIENCE = 900  # seconds for one job

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """Where a benchmark runs and how thoroughly. Without peers, only everlong is measured, by this interpreter."""

    environments: Environments
    quick: bool = False
    peers: bool = True
    #: The URL of a database for benchmarks that need one; without it, they are left out.
    postgres: str = ""

    def place(self, environment: Environment) -> Environment | None:
        """Return where a row of that environment runs. Report one line and return None if it cannot run."""
        if not self.peers:
            return HERE if environment == CORE else None
        return environment if self.environments.installed(environment) else None

    def report(self, line: str) -> None:
        """Report progress, apart from the tables."""
        self.environments.report(line)

    def perform(self, environment: Environment, program: str, **job: Any) -> Result | None:
        """Run a program, a module by its full name, on a job. Report one line and return None if it fails."""
        with tempfile.TemporaryDirectory() as folder:
            job_file, result_file = Path(folder, "job.json"), Path(folder, "result.json")
            job_file.write_text(json.dumps(job), encoding="utf-8")
            python = str(self.environments.python(environment))
            command = [python, "-m", program, str(job_file), str(result_file)]
            settings = self.environments.settings()
            try:
                done = subprocess.run(
                    command, cwd=folder, env=settings, capture_output=True, text=True, timeout=PATIENCE, check=False
                )
            except subprocess.TimeoutExpired:
                self.report(f"left out: not done after {PATIENCE} s")
                return None
            if done.returncode:
                lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
                self.report(f"left out: {lines[-1]}")
                return None
            result: Result = json.loads(result_file.read_text(encoding="utf-8"))
            return result

    def stored(self, tokens: int, seed: int, *, largest: int | None = None, talk: bool = False) -> Path:
        """Return the file with the messages of a transcript, made on first use; a `talk` has no tools."""
        name = f"{'talk-' if talk else ''}{tokens}-{seed}{'' if largest is None else f'-{largest}'}.json"
        path = self.environments.folder / "transcripts" / name
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            made = build_talk(tokens, seed) if talk else build(tokens, seed, largest=largest)
            messages: list[Message] = made.messages
            path.write_text(json.dumps(messages, ensure_ascii=False), encoding="utf-8")
        return path
