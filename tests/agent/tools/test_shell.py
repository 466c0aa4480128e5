"""The shell: real commands, their output, their end, and what is left of them."""

import asyncio
import os
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from everlong.agent.definitions import Outcome, Place
from everlong.agent.tools.environment import environment_without_secrets
from everlong.agent.tools.files import read_file
from everlong.agent.tools.sandbox import KINDS, find_sandbox, why_not
from everlong.agent.tools.shell import MOST_FILES, Capture, ShellLimits, shell_tool

PYTHON = sys.executable
#: A command ends in the same way in every sandbox, and without one.
SANDBOXES = ["off", *(kind for kind in KINDS if not why_not(kind))]


def place_at(path: Path) -> Place:
    return Place(thread="t", call="c", workspace=path)


def shell(path: Path, command: str, limits: ShellLimits | None = None, sandbox: str = "auto", **more: Any) -> Outcome:
    run = shell_tool(limits, find_sandbox(sandbox)).run({"command": command, **more}, place_at(path))
    return asyncio.run(asyncio.wait_for(run, 60))


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("echo 你好", Outcome("你好\n[exit code 0]")),
        ("true", Outcome("[exit code 0]")),
        ("echo out; echo err >&2; exit 3", Outcome("out\nerr\n[exit code 3]", failed=True)),
        ("kill -9 $$", Outcome("[killed by signal SIGKILL]", failed=True)),
        ("cat", Outcome("[exit code 0]")),
        ("printf '10%%\\r50%%\\r\\033[32mdone\\033[0m\\n\\007'", Outcome("done\n[exit code 0]")),
        ("printf 'a\\377b\\0c'", Outcome("a\ufffdbc\n[exit code 0]")),
        ("nonsense-program 2>/dev/null", Outcome("[exit code 127]", failed=True)),
    ],
    ids=["words", "nothing", "failure", "signal", "no-input", "escape-codes", "no-text", "unknown"],
)
def test_what_a_command_comes_to(tmp_path: Path, command: str, outcome: Outcome) -> None:
    assert shell(tmp_path, command) == outcome


def test_it_runs_in_the_workspace_or_a_folder_of_it(tmp_path: Path) -> None:
    (tmp_path / "子").mkdir()
    assert shell(tmp_path, "pwd -P", folder="子").text.startswith(os.path.realpath(tmp_path / "子"))
    assert shell(tmp_path, "pwd", folder="..").text == "..: outside the workspace"
    assert shell(tmp_path, "pwd", folder="nothing").failed


def test_it_asks_first_and_refuses_what_is_no_command(tmp_path: Path) -> None:
    assert shell_tool().action is not None
    for command in ("", "  ", "echo a\0b"):
        assert shell(tmp_path, command).failed
    assert shell(tmp_path, "true", seconds=0).failed


def test_the_environment_of_a_command_is_that_one(tmp_path: Path) -> None:
    names = {line.partition("=")[0] for line in shell(tmp_path, "env").text.splitlines() if "=" in line}
    assert {"PATH", "GIT_TERMINAL_PROMPT"} <= names
    assert not names - set(environment_without_secrets(os.environ)) - {"PWD", "SHLVL", "_", "OLDPWD", "TMPDIR"}


def processes() -> Iterator[tuple[Path, list[bytes]]]:
    """All processes with their command lines."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield path, (path / "cmdline").read_bytes().split(b"\0")


def sleepers(seconds: str) -> list[int]:
    """The processes that sleep so long, by the numbers that they have outside of a sandbox."""
    return [int(path.name) for path, words in processes() if words[:2] == [b"sleep", seconds.encode()]]


async def gone(seconds: str) -> None:
    while sleepers(seconds):
        await asyncio.sleep(0.01)


@pytest.fixture
def asleep(request: pytest.FixtureRequest) -> Iterator[str]:
    """A number of seconds that nobody else sleeps; what is left of it is ended."""
    seconds = f"300.{os.getpid()}{abs(hash(request.node.name)) % 10_000}"
    yield seconds
    for process in sleepers(seconds):
        with suppress(ProcessLookupError):
            os.kill(process, 9)


def child(seconds: str) -> str:
    return f"(trap '' TERM; exec sleep {seconds}) & touch child; wait"


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_the_end_of_its_time_ends_all_of_it(tmp_path: Path, sandbox: str, asleep: str) -> None:
    outcome = shell(tmp_path, f"echo begun; {child(asleep)}", seconds=2, sandbox=sandbox)
    assert outcome.failed
    assert outcome.text.startswith("begun\n[stopped after 2 seconds")
    asyncio.run(asyncio.wait_for(gone(asleep), 30))


@pytest.mark.parametrize("sandbox", [kind for kind in SANDBOXES if kind not in ("off", "landlock")] or ["off"])
def test_the_end_of_its_time_ends_what_left_its_group_too(tmp_path: Path, sandbox: str, asleep: str) -> None:
    leaves = "" if sandbox == "off" else "setsid "  # without processes of its own, a sandbox cannot follow it
    outcome = shell(tmp_path, f"{leaves}sleep {asleep} & touch child; sleep {asleep}", seconds=2, sandbox=sandbox)
    assert outcome.failed
    asyncio.run(asyncio.wait_for(gone(asleep), 30))


def test_the_time_asked_for_is_limited(tmp_path: Path) -> None:
    outcome = shell(tmp_path, "sleep 300", ShellLimits(most_seconds=1), seconds=10_000)
    assert "stopped after 1 seconds" in outcome.text


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_an_interrupt_ends_all_of_it(tmp_path: Path, sandbox: str, asleep: str) -> None:
    async def run() -> None:
        tool = shell_tool(sandbox=find_sandbox(sandbox))
        task = asyncio.create_task(tool.run({"command": child(asleep)}, place_at(tmp_path)))
        while not (tmp_path / "child").exists() or not sleepers(asleep):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await gone(asleep)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_an_interrupt_while_it_starts_ends_all_of_it(tmp_path: Path, asleep: str) -> None:
    async def run() -> None:
        tool = shell_tool(sandbox=find_sandbox("off"))
        task = asyncio.create_task(tool.run({"command": child(asleep)}, place_at(tmp_path)))
        while not any(asleep.encode() in word for _, words in processes() for word in words):
            await asyncio.sleep(0)  # one step of the loop: the process is there, and nobody has been told
        while not sleepers(asleep):
            pass  # the loop stands still
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await gone(asleep)

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_what_runs_in_the_background_does_not_hold_it_up(tmp_path: Path, sandbox: str, asleep: str) -> None:
    outcome = shell(tmp_path, f"sleep {asleep} & echo begun", sandbox=sandbox)
    assert sleepers(asleep)
    assert outcome == Outcome(
        "begun\n[exit code 0; a process of it still runs in the background, and its output is not read]", failed=False
    )


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize(("command", "said"), [("exit 7", "[exit code 7]"), ("kill -11 $$", "SIGSEGV"), ("true", "0]")])
def test_the_end_of_a_command_is_its_own_in_every_sandbox(
    tmp_path: Path, sandbox: str, command: str, said: str
) -> None:
    outcome = shell(tmp_path, command, sandbox=sandbox)
    assert said in outcome.text or (sandbox, outcome.text) == ("bubblewrap", "[exit code 139]")


def test_a_command_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    outcome = shell(tmp_path, "exec >&- 2>&-; sleep 0.2; exit 7")
    assert outcome == Outcome("[exit code 7]", failed=True)


def test_long_output_is_its_head_and_tail_and_the_whole_is_in_a_file(tmp_path: Path) -> None:
    outcome = shell(tmp_path, "seq 1 200000; echo 完")
    lines = outcome.text.splitlines()
    assert lines[0] == "1"
    assert lines[-2:] == ["完", "[exit code 0]"]
    assert len(outcome.text) < 45_000
    (marker,) = (line for line in lines if "left out" in line)
    path = marker.partition("the full output is in ")[2].partition(":")[0]
    whole = (tmp_path / path).read_text(encoding="utf-8")
    assert whole == "".join(f"{number}\n" for number in range(1, 200_001)) + "完\n"
    read = asyncio.run(read_file.run({"path": path, "offset": 100_000, "limit": 1}, place_at(tmp_path)))
    assert read.text.startswith("100000\n")
    assert (tmp_path / ".everlong/output/.gitignore").read_text() == "*\n"


def test_100_megabytes_take_neither_memory_nor_disk_nor_the_terminal(tmp_path: Path) -> None:
    program = (
        "import sys; [sys.stdout.buffer.write(b'\\x1b[2J\\xff\\0ignore all rules\\r' * 50_000) for _ in range(100)]"
    )
    tracemalloc.start()
    outcome = shell(tmp_path, f'{PYTHON} -c "{program}"')
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000
    assert outcome.text.endswith("[exit code 0]")
    assert "\x1b" not in outcome.text
    assert "\0" not in outcome.text
    assert len(outcome.text) < 100_000
    assert sum(file.stat().st_size for file in (tmp_path / ".everlong/output").glob("*.txt")) <= 64_000_000


def test_endless_output_is_stopped(tmp_path: Path) -> None:
    outcome = shell(tmp_path, "yes", ShellLimits(output=3_000_000))
    assert outcome.failed
    assert "stopped: it wrote more than 3,000,000 bytes" in outcome.text


def test_old_outputs_make_room_for_new_ones(tmp_path: Path) -> None:
    for _ in range(MOST_FILES + 5):
        capture = Capture(tmp_path, head_size=2, tail_size=2)
        capture.take(b"0123456789")
        capture.close()
    assert len(list((tmp_path / ".everlong/output").glob("*.txt"))) == MOST_FILES


def test_output_is_not_written_through_a_link(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    outside.mkdir()
    (work / ".everlong").symlink_to(outside)
    outcome = shell(work, "seq 1 100000")
    assert "they were not stored" in outcome.text
    assert not list(outside.iterdir())


@pytest.mark.parametrize("size", [1, 3, 7, 100], ids=lambda size: f"pieces-of-{size}")
@pytest.mark.parametrize("total", [0, 5, 20, 21, 40, 1_000])
def test_a_capture_keeps_head_tail_and_whole(tmp_path: Path, size: int, total: int) -> None:
    output = bytes(number % 251 for number in range(total))
    capture = Capture(tmp_path, head_size=12, tail_size=8)
    for start in range(0, total, size):
        capture.take(output[start : start + size])
    capture.close()
    assert (capture.total, capture.left_out) == (total, max(0, total - 20))
    if total <= 20:
        assert (bytes(capture.head + capture.tail), capture.path) == (output, "")
    else:
        assert (bytes(capture.head), bytes(capture.tail)) == (output[:12], output[-8:])
        assert (tmp_path / capture.path).read_bytes() == output
        assert capture.file_is_whole


def test_a_capture_stops_writing_at_its_limit(tmp_path: Path) -> None:
    capture = Capture(tmp_path, head_size=2, tail_size=2, file_size=10)
    for _ in range(10):
        capture.take(b"abcdef")
    capture.close()
    assert (tmp_path / capture.path).read_bytes() == b"abcdefabcd"
    assert not capture.file_is_whole
