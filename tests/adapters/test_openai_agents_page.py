"""The program on the page of the OpenAI Agents SDK: short, and going on where it ended."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from everlong.testing import ScriptedServer
from tests.adapters.pages import example_of

ROOT = Path(__file__).parents[2]
MOST_LINES = 8
FORMAT = ["-m", "ruff", "format", "--line-length", "100", "--isolated", "-"]


@pytest.fixture
def program() -> str:
    return example_of("openai-agents")


def run(*arguments: str, given: str = "", folder: Path = ROOT, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        input=given,
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | variables,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_short_as_it_is_formatted(program: str) -> None:
    formatted = run(*FORMAT, given=program)
    assert formatted == program
    assert sum(bool(line.strip()) for line in formatted.splitlines()) <= MOST_LINES


def test_it_runs_and_goes_on_where_it_ended(program: str, tmp_path: Path) -> None:
    with ScriptedServer() as server:
        for _ in range(2):
            printed = run(
                "-c",
                program,
                given="Hello!\n",
                folder=tmp_path,
                OPENAI_BASE_URL=server.url,
                OPENAI_API_KEY="key",
                OPENAI_AGENTS_DISABLE_TRACING="1",
            )
            assert printed == "> Hello!\n"
    first, second = (json.loads(request.body)["input"] for request in server.requests)
    assert second[: len(first)] == first
    assert len(second) == len(first) + 2


def test_without_the_sdk_one_line_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['agents'] = None\n"
        "try:\n    import everlong.adapters.openai_agents\n"
        "except ImportError as error:\n    print(error)\n"
    )
    told = run("-c", program)
    assert told.count("\n") == 1
    assert 'pip install "openai-agents>=0.24"' in told
