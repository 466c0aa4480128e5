"""What the `--help` of a group lists: one line for each command, none shortened on a terminal of 80 columns."""

import click
import pytest

from everlong.cli.commands.jobs import jobs_command
from everlong.cli.commands.keys import keys_command
from everlong.cli.commands.lab import lab_command
from everlong.cli.commands.sessions import sessions_command
from tests.cli.running import everlong

GROUPS = {"jobs": jobs_command, "keys": keys_command, "lab": lab_command, "sessions": sessions_command}


@pytest.mark.parametrize(("name", "group"), GROUPS.items(), ids=GROUPS)
def test_every_command_has_one_line_that_is_not_cut(name: str, group: click.Group) -> None:
    ran = everlong(name, "--help")
    listed = ran.out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert sorted(line.split()[0] for line in listed) == sorted(group.commands)
    for line in listed:
        assert not line.endswith(("...", "…")), line
        assert len(line) <= 78, line
