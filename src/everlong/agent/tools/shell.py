"""Runs a command of the model in a shell: its time, its output and its end are ours to say.

The command is a process group of its own, without input and without the secrets of our environment. At the end of its
time, when too much is written, or when the turn is interrupted the whole group is killed. It is no sandbox: a command
can do what the user can, which is why it asks first.
"""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from everlong.agent.bounding import plain
from everlong.agent.definitions import Outcome, Place, Tool, tool
from everlong.agent.tools.capturing import Capture
from everlong.agent.workspace import inside
from everlong.errors import InputError

__all__ = ["ShellLimits", "environment_without_secrets", "shell_tool"]

PIECE = 65_536
GRACE = 0.3  # seconds in which what is still on its way is read, after the command has ended
SECRET = re.compile(r"(?:^|_)(?:API)?(?:KEYS?|TOKENS?|SECRETS?|CREDENTIALS?)$|PASSWORD$|PASSWD$", re.IGNORECASE)
#: Nobody is there to page, to colour for, or to be asked.
SETTINGS = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellLimits:
    """How long a command may run, and how many bytes it may write before it is stopped."""

    seconds: int = 120
    most_seconds: int = 600
    output: int = 256_000_000


def environment_without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """What a command may see: no variable that is named like a key, token, secret or password.

    Example: {"PATH": "/bin", "OPENAI_API_KEY": "sk-…"} -> PATH and settings for a program that nobody watches
    """
    return {name: value for name, value in environment.items() if not SECRET.search(name)} | SETTINGS


def shell_tool(limits: ShellLimits | None = None) -> Tool:
    """The shell, with its limits."""
    within = limits or ShellLimits()

    @tool(asks=True)
    async def shell(
        command: str,
        place: Place,
        seconds: Annotated[int, "how long it may run"] = within.seconds,
        folder: Annotated[str, "where to run it, relative to the workspace"] = ".",
    ) -> Outcome:
        """Run a command in a shell and give back what it writes and its exit code. It has no input."""
        if not command.strip() or "\0" in command:
            raise InputError("command: is empty, or has a NUL in it")
        if seconds < 1:
            raise InputError("seconds: is a number of seconds, from 1")
        where = inside(place, folder)
        if not where.is_dir():
            raise InputError(f"folder: {folder} is no folder")
        allowed = min(seconds, within.most_seconds)
        capture = Capture(place.workspace)
        try:
            end = await _run(command, where, capture, allowed, within.output)
        finally:
            capture.close()
        return Outcome("\n".join(filter(None, (_text(capture), f"[{end}]"))), failed=not end.startswith("exit code 0"))

    return shell


async def _run(command: str, where: Path, capture: Capture, seconds: int, most: int) -> str:
    """Run it to its end, in words."""
    reading, writing = os.pipe()
    output = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), os.fdopen(reading, "rb", 0)
    )
    try:
        process = await _started(command, where, writing)
        collecting = asyncio.create_task(_collect(output, capture, most))
        try:
            return await _ended(process, collecting, seconds, most)
        finally:
            if process.returncode is None:
                _kill_group(process.pid)
            collecting.cancel()
            await asyncio.gather(process.wait(), collecting, return_exceptions=True)
    finally:
        transport.close()


async def _started(command: str, where: Path, output: int) -> asyncio.subprocess.Process:
    """Start it. Our end of its output is closed, whatever comes of it: else it would never end."""
    try:
        return await asyncio.create_subprocess_exec(
            *(shutil.which("bash") or "/bin/sh", "-c", command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=where,
            env=environment_without_secrets(os.environ),
            start_new_session=True,
        )
    except (OSError, UnicodeEncodeError) as error:
        raise InputError(f"the shell could not be started: {error}") from error
    finally:
        os.close(output)


async def _ended(process: asyncio.subprocess.Process, collecting: "asyncio.Task[bool]", seconds: int, most: int) -> str:
    """Wait for its end, its time, or too much output; what it was."""
    waiting = asyncio.create_task(process.wait())
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    try:
        await asyncio.wait({waiting, collecting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if collecting.done() and not collecting.result():
            return f"stopped: it wrote more than {most:,} bytes"
        await asyncio.wait({waiting}, timeout=max(0, until - clock()))  # it may have closed its output and go on
        if not waiting.done():
            return f"stopped after {seconds} seconds; give it more, or run it in the background, its output in a file"
        await asyncio.wait({collecting}, timeout=GRACE)
    finally:
        waiting.cancel()
    code = process.returncode or 0
    said = f"killed by signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return said if collecting.done() else f"{said}; something of it still runs in the background, unread"


async def _collect(output: asyncio.StreamReader, capture: Capture, most: int) -> bool:
    """Read until all is written, or more than may be: then False."""
    while piece := await output.read(PIECE):
        capture.take(piece)
        if capture.total > most:
            return False
    return True


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _text(capture: Capture) -> str:
    """What it wrote, whole or its head and tail."""
    if capture.left_out <= 0:
        return plain(bytes(capture.head + capture.tail)).rstrip("\n")
    where = "it was not kept"
    if capture.path:
        whole = "the whole" if capture.file_is_whole else "its beginning"
        where = f"{whole} in {capture.path}, for read_file and search_files"
    marker = f"[{capture.left_out:,} of {capture.total:,} bytes left out here; {where}]"
    return "\n".join((plain(bytes(capture.head)), marker, plain(bytes(capture.tail)).rstrip("\n")))
