"""Searching files: what is found, what is left out, and patterns that would never end."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everlong.agent.definitions import Outcome, Place
from everlong.agent.tools.isolation import run_isolated
from everlong.agent.tools.search import MOST_CHARACTERS, MOST_MATCHES, search_files, search_tool

Search = Callable[..., Outcome]


@pytest.fixture
def search(tmp_path: Path) -> Search:
    files = {
        "a.py": "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n",
        "src/文件.txt": "第一行\n这里有 你好 世界\n第三行\n",
        "src/deep/b.py": "import a\na.add(1, 2)\n",
        "node_modules/x.py": "def add(): pass\n",
        ".git/y.py": "def add(): pass\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "gb.txt").write_bytes("编码不同，你好".encode("gb18030"))
    (tmp_path / "binary").write_bytes(b"def add\0\1\2")
    (tmp_path / "out").symlink_to("/etc")

    def made(**arguments: Any) -> Outcome:
        place = Place(thread="t", call="c", workspace=tmp_path)
        return asyncio.run(asyncio.wait_for(search_files.run(arguments, place), 60))

    return made


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"pattern": r"def \w+"}, "a.py:\n1:def add(a, b):\n--\n5:def sub(a, b):"),
        ({"pattern": "ADD"}, "[nothing found in 4 files]"),
        ({"pattern": "(?i)ADD", "glob": "b.*"}, "src/deep/b.py:\n2:a.add(1, 2)"),
        ({"pattern": "add(a", "regex": False}, "a.py:\n1:def add(a, b):"),
        ({"pattern": "a.add", "glob": "src/**/*.py"}, "src/deep/b.py:\n2:a.add(1, 2)"),
        ({"pattern": "add", "path": "src/deep"}, "src/deep/b.py:\n2:a.add(1, 2)"),
        ({"pattern": "add", "path": "src/deep/b.py"}, "src/deep/b.py:\n2:a.add(1, 2)"),
        ({"pattern": "add", "path": "node_modules"}, "node_modules/x.py:\n1:def add(): pass"),
        ({"pattern": "你好"}, "src/文件.txt:\n2:这里有 你好 世界\ngb.txt:\n1:编码不同，你好"),
        ({"pattern": "你好", "path": "src", "context": 1}, "src/文件.txt:\n1-第一行\n2:这里有 你好 世界\n3-第三行"),
        (
            {"pattern": "def|return", "context": 1},
            "a.py:\n1:def add(a, b):\n2:    return a + b\n3-\n4-\n5:def sub(a, b):\n6:    return a - b",
        ),
    ],
    ids=[
        "regex",
        "case",
        "any-case",
        "words",
        "glob",
        "folder",
        "file",
        "ignored-named",
        "chinese",
        "context",
        "joined",
    ],
)
def test_what_is_found(search: Search, arguments: dict[str, Any], text: str) -> None:
    assert search(**arguments) == Outcome(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pattern": "("}, "unterminated subpattern"),
        ({"pattern": ""}, "must not be empty"),
        ({"pattern": "root", "path": "/etc"}, "outside"),
        ({"pattern": "root", "path": "out"}, "outside"),
        ({"pattern": "root", "path": ".."}, "outside"),
        ({"pattern": "root", "path": "nothing"}, "no such file"),
    ],
    ids=["broken", "empty", "absolute", "link", "parent", "missing"],
)
def test_what_cannot_be_searched(search: Search, arguments: dict[str, Any], said: str) -> None:
    outcome = search(**arguments)
    assert outcome.failed
    assert said in outcome.text
    assert "\n" not in outcome.text


def test_links_are_not_followed(search: Search) -> None:
    assert search(pattern="root:").text.startswith("[nothing found")


def test_many_matches_are_bounded_and_said_to_be(tmp_path: Path, search: Search) -> None:
    (tmp_path / "many").write_text("needle\n" * 5_000)
    text = search(pattern="needle").text
    assert text.count("needle") == MOST_MATCHES
    assert f"[stopped at {MOST_MATCHES} matches: there are more]" in text


def test_long_lines_are_shown_around_the_match(tmp_path: Path, search: Search) -> None:
    (tmp_path / "long").write_text(("x" * 100_000 + "needle" + "y" * 100_000 + "\n") * 90)
    outcome = search(pattern="needle")
    assert "xneedley" in outcome.text
    assert len(outcome.text) < MOST_CHARACTERS * 2


def test_a_pattern_without_end_is_ended_and_what_was_found_before_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("aaa\n")
    (tmp_path / "b").write_text("a" * 60 + "!\n")
    place = Place(thread="t", call="c", workspace=tmp_path)
    outcome = asyncio.run(asyncio.wait_for(search_tool(1.5).run({"pattern": "^(a+)+$"}, place), 60))
    assert outcome.text.startswith("a:\n1:aaa\n[stopped after 1.5 seconds, in b:")


def test_an_interrupt_ends_the_search(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("a" * 60 + "!\n")
    place = Place(thread="t", call="c", workspace=tmp_path)

    async def run() -> None:
        task = asyncio.create_task(search_files.run({"pattern": "^(a+)+$"}, place))
        await asyncio.wait((task,), timeout=0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(run(), 60))


#: A program that was started in the workspace, as `everlong chat` is.
STARTED_THERE = """
import asyncio, pathlib
from everlong.agent.definitions import Place
from everlong.agent.tools.search import search_files
place = Place(thread="t", call="c", workspace=pathlib.Path())
print(asyncio.run(search_files.run({"pattern": "def sub"}, place)).text)
"""


def test_modules_that_a_model_wrote_are_not_imported(tmp_path: Path, search: Search) -> None:
    for name in ("json.py", "re.py", "msgspec.py", "everlong.py", "sitecustomize.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    command = [sys.executable, "-P", "-c", STARTED_THERE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "a.py:\n5:def sub(a, b):\n"
    assert not (tmp_path / "ran").exists()


def test_a_program_aside_that_fails_is_known_by_it() -> None:
    output, ended = asyncio.run(asyncio.wait_for(run_isolated("everlong.agent.tools.matcher", b"not json", 30), 60))
    assert (output, ended) == (b"", False)
