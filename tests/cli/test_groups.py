"""What `--help` lists: a line a command, none cut short on a terminal of 80 columns."""

import click
import pytest

from everlong.cli.commands.lab import lab_command
from everlong.cli.commands.sessions import sessions_command
from everlong.cli.main import program
from tests.cli.running import everlong

GROUPS = {"": program, "sessions": sessions_command, "lab": lab_command}


@pytest.mark.parametrize(("name", "group"), GROUPS.items(), ids=lambda value: value or "everlong")
def test_every_command_has_one_line_that_is_not_cut(name: str, group: click.Group) -> None:
    ran = everlong(*filter(None, [name]), "--help")
    listed = ran.out.partition("Commands:\n")[2].splitlines()
    assert sorted(line.split()[0] for line in listed) == sorted(group.commands)
    for line in listed:
        assert not line.endswith(("...", "…")), line
        assert len(line) <= 78, line
