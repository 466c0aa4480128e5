"""How a gateway knows that it is used, and how a run knows that a gateway is alive: by file locks.

Every client's run holds a shared lock on one file, and its gateway an exclusive lock on another. The system releases
the locks of a process that ends, however it ends; so a crash leaves nothing behind, and nobody has to poll.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

__all__ = ["SHARING", "Lease", "alone_in", "end_this_process"]

#: Whether the system has such locks; without them, every run has its own gateway.
SHARING = sys.platform != "win32"

if sys.platform == "win32":

    def _lock(_fd: int, *, shared: bool = False, wait: bool = True) -> bool:  # noqa: ARG001 - as below
        return True
else:
    import fcntl

    def _lock(fd: int, *, shared: bool = False, wait: bool = True) -> bool:
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, so that only one run at a time looks for a gateway or starts one."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = _open(folder / "lock")
    try:
        _lock(fd)
        yield
    finally:
        os.close(fd)


class Lease:
    """The two locks of one gateway. `path` is the file that its users lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._alive = path.with_suffix(".alive")
        self._fd = -1

    def take(self) -> bool:
        """Start to use the gateway; return False if it is about to end."""
        fd = _open(self.path)
        if not _lock(fd, shared=True, wait=False):
            os.close(fd)
            return False
        os.write(fd, b".")  # one byte per use, so that a run can see whether others used the gateway too
        self._fd = fd
        return True

    @property
    def uses(self) -> int:
        """How many times the gateway has been used."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def release(self) -> None:
        """Stop using the gateway."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def lives(self) -> bool:
        """Return whether the gateway is running."""
        fd = _open(self._alive)
        try:
            return not _lock(fd, wait=False)
        finally:
            os.close(fd)

    def forget(self) -> None:
        """Remove the files of a gateway that has ended."""
        for path in (self.path, self._alive):
            with suppress(OSError):
                path.unlink()

    def keep(self, end: Callable[[], None]) -> None:
        """Mark this process as the gateway until it ends. `end` is called when the last user is gone."""
        _lock(_open(self._alive))
        Thread(target=self._wait, args=(end,), name="lease", daemon=True).start()

    def _wait(self, end: Callable[[], None]) -> None:
        _lock(_open(self.path))  # held until this process ends, so that nobody can start to use it
        end()


def end_this_process() -> None:
    """End the server of this process in an orderly way, as a signal from outside would."""
    os.kill(os.getpid(), signal.SIGTERM)
