"""Memory of a process that serves for long: one heap for all threads, and what is free given back to the system.

Both are the C library's to do, and not every one can: then nothing happens.
"""

import ctypes
from contextlib import suppress

__all__ = ["give_back", "keep_together"]

M_ARENA_MAX = -8  # glibc's number for it


def keep_together() -> None:
    """One heap for all threads: what one lets go another can use. Call it before there are threads."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def give_back() -> None:
    """Let the system have what is free. Takes some milliseconds; not in the event loop."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
