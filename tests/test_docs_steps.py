"""Steps of pages that need a file or several commands in one folder, done as a reader does them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.test_docs import matches

DOCS = Path(__file__).parents[1] / "docs"
#: Commands, and right after them what they print.
COMMANDS = r"^```sh\n(?P<commands>[^`]*)^```\n\n```text\n(?P<shown>.*?)^```\n"


def found(page: str, pattern: str) -> re.Match[str]:
    match = re.search(pattern, (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert match is not None, page
    return match


def run(commands: str, folder: Path) -> str:
    """Run the commands in a folder; return what the last one printed."""
    printed = ""
    for command in commands.splitlines():
        everlong, *words = shlex.split(command)
        assert everlong == "everlong", command
        words = [sys.executable if word == "python" else word for word in words]
        done = subprocess.run(
            [sys.executable, "-m", "everlong", *words],
            cwd=folder,
            env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        printed = done.stdout
    return printed


def test_the_client_of_the_tutorial_runs_behind_the_gateway(tmp_path: Path) -> None:
    step = found("tutorial.md", r"as `client\.py`:\n\n```py\n(?P<client>.*?)^```\n.*?" + COMMANDS)
    (tmp_path / "client.py").write_text(step["client"], encoding="utf-8")
    printed = run(step["commands"], tmp_path)
    assert matches(step["shown"], printed), printed


def test_the_sample_is_replayed_as_the_page_about_costs_shows(tmp_path: Path) -> None:
    step = found("how-to/cost.md", COMMANDS)
    printed = run(step["commands"], tmp_path)
    assert matches(step["shown"], printed), printed
