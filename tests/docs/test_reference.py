"""The reference is what the program says of itself; what cannot be written by hand need not be compared by hand."""

import subprocess
import sys

import click
import pytest

from everlong.cli.main import program
from tests.docs.pages import DOCS, ROOT, read_page


def test_the_reference_is_up_to_date() -> None:
    command = [sys.executable, "scripts/reference.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run python scripts/reference.py\n{done.stdout}{done.stderr}"


def test_the_index_leads_to_every_page() -> None:
    index = DOCS / "reference" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in read_page(index).links}
    missing = [path.name for path in (DOCS / "reference").rglob("*.md") if path != index and path not in linked]
    assert not missing


def commands(group: click.Group, path: str = "everlong") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        found[f"{path} {name}"] = command
        if isinstance(command, click.Group):
            found |= commands(command, f"{path} {name}")
    return found


COMMANDS = commands(program)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_has_help(path: str) -> None:
    assert COMMANDS[path].help
    for parameter in COMMANDS[path].params:
        assert not isinstance(parameter, click.Option) or parameter.help, parameter.opts
