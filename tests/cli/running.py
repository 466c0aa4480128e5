"""Runs a command as a person would: arguments in; exit code, output and error text out."""

import io
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path

from everlong.cli.main import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def everlong(*arguments: str, stdin: bytes = b"", folder: Path | None = None) -> Ran:
    with streams(stdin) as (out, err), chdir(folder or Path.cwd()):
        try:
            main(arguments)
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        for stream in (out, err):
            stream.flush()
        return Ran(code, text_of(out), text_of(err))


@contextmanager
def streams(stdin: bytes) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    kept = sys.stdin, sys.stdout, sys.stderr
    fresh = [io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", write_through=True) for data in (stdin, b"", b"")]
    sys.stdin, sys.stdout, sys.stderr = fresh
    try:
        yield fresh[1], fresh[2]
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept


def text_of(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8")
