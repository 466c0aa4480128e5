"""The documentation runs: every Python example gives the output shown, every command exists and works.

A fenced `python` block is executed; a `text` block right after it is what it prints. A `console` block
holds commands after `$ ` and, where lines follow, their output; `…` in it stands for anything.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    page: str
    line: int
    language: str
    code: str
    output: str | None

    @property
    def id(self) -> str:
        return f"{self.page}:{self.line}"


def examples(language: str) -> list[Example]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Example(page.relative_to(ROOT).as_posix(), line, match[1], match[2], match[3]))
    # The same example on several pages, such as those in two languages, runs once.
    distinct = {(example.code, example.output): example for example in reversed(found) if example.language == language}
    return list(distinct.values())[::-1]


def matches(shown: str, printed: str) -> bool:
    pattern = ".*?".join(re.escape(piece) for piece in shown.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=folder, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("example", examples("python"), ids=lambda example: example.id)
def test_python_examples_print_what_is_shown(example: Example, tmp_path: Path) -> None:
    printed = run([sys.executable, "-c", example.code], tmp_path)
    assert example.output is None or matches(example.output, printed), printed


def commands(example: Example) -> list[tuple[str, str]]:
    pieces = re.split(r"^\$ (.*)$", example.code, flags=re.MULTILINE)
    return list(zip(pieces[1::2], pieces[2::2], strict=True))


CONSOLE = [(example, command, shown) for example in examples("console") for command, shown in commands(example)]


@pytest.mark.parametrize(("example", "command", "shown"), CONSOLE, ids=[f"{e.id} {c}" for e, c, _ in CONSOLE])
def test_console_examples_print_what_is_shown(example: Example, command: str, shown: str, tmp_path: Path) -> None:
    if not command.startswith("everlong "):
        assert command.startswith(("make ", "pip ", "git ", "cd ")), f"{example.id}: unknown command {command}"
        return
    printed = run([sys.executable, "-m", *command.split()], tmp_path)
    assert not shown.strip() or matches(shown, printed), printed


def test_the_pictures_of_the_presets_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, "scripts/draw_presets.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run python scripts/draw_presets.py"
