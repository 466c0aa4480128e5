"""The tool `shell`: run a command with a limit for its time and its output.

The command runs in its own process group, without input, without the secrets of our environment, and in a sandbox if
the system has one (`sandbox`). The whole group is killed when its time is up, when it writes too much, or when the turn
is interrupted. A command in a sandbox needs approval too, because it can change the workspace.
"""

import asyncio
import os
import shlex
import shutil
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, BinaryIO, TypeAlias

from everlong.agent.definitions import Outcome, Place, Tool, tool
from everlong.agent.output import plain
from everlong.agent.permissions.action import Action
from everlong.agent.tools.environment import environment_without_secrets
from everlong.agent.tools.sandbox import Sandbox, find_sandbox
from everlong.agent.workspace import inside, open_inner, shown
from everlong.errors import InputError

__all__ = ["FOLDER", "Capture", "ShellLimits", "shell_tool"]

FOLDER = ".everlong/output"  # of the workspace, for output that is too long to be shown
MOST_FILES = 20
NOT_FOR_GIT = "*\n"
PIECE = 65_536
GRACE = 0.3  # seconds to read the last output after the command has ended
#: Starts a command that writes to a descriptor, and closes our copy of it.
Start: TypeAlias = Callable[[int], Awaitable[asyncio.subprocess.Process]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellLimits:
    """How long a command may run, and how many bytes it may write before it is stopped."""

    seconds: int = 120
    most_seconds: int = 600
    output: int = 256_000_000


@dataclass(slots=True)
class Capture:
    """The output of a command so far: its first and last bytes, and all of it in a file if it is long."""

    workspace: Path
    head_size: int = 24_000
    tail_size: int = 16_000
    file_size: int = 64_000_000
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0
    #: The file with the whole output, relative to the workspace; "" if all is in memory or none could be made.
    path: str = ""
    _file: BinaryIO | None = None
    _failed: bool = False

    def take(self, piece: bytes) -> None:
        """Take more output."""
        before = bytes(self.head + self.tail) if self.total <= self._in_memory else b""
        self.total += len(piece)
        if self.total > self._in_memory:
            self._spill(before, piece)
        room = self.head_size - len(self.head)
        self.head += piece[:room]
        self.tail += piece[room:]
        if len(self.tail) > 2 * self.tail_size:
            del self.tail[: -self.tail_size]

    def close(self) -> None:
        """Finish, after the last output."""
        if self.total > self._in_memory:
            del self.tail[: -self.tail_size]
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    @property
    def left_out(self) -> int:
        """Bytes that are neither in the head nor in the tail."""
        return self.total - len(self.head) - len(self.tail)

    @property
    def file_is_whole(self) -> bool:
        """Whether all output is in the file."""
        return bool(self.path) and not self._failed and self.total <= self.file_size

    @property
    def _in_memory(self) -> int:
        return self.head_size + self.tail_size

    def _spill(self, before: bytes, piece: bytes) -> None:
        """Write to the file; a full disk does not end the command."""
        if self._failed:
            return
        try:
            if self._file is None:
                self._file = self._new_file()
                self._file.write(before)
            self._file.write(piece[: max(0, self.file_size - self._file.tell())])
        except OSError:
            self._failed = True

    def _new_file(self) -> BinaryIO:
        """Create a file in the folder. No link is followed: a command could have put one there."""
        folder = open_inner(self.workspace, FOLDER.split("/"), mode=0o700)
        try:
            if os.fstat(folder).st_mode & 0o077:
                os.fchmod(folder, 0o700)  # other users must not read the output
            _keep_from_git(folder)
            _remove_oldest(folder)
            name = f"{token_hex(4)}.txt"
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
        self.path = f"{FOLDER}/{name}"
        return os.fdopen(handle, "wb")


def _keep_from_git(folder: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with suppress(FileExistsError), os.fdopen(os.open(".gitignore", flags, 0o600, dir_fd=folder), "w") as file:
        file.write(NOT_FOR_GIT)


def _remove_oldest(folder: int) -> None:
    with os.scandir(folder) as listing:
        dated = sorted(
            (item.stat(follow_symlinks=False).st_mtime_ns, item.name) for item in listing if item.name.endswith(".txt")
        )
    for _, name in dated[: max(0, len(dated) - MOST_FILES + 1)]:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def shell_tool(limits: ShellLimits | None = None, sandbox: Sandbox | None = None) -> Tool:
    """Return the tool with its limits and its sandbox, by default the best that works on this system."""
    most = limits or ShellLimits()
    box = sandbox or find_sandbox()

    @tool(action=_describe)
    async def shell(
        command: str,
        place: Place,
        seconds: Annotated[int, "the time limit in seconds"] = most.seconds,
        folder: Annotated[str, "where to run it, relative to the workspace"] = ".",
    ) -> Outcome:
        """Run a command in a shell and return its output and exit code. The command has no input."""
        if not command.strip() or "\0" in command:
            raise InputError("command: must not be empty or contain a NUL character")
        if seconds < 1:
            raise InputError("seconds: must be at least 1")
        directory = inside(place, folder)
        if not directory.is_dir():
            raise InputError(f"folder: {folder} is not a folder")
        capture = Capture(place.workspace)
        try:
            program, environment = _enclosed(box, command, directory, place)
            process = partial(_start, program, directory, environment)
            end = await _run(process, capture, min(seconds, most.most_seconds), most.output)
        finally:
            capture.close()
        text, failed = _text(capture), not end.startswith("exit code 0")
        reason = box.reason(text, failed=failed, homes=(os.environ.get("HOME", ""),))
        lines = (text, f"[{end}]", f"[{reason}]" if reason else "")
        return Outcome("\n".join(filter(None, lines)), failed=failed)

    return replace(shell, description=f"{shell.description} {box.description}")


def _describe(arguments: Mapping[str, Any], place: Place) -> Action:
    """Describe a command. In another folder it counts as another command, so patterns see a `cd` before it."""
    command, folder = arguments["command"], shown(place, inside(place, arguments["folder"]))
    elsewhere = folder != "."
    return Action(
        tool="shell",
        kind="command",
        subject=f"cd {shlex.quote(folder)} && {command}" if elsewhere else command,
        details=command,
        hint=f"in the folder {folder}" if elsewhere else "",
    )


def _enclosed(sandbox: Sandbox, command: str, directory: Path, place: Place) -> tuple[list[str], dict[str, str]]:
    """Return the program that runs the command, and its environment."""
    shell = (shutil.which("bash") or "/bin/sh", "-c", command)
    environment = environment_without_secrets(os.environ)
    return sandbox.enclosed(shell, (place.workspace, *place.allowed), directory, environment)


async def _run(start: Start, capture: Capture, seconds: int, most: int) -> str:
    """Run a command until it ends; return how it ended, in words."""
    reading, writing = os.pipe()
    output = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), os.fdopen(reading, "rb", 0)
    )
    try:
        process = await _started(start, writing)
        collecting = asyncio.create_task(_collect(output, capture, most))
        try:
            return await _wait(process, collecting, seconds, most)
        finally:
            if process.returncode is None:
                _kill_group(process.pid)
            collecting.cancel()
            await asyncio.gather(process.wait(), collecting, return_exceptions=True)
    finally:
        transport.close()


async def _started(start: Start, output: int) -> asyncio.subprocess.Process:
    """Start a command. An interrupt waits until it has started: only then its whole group can be killed."""
    starting = asyncio.ensure_future(start(output))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(InputError):
            process = await starting
            _kill_group(process.pid)
            await process.wait()
        raise


async def _start(
    program: list[str], directory: Path, environment: dict[str, str], output: int
) -> asyncio.subprocess.Process:
    """Start the command. Close our copy of its output in any case, or reading it would never end."""
    try:
        return await asyncio.create_subprocess_exec(
            *program,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=directory,
            env=environment,
            start_new_session=True,
        )
    except (OSError, UnicodeEncodeError) as error:
        raise InputError(f"the shell could not be started: {error}") from error
    finally:
        os.close(output)


async def _wait(process: asyncio.subprocess.Process, collecting: "asyncio.Task[bool]", seconds: int, most: int) -> str:
    """Wait until the command ends, its time is up or it has written too much; return which it was, in words."""
    waiting = asyncio.create_task(process.wait())
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    try:
        await asyncio.wait({waiting, collecting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if collecting.done() and not collecting.result():
            return f"stopped: it wrote more than {most:,} bytes"
        await asyncio.wait({waiting}, timeout=max(0, until - clock()))  # it may have closed its output and still run
        if not waiting.done():
            return f"stopped after {seconds} seconds; allow more, or run it in the background with its output in a file"
        await asyncio.wait({collecting}, timeout=GRACE)
    finally:
        waiting.cancel()
    code = process.returncode or 0
    end = f"killed by signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return (
        end if collecting.done() else f"{end}; a process of it still runs in the background, and its output is not read"
    )


async def _collect(output: asyncio.StreamReader, capture: Capture, most: int) -> bool:
    """Read until the output ends; return False if it is too long."""
    while piece := await output.read(PIECE):
        capture.take(piece)
        if capture.total > most:
            return False
    return True


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _text(capture: Capture) -> str:
    """Return the output, whole or its head and tail."""
    if capture.left_out <= 0:
        return plain(bytes(capture.head + capture.tail)).rstrip("\n")
    where = "they were not stored"
    if capture.path:
        whole = "the full output is" if capture.file_is_whole else "the beginning is"
        where = f"{whole} in {capture.path}: use read_file or search_files"
    marker = f"[{capture.left_out:,} of {capture.total:,} bytes left out here; {where}]"
    return "\n".join((plain(bytes(capture.head)), marker, plain(bytes(capture.tail)).rstrip("\n")))
