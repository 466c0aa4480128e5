"""`everlong serve` as a process of its own, as an operator runs it."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self

__all__ = ["ServingProcess"]

PATIENCE = 30  # seconds; only a failing test waits so long


class ServingProcess:
    """`with ServingProcess("--upstream", url) as gateway: …`; it is told to end on leaving, unless it has ended."""

    def __init__(self, *options: str, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self.port = 0
        self.lines: list[str] = []  # of standard output
        self.errors: list[str] = []  # of standard error

    def __enter__(self) -> Self:
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        own = {"HOME": str(self._folder), "EVERLONG_OFFLINE": "1", "XDG_CACHE_HOME": str(self._folder)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "everlong", "serve", "--port", "0", *self._options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._folder,
            env=kept | own,
        )
        assert self.process.stderr is not None
        assert self.process.stdout is not None
        self.started = self.process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/v1", self.started)
        assert found, self.started + self.process.stderr.read()
        self.port = int(found[1])
        self._readers = [
            Thread(target=lines.extend, args=(stream,), daemon=True)
            for lines, stream in ((self.lines, self.process.stdout), (self.errors, self.process.stderr))
        ]
        for reader in self._readers:
            reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(signal.SIGTERM)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def tell(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait: the exit code. Afterwards all that it printed is there."""
        if self.process.poll() is None:
            self.tell(number)
        return self.ended()

    def ended(self) -> int:
        """The exit code, when it has ended by itself."""
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for reader in self._readers:
            reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code

    def takes_connections(self) -> bool:
        """Whether a new client gets in."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE).close()
        except ConnectionError:
            return False
        return True
