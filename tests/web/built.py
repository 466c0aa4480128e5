"""The built page and its words, shared by the tests of all processes. `make` builds it before the suite."""

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from everlong.web.build import BUILT, PAGE, build_page

__all__ = ["one_at_a_time", "the_page", "words"]

WORD = r'^\s*"([\w.-]+)":\s*"((?:[^"\\]|\\.)*)",?$'


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


@cache
def words(language: str) -> dict[str, str]:
    """Every word of the page in a language, by its key."""
    table = (PAGE / "src" / "words" / f"{language}.ts").read_text(encoding="utf-8")
    return {key: json.loads(f'"{text}"') for key, text in re.findall(WORD, table, re.MULTILINE)}
