"""The built page, shared by the tests of all processes. `make` builds it before the suite, so nothing is built here."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from everlong.web.build import BUILT, build_page

__all__ = ["one_at_a_time", "the_page"]


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Hold a lock of that name across all processes of this user."""
    with (Path(tempfile.gettempdir()) / f"everlong-{os.getuid()}-{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@cache
def the_page() -> Path:
    """Return the folder of the page. The first test that needs it builds it, if its sources changed since `make`."""
    with one_at_a_time("building"):
        build_page()
    return BUILT
