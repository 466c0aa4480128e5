"""Run work that hostile input could make endless in a separate process, and kill it at its time limit.

A regular expression or a parser holds the interpreter while it runs: neither a thread nor a timer can stop it.
"""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

import everlong

__all__ = ["run_isolated"]

MOST_OUTPUT = 32_000_000  # bytes
PIECE = 65_536
#: The folders of our own code and no others: a model may be able to write modules into another import folder.
IMPORT_PATH = os.pathsep.join(
    dict.fromkeys(str(Path(package.__file__ or "").parents[1]) for package in (everlong, msgspec))
)


async def run_isolated(module: str, data: bytes, seconds: float) -> tuple[bytes, bool]:
    """Run the module of that name with `data` as its input; return its output, and whether it succeeded.

    If it was stopped, the output is what it wrote until then.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=os.sep,
        env={**os.environ, "PYTHONPATH": IMPORT_PATH, "PYTHONUTF8": "1"},
    )
    output = bytearray()
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(_feed(process, data), _collect(process, output))
            return bytes(output), await process.wait() == 0
    except TimeoutError:
        return bytes(output), False
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it may have ended without reading
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
    with suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.wait_closed()


async def _collect(process: asyncio.subprocess.Process, output: bytearray) -> None:
    assert process.stdout is not None
    while len(output) < MOST_OUTPUT and (piece := await process.stdout.read(PIECE)):
        output += piece
    if len(output) >= MOST_OUTPUT:
        process.kill()
