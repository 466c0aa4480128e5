"""The lock of a session folder: nanobot's own, so that nanobot and we never write at the same time.

It is held for one read or write of files, never while a model is called. A second writer waits, then gets StoreBusy. A
folder that cannot be written is read without a lock, unless a lock file exists.
"""

import errno
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from everlong.errors import StoreBusy, StoreError

__all__ = ["FolderLock"]

LOCK_FILE = ".session-files.lock"
FIRST_PAUSE = 0.0005  # seconds between two attempts; doubles
LONGEST_PAUSE = 0.02
SILENT = 1.0  # seconds of waiting before it is logged
READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)

logger = logging.getLogger("everlong.store")

if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class FolderLock:
    """One lock for all threads and processes that use the folder. The same thread may take it again."""

    def __init__(self, folder: Path, wait: float) -> None:
        self._path = folder / LOCK_FILE
        self._folder = folder
        self._wait = wait
        self._inner = threading.RLock()
        self._depth = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock, so that nobody else reads or writes. Raises StoreBusy if it cannot be taken in time."""
        if not self._inner.acquire(timeout=self._wait):
            raise self._busy()
        try:
            fd = -1 if self._depth else self._take()
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if fd >= 0:
                    os.close(fd)
        finally:
            self._inner.release()

    def _take(self) -> int:
        began = time.monotonic()
        pause = FIRST_PAUSE
        logged = False
        while True:
            fd = self._open()
            if fd < 0:
                return fd
            try:
                if _try_lock(fd) and self._is_named(fd):
                    return fd
            except OSError as error:
                os.close(fd)
                raise self._refused(error) from error
            os.close(fd)
            waited = time.monotonic() - began
            if waited >= self._wait:
                raise self._busy()
            if waited >= SILENT and not logged:
                logged = True
                logger.info("%s: waiting for another program that holds its lock", self._folder)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _open(self) -> int:
        """Open the lock file; -1 if there is none and none can be created, because the folder is read-only."""
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            if error.errno not in READ_ONLY:
                raise self._refused(error) from error
        with suppress(OSError):
            return os.open(self._path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        return -1

    def _refused(self, error: OSError) -> StoreError:
        return StoreError(f"{self._folder} cannot hold sessions: {error.strerror or type(error).__name__}")

    def _is_named(self, fd: int) -> bool:
        """Whether the lock file still has its name; a lock on a removed file guards nothing."""
        try:
            return os.path.samestat(os.fstat(fd), self._path.stat())
        except FileNotFoundError:
            return False

    def _busy(self) -> StoreBusy:
        return StoreBusy(
            f"{self._folder}: another program has held the lock for {self._wait:g} s; stop that program"
            " or try again later (?timeout=SECONDS after the store's name waits longer)"
        )
