"""Records real clients behind the gateway, each started with one command, for docs/gateway/wrap.md.

python scripts/record_clients.py [CLIENT]... writes docs/images/wrap-CLIENT.svg

Uses the clients on the PATH. A scripted server with a small window plays the provider: it makes the client read files
one after the other, until they exceed the window, then says that the task is done. The home folder is new and empty, so
the command itself is the only set-up.
"""

import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]
from rich.console import Console
from rich.text import Text

from everlong.lab import CLIENTS
from everlong.llm import Answer, ReceivedRequest
from everlong.testing import ScriptedServer, Window

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
SHOWN_AS = "http://127.0.0.1:8000/v1"
WIDTH, MOST_LINES, PATIENCE = 110, 40, 600
#: Escape sequences that move the cursor or set the title; colours stay.
MOVES = re.compile(r"\x1b\[[<>=?][0-9;]*[A-Za-z]|\x1b\[[0-9;]*[A-Za-ln-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>78]")
#: Install paths of the recording machine, which do not belong in a picture.
PLACES = re.compile(r"/\S*/node_modules\b")
#: Fonts that a reader's browser would download from elsewhere.
FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
QUESTION = "Why do ships have portholes and not windows?"


@dataclass(frozen=True)
class Recording:
    """One command: the client's arguments, the model's window, and whether the client itself reads files."""

    arguments: str
    window: int = 48_000
    files: int = 24
    reads: bool = True


RECORDINGS = {
    "claude": Recording("-p {prompt} --allowedTools Read"),
    "codex": Recording("exec -m gpt-5 --skip-git-repo-check --sandbox danger-full-access {prompt}", 32_000),
    "opencode": Recording("run --auto {prompt}", 40_000),
    "pi": Recording("-p {prompt}", 24_000),
    "gemini": Recording("--skip-trust -m gemini-2.5-pro -p {prompt}", reads=False),
    "qwen": Recording("--yolo -m scripted {prompt}", 40_000),
    "aider": Recording("--no-git --yes-always --no-check-update --message {prompt}", reads=False),
    "openclaw": Recording("agent --local --session-id demo --message {prompt}", 40_000),
    "llm": Recording("{prompt}", reads=False),
}


def answer(_: ReceivedRequest) -> Answer:
    """Answer the question."""
    return Answer(text="A round hole in a hull has no corners where cracks could begin.")


def record(name: str, recording: Recording) -> str:
    """Run the command in a terminal; return its output."""
    tasks: Any = replace(CLIENTS["codex"].tasks, count=1, files=recording.files)  # type: ignore[type-var]
    last = tasks.name(1, recording.files)
    task = f"Task 1: read {tasks.name(1, 1)} to {last}, one after the other, and say when you are done."
    with tempfile.TemporaryDirectory(prefix="everlong-record-") as made:
        work = Path(made).resolve() / "work"
        work.mkdir()
        tasks.write(work)
        clerk = tasks.script(work) if recording.reads else answer
        with ScriptedServer(clerk, window=Window(recording.window, told=True)) as server:
            prompt = shlex.quote(task if recording.reads else QUESTION)
            typed = f"everlong wrap --upstream {server.url} {name} {recording.arguments.format(prompt=prompt)}"
            own = {"HOME": str(work.parent), "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8"}
            child = pexpect.spawn(
                sys.executable,
                ["-P", "-m", "everlong", *shlex.split(typed)[1:]],
                cwd=str(work),
                env=own | {"PYTHONPATH": str(ROOT / "src"), "EVERLONG_OFFLINE": "1"},
                encoding="utf-8",
                timeout=PATIENCE,
                dimensions=(50, WIDTH),
            )
            child.expect(pexpect.EOF)
            child.close()
        print(f"{name}: exit {child.exitstatus}, missing {getattr(clerk, 'missing', ())}")
        shown = f"$ {typed}\n{child.before}"
        shown = PLACES.sub("~/node_modules", shown.replace(str(work.parent), "~"))
        return shown.replace(server.url, SHOWN_AS)


def picture(title: str, shown: str) -> str:
    """Return the terminal as an SVG, without the middle of a long output."""
    lines = [line.split("\r")[-1] for line in MOVES.sub("", shown).replace("\r\n", "\n").rstrip().split("\n")]
    lines = [line for at, line in enumerate(lines) if line.strip() or (at and lines[at - 1].strip())]
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        lines = [*lines[:half], f"… {len(lines) - 2 * half} lines …", *lines[-half:]]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(lines)))
    drawn = console.export_svg(title=title, unique_id=title.replace(" ", "-"))
    return FONTS.sub("", drawn)


def main() -> None:
    """Record the named clients, or all installed ones."""
    for name in sys.argv[1:] or RECORDINGS:
        if shutil.which(name) is None:
            print(f"{name} is not on the PATH")
            continue
        shown = record(name, RECORDINGS[name])
        (IMAGES / f"wrap-{name}.svg").write_text(picture(f"everlong wrap {name}", shown), encoding="utf-8")
        print("\n".join(MOVES.sub("", shown).splitlines()[-6:]))


if __name__ == "__main__":
    main()
