"""The server for tests leaves nothing behind, however the process that used it ends."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.store.postgres_server import private_server

ROOT = Path(__file__).parents[3]
USE = "from tests.store.postgres_server import session_server; print(session_server().folder, flush=True); input()"


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "ended"])
def test_the_server_stops_when_its_last_user_is_gone(killed: bool) -> None:
    session = {**os.environ, "PYTEST_XDIST_TESTRUNUID": uuid4().hex}
    with subprocess.Popen(
        [sys.executable, "-c", USE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=session
    ) as user:
        assert user.stdout
        folder = Path(user.stdout.readline().strip())
        with (folder / "kept").open("rb") as kept:
            if killed:
                user.kill()
            user.communicate("\n" if not killed else None)
            fcntl.flock(kept, fcntl.LOCK_SH)  # until the keeper is done
    assert not folder.exists()


def test_a_private_server_restarts_and_is_gone_in_the_end() -> None:
    with private_server() as server:
        url = server.new_database()
        server.restart("immediate")
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchall() == [(1,)]
    assert not server.folder.exists()
