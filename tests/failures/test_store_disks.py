"""G1 on files: a disk that is full and a place that is read-only are one clear line each, and cost nothing kept."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from everlong.store import open_store
from tests.core.build import user
from tests.store.writer import ROOT

STORES = {"sqlite": "sqlite:///{}/threads.db", "jsonl": "jsonl:{}/sessions"}

# Each call that may write is tried on a full disk; the first word of a line is the name of the call.
FULL = """if True:
    import resource, signal, sys
    from datetime import UTC, datetime
    from everlong.core.events import Event, EventKind
    from everlong.errors import EverlongError
    from everlong.store.urls import open_store
    from tests.core.build import user
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = open_store(sys.argv[1])
    store.create("a")
    for number in range(20):
        store.append("a", [user(f"{number} " + "x" * 20_000)])
    large, most = "y" * 700_000, 500_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    event = Event(id="e", kind=EventKind.RECALLED, time=datetime.now(UTC), reason=large)
    for name, call in {
        "append": lambda: store.append("a", [user(large)], ids=["lost"]),
        "read": lambda: len(list(store.read("a"))) == 20 or sys.exit("rows are gone"),
        "open": lambda: len(store.open("a").messages) == 20 or sys.exit("messages are gone"),
        "record": lambda: store.record("a", [event]),
        "keep_fact": lambda: store.keep_fact("k", "k", large),
        "keep_counts": lambda: store.keep_counts("k", {f"{n:016x}": n for n in range(50_000)}),
        "create": lambda: store.create("b", title=large),
        "pin": lambda: store.pin("a", None, large),
    }.items():
        try:
            call()
        except EverlongError as error:
            print(name, str(error).replace(chr(10), " TWO LINES "))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.append("a", [user("there is room again")])
"""

READ_ONLY = """if True:
    import os, sys
    import everlong.store.jsonl, everlong.store.sqlite
    from everlong.errors import EverlongError
    from everlong.store.urls import open_store
    if os.geteuid() == 0:
        os.seteuid(65534)  # root may write anything
    try:
        open_store(sys.argv[1]).create("b")
    except EverlongError as error:
        print(error)
"""


def said_by(code: str, url: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code, url], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("kind", STORES.values(), ids=STORES)
def test_G1_a_full_disk_is_one_clear_line_and_loses_nothing(tmp_path: Path, kind: str) -> None:
    url = kind.format(tmp_path)
    refused = dict(line.split(" ", 1) for line in said_by(FULL, url))
    assert refused.keys() >= {"append", "record", "keep_fact", "create", "pin"}
    assert not refused.keys() & {"read", "open"}, "what is there reads on"
    assert all("full" in line or "too large" in line for line in refused.values()), refused
    assert not any("TWO LINES" in line for line in refused.values())
    with open_store(url) as store:
        assert store.thread("a").length == len(list(store.read("a"))) == 21
        assert store.row("a", "lost") is None
        assert [row.entry for row in store.last("a", 1)] == [user("there is room again")]
        assert store.events("a") == []
        assert store.fact("k", "k") is None


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Inside, everybody may read what is in the folder, and nobody but root may write."""
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield
    for path in folders:
        path.chmod(0o755)


@pytest.mark.parametrize("kind", STORES.values(), ids=STORES)
def test_G1_a_place_that_is_read_only_is_one_clear_line(kind: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with open_store(kind.format(folder)) as store:
            store.create("a")
        with read_only(folder):
            (line,) = said_by(READ_ONLY, kind.format(folder))
        with open_store(kind.format(folder)) as store:
            assert [thread.id for thread in store.threads()] == ["a"]
    assert "read-only" in line or "permission" in line.lower()


READING = """if True:
    import os, sys
    import click, rich.table, rich.box, rich.rule, rich.padding, rich.progress
    import everlong.cli.sessions.files, everlong.cli.sessions.lists, everlong.cli.sessions.transcript
    import everlong.cli.sessions.changes, everlong.cli.sessions.events, everlong.cli.words.english
    import everlong.cli.commands.sessions, everlong.store.jsonl, everlong.store.sqlite
    from everlong.cli.main import main
    if os.geteuid() == 0:
        os.seteuid(65534)  # root may write anything
    for command in (["list"], ["show", "a"], ["export", "a"], ["search", "harbour"], ["rename", "a", "b"]):
        try:
            main(["sessions", *command, "--store", sys.argv[1], "--lang", "en"])
        except SystemExit as stop:
            print("exit", stop.code, *command, file=sys.stderr)
"""


@pytest.mark.parametrize("left", ["closed", "in use"])
@pytest.mark.parametrize("kind", STORES.values(), ids=STORES)
def test_G1_a_place_that_is_read_only_is_read(kind: str, left: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with ExitStack() as stack:
            store = stack.enter_context(open_store(kind.format(folder)))
            store.create("a", title="Boats")
            store.append("a", [user("Which harbour is near?")])
            if left == "closed":
                stack.close()
            before = sorted(path.name for path in folder.rglob("*"))
            with read_only(folder):
                done = subprocess.run(
                    [sys.executable, "-c", READING, kind.format(folder)],
                    cwd=ROOT,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert sorted(path.name for path in folder.rglob("*")) == before, "nothing was written"
    assert done.stdout.count("harbour") >= 3
    assert "Boats" in done.stdout
    line, end = done.stderr.splitlines()
    assert end == "exit 1 rename a b"
    assert "read-only" in line or "permission" in line.lower()


def test_G1_a_read_only_file_whose_newest_rows_are_out_of_reach_is_refused_with_the_remedy() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with open_store(str(folder / "threads.db")) as store:
            store.create("a")
            copied = folder / "copy"
            copied.mkdir()
            for suffix in ("", "-wal"):
                (copied / f"threads.db{suffix}").write_bytes((folder / f"threads.db{suffix}").read_bytes())
        with read_only(folder):
            (line,) = said_by(READ_ONLY, str(copied / "threads.db"))
    assert "newest rows are in threads.db-wal" in line
    assert "copy both files" in line
