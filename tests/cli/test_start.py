"""A command starts at once: what it does not need is not loaded. What is loaded is counted, not timed."""

import subprocess
import sys

import pytest

from everlong.cli.main import program

#: Rooms of the house that a command may load before it runs: none of them reads a format, opens a store or counts.
LIGHT = {"everlong.cli", "everlong.core", "everlong.doors", "everlong.errors", "everlong.extras", "everlong.folders"}
#: Their help lists names that stand in these rooms.
LISTS_NAMES = ("demo", "fit", "inspect")
MOST_MODULES = {"import": 45, "command": 175}
LOADED = """
import sys
{code}
print(" ".join(sorted(sys.modules)), file=sys.stderr)
"""
COMMAND = """
from everlong.cli.main import main
try:
    main({arguments!r})
except SystemExit:
    pass
"""


def loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n" + LOADED.format(code=code)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split())


def rooms(modules: set[str]) -> set[str]:
    return {".".join(name.split(".")[:2]) for name in modules if name.startswith("everlong.")}


def test_importing_everlong_loads_next_to_nothing() -> None:
    plain, ours = loaded_by(""), loaded_by("import everlong")
    assert rooms(ours) == {"everlong.doors", "everlong.errors", "everlong.extras"}
    assert len(ours - plain) <= MOST_MODULES["import"]
    assert not ours & {"asyncio", "click", "msgspec", "rich", "splintr", "sqlite3", "platformdirs"}


@pytest.mark.parametrize("arguments", ["--version", "--help", *(f"{name} --help" for name in sorted(program.commands))])
def test_a_command_loads_what_it_does_when_it_runs(arguments: str) -> None:
    ours = loaded_by(COMMAND.format(arguments=arguments.split()))
    assert not ours & {"aiohttp", "asyncio", "mcp", "rich", "sqlite3", "starlette", "uvicorn"}
    if arguments.split()[0] not in LISTS_NAMES:
        assert rooms(ours) <= LIGHT
        assert len(ours) <= MOST_MODULES["command"], len(ours)
