"""Tab in a shell: the program prints what the shell reads, and says what a word may become."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from everlong.core import Message, Role, Text
from everlong.store import open_store
from tests.cli.chat.talk import PROGRAM, environment
from tests.cli.running import everlong


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "threads.db"
    with open_store(str(path)) as threads:
        for name in ("boats", "boxes", "kettles"):
            threads.create(name, title=f"About {name}")
            threads.append(name, [Message(Role.USER, (Text("hello"),))])
    return path


def completed(folder: Path, line: str) -> list[str]:
    """What bash is told for the last word of a line."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_EVERLONG_COMPLETE": "bash_complete"}
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(
        command, capture_output=True, text=True, env=environment(folder) | asked, check=True, cwd=folder
    )
    assert ran.stderr == ""
    return ran.stdout.split()


LINES = {
    "everlong mod": ["plain,models"],
    "everlong sessions se": ["plain,search"],
    "everlong models gpt-4o-m": ["plain,gpt-4o-mini"],
    "everlong count --model claude-opus-4-5": ["plain,claude-opus-4-5"],
    "everlong chat --preset a": ["plain,auto"],
    "everlong fit --preset a": ["plain,auto"],
    "everlong chat --thread bo": ["plain,boxes", "plain,boats"],
    "everlong sessions show bo": ["plain,boxes", "plain,boats"],
    "everlong sessions remove k": ["plain,kettles"],
    "everlong sessions search x --in k": ["plain,kettles"],
    "everlong sessions export boats --format o": ["plain,openai"],
    "everlong inspect --for openai-c": ["plain,openai-chat"],
    "everlong chat --upstream openr": ["plain,openrouter"],
    "everlong wrap code": ["plain,codex"],
    "everlong doctor code": ["plain,codex"],
    "everlong lab replay --policy everl": ["plain,everlong"],
    "everlong lab probes --strategy everl": ["plain,everlong"],
    "everlong lab replay --prices anth": ["plain,anthropic"],
    "everlong chat --lang z": ["plain,zh"],
    "everlong count tal": ["file,tal"],
    "everlong chat --workspace d": ["dir,d"],
    "everlong --completion z": ["plain,zsh"],
}


@pytest.mark.parametrize("line", LINES)
def test_the_last_word_is_completed(line: str, store: Path) -> None:
    found = completed(store.parent, line)
    assert found[: len(LINES[line])] == LINES[line]


@pytest.mark.parametrize("line", ["everlong sessions show b", "everlong chat --thread b"])
def test_without_a_store_there_is_silence(line: str, tmp_path: Path) -> None:
    assert completed(tmp_path, line) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    ran = everlong("--completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert f"_EVERLONG_COMPLETE={shell}_complete" in ran.out


def test_bash_reads_its_script_and_completes(store: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = everlong("--completion", "bash").out
    program = store.parent / "everlong"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o700)
    asked = 'COMP_WORDS=(everlong sessions show kett) COMP_CWORD=3; _everlong_completion "$PWD/everlong"'
    lines = "\n".join((script, asked, 'echo "${COMPREPLY[@]}"'))
    ran = subprocess.run(
        [bash, "--norc", "-c", lines],
        capture_output=True,
        text=True,
        cwd=store.parent,
        env=environment(store.parent),
        check=True,
    )
    assert ran.stdout.split() == ["kettles"]
