"""The local model as an endpoint: started on entry, stopped on exit."""

import secrets
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from everlong.errors import InputError
from everlong.extras import expect_extras
from everlong.llm.endpoints import Endpoint

__all__ = ["LocalServer"]

SMALLEST_CONTEXT = 512
LAST_WORDS = 200  # characters of the last line that a failed server printed


class LocalServer:
    """A GGUF file served on this machine. Any OpenAI or Anthropic client can use its `url` with its `key`.

    A new key is made for each run, because otherwise any web page in a browser on this machine could use the model.
    Pass `port` and `key` if the address must be known before the server starts. One thread is the default: two are
    slower on a busy machine.
    """

    def __init__(self, file: Path, *, context: int = 8_192, threads: int = 1, port: int = 0, key: str = "") -> None:
        expect_extras("a local model", "local")
        if not file.is_file():
            raise InputError(f"no such model file: {file}")
        if context < SMALLEST_CONTEXT:
            raise InputError(f"a context window of {context} tokens is too small: use at least {SMALLEST_CONTEXT}")
        self.context = context
        figures = [str(figure) for figure in (context, threads, port)]
        self._command = [sys.executable, "-m", "everlong.llm.local.process", str(file), *figures]
        self.key = key or secrets.token_urlsafe(24)
        self._process: subprocess.Popen[str] | None = None
        self.address = ""

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"{self.address}/v1"

    def endpoint(self, fmt: str = "openai-chat") -> Endpoint:
        """Return its endpoint for our own clients."""
        return Endpoint(url=self.url, fmt=fmt, key=self.key)

    def __enter__(self) -> Self:
        with tempfile.TemporaryFile("w+") as errors:  # a pipe that nobody reads would fill up and stop the server
            self._process = subprocess.Popen(
                self._command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            with suppress(BrokenPipeError):  # it has ended already; its last words are read below
                self._process.stdin.write(f"{self.key}\n")  # not among its arguments, which everyone can list
                self._process.stdin.flush()
            self.address = self._process.stdout.readline().strip()
            if not self.address:
                self._process.communicate()
                errors.seek(0)
                said = errors.read().strip().splitlines() or ["no reason given"]
                raise InputError(f"the local model did not start: {said[-1][:LAST_WORDS]}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()
            self._process = None
