"""Backup and restore with the commands of docs/operate/backup.md, using Postgres' own programs; migrations as a job."""

import os
import re
import subprocess
import sys
from pathlib import Path

from everlong import Message, Role, Text
from everlong.store import open_store
from tests.store.postgres_server import database_url, drop_database, session_server

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "operate" / "backup.md").read_text(encoding="utf-8")


def migrate(url: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "everlong", "migrate", "--store", url, *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"HOME": str(folder)},
    )


def options_of(program: str) -> list[str]:
    """The options with which the page calls a program, without its files and databases."""
    found = re.search(rf"^{program} (.*)$", PAGE, re.MULTILINE)
    assert found
    return [word for word in found[1].split() if word.startswith("--") and not word.startswith(("--file", "--dbname"))]


def test_a_dump_restored_into_an_empty_database_has_every_thread(tmp_path: Path) -> None:
    server, before, after = session_server(), database_url(), session_server().new_database()
    done = migrate(before, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "The tables of the store are up to date.\n", "")
    said = [Message(role=Role.USER, parts=(Text(f"Boat {number} \0 名"),)) for number in range(20)]
    with open_store(before) as store:
        store.create("harbour", title="Boats")
        store.append("harbour", said)
        store.keep_fact("gateway/notes", "one", '{"kept": true}')
    dump = server.folder / "everlong.dump"
    dump.unlink(missing_ok=True)
    server.run("pg_dump", *options_of("pg_dump"), f"--file={dump}", f"--dbname={before}")
    server.run("pg_restore", *options_of("pg_restore"), f"--dbname={after}", str(dump))
    with open_store(after) as store:
        assert [row.entry for row in store.read("harbour")] == said
        assert store.fact("gateway/notes", "one") == '{"kept": true}'
    again = migrate(after, tmp_path, "--lang", "zh")
    assert (again.returncode, again.stdout) == (0, "存储的表已是最新。\n")
    drop_database(before)


def test_a_store_that_cannot_be_reached_is_told_in_one_line(tmp_path: Path) -> None:
    done = migrate(f"postgresql://nobody@/none?host={tmp_path}&connect_timeout=1", tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
