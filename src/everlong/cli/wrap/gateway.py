"""The gateway of a run: one that is already running, one that another run started, or a new one.

A gateway that a run started ends with the last run that uses it. This user's gateways are listed in the user's state
folder, one file for each set of settings; runs with the same settings share one.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from everlong import __version__
from everlong.cli.wrap.lease import SHARING, Lease, alone_in
from everlong.errors import EverlongError, InputError
from everlong.extras import expect_extras, lacking
from everlong.folders import NO_FILE, place
from everlong.gateway import settings_here
from everlong.llm import KNOWN

__all__ = [
    "GATEWAY",
    "Running",
    "Wanted",
    "answer_of",
    "health_of",
    "look_for",
    "reaches",
    "running_gateway",
    "state_folder",
    "with_own_config",
]

#: The variables that name a gateway to use, and the configuration file of one that is started.
GATEWAY, CONFIG = "EVERLONG_GATEWAY", "EVERLONG_CONFIG"
STARTING = 60.0  # seconds until a gateway must answer
LOOKING = 0.05  # seconds between two checks of a starting gateway
ANSWERING = 5.0  # seconds for one answer
KEPT_LOGS = 20
LISTENS = re.compile(r"listens at (http://\S+?)/v1")
#: Addresses on this machine are reached without a proxy.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The settings of a gateway for a run; "" and None mean not given. `upstreams` are tables of upstreams.

    `plain` says whether a gateway that the user started separately would work too.
    """

    upstream: str = ""
    upstreams: tuple[Mapping[str, Any], ...] = ()
    window: int | None = None
    preset: str = ""
    mode: str = ""
    store: str = ""
    plain: bool = True

    def options(self) -> list[str]:
        """Return the options of `everlong serve`."""
        given = {"--upstream": self.upstream, "--preset": self.preset, "--mode": self.mode, "--store": self.store}
        return [part for name, value in given.items() if value for part in (name, value)]

    def variables(self) -> dict[str, str]:
        """Return the variables of `everlong serve` for settings without an option: this machine only, no keys."""
        given = {"EVERLONG_GATEWAY_KEYS": "[]"}
        if self.upstreams:
            given["EVERLONG_GATEWAY_UPSTREAMS"] = json.dumps(self.upstreams)
        if self.window is not None:
            given["EVERLONG_GATEWAY_WINDOW"] = str(self.window)
        return given

    def check(self, environment: Mapping[str, str]) -> "Wanted":
        """Return these settings, adapted if the user's own configuration names its upstreams. Raises InputError."""
        given = {"upstream": self.upstream, "preset": self.preset, "mode": self.mode, "store": self.store}
        said = {name: value for name, value in given.items() if value}
        if self.upstream and not lacking("server"):
            from everlong.gateway import expect_upstream  # noqa: PLC0415 - only with the packages of the gateway

            expect_upstream(self.upstream, environment)
        config = settings_here(said, {**environment, **self.variables()})
        own = settings_here({}, environment)
        if self.plain and (config.upstream or own.upstreams):
            return replace(self, upstreams=())
        return self

    def name(self, environment: Mapping[str, str]) -> str:
        """Return the name that gateways with the same settings share; it reveals no setting."""
        variables = {name: value for name, value in environment.items() if name.startswith("EVERLONG_")}
        file = environment.get(CONFIG, "")
        key = environment.get(KNOWN[self.upstream][2], "") if self.upstream in KNOWN else ""
        parts = [__version__, sys.executable, asdict(self), variables, key]
        parts.append(str(Path(file).resolve()) if file != NO_FILE else "")
        in_module = ":" in self.preset + environment.get("EVERLONG_GATEWAY_PRESET", "")
        parts.append(str(Path.cwd()) if in_module else "")  # another folder may have a module of the same name
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A gateway that answers at `address`. `log` is its log file, if a run started it."""

    address: str
    log: str = ""
    #: Whether this run started it, and its lease.
    started: bool = False
    lease: Lease | None = field(default=None, compare=False)


def with_own_config(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a gateway that reads the user's own file, or the one that EVERLONG_CONFIG names.

    Clients run in folders whose `everlong.toml` may be someone else's, such as a cloned repository. It could send
    requests and keys elsewhere.
    """
    own = place("config", "gateway.toml", environment=environment)
    named = environment.get(CONFIG, "").strip() or (str(own) if own.is_file() else NO_FILE)
    return {**environment, CONFIG: named}


def state_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder that lists the gateways that runs have started."""
    return place("state", "wrap", environment=environment)


# --- asking a gateway ------------------------------------------------------------------------------


def answer_of(url: str, headers: Mapping[str, str] | None = None) -> bytes | None:
    """Return what a server on this machine, or the user's own server, answers to a GET; None if it does not answer."""
    try:
        with _direct.open(urllib.request.Request(url, headers=dict(headers or {})), timeout=ANSWERING) as answer:
            body: bytes = answer.read()
            return body
    except (OSError, ValueError, urllib.error.URLError):
        return None


def reaches(address: str) -> bool:
    """Whether anything answers at an address, whatever it says."""
    try:
        with _direct.open(address, timeout=ANSWERING):
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False


def health_of(address: str) -> str:
    """Return the version of the gateway at an address; "" if there is none."""
    try:
        found = json.loads(answer_of(f"{address}/health") or b"null")
    except ValueError:
        return ""
    healthy = isinstance(found, dict) and found.get("status") == "ok" and "conversations" in found
    return str(found.get("version", "")) if healthy else ""


def look_for(wanted: Wanted, environment: Mapping[str, str]) -> Running | None:
    """Return the gateway that the user named, or one at the usual port with suitable settings. Raises InputError."""
    named = environment.get(GATEWAY, "").strip().rstrip("/").removesuffix("/v1")
    if named:
        if urlsplit(named).scheme not in ("http", "https"):
            raise InputError(f"{GATEWAY} must be an address, such as http://127.0.0.1:8333")
        if not health_of(named):
            raise InputError(f"{GATEWAY}: no gateway answers at {_shown(named)}; start it, or unset the variable")
        return Running(address=named)
    if not wanted.plain:
        return None
    port = settings_here({}, environment).port
    address = f"http://127.0.0.1:{port}"
    if port and _is_ours(port) and health_of(address) == __version__:
        return Running(address=address)
    return None


def _shown(address: str) -> str:
    """The address without a user name or password."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _is_ours(port: int) -> bool:
    """Whether this user's process listens on a port, if the system shows that: the listener will receive keys."""
    try:
        lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return True
    listening = (line.split() for line in lines)
    return any(
        fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port and int(fields[7]) == os.getuid()
        for fields in listening
    )


# --- starting and sharing --------------------------------------------------------------------------


@contextmanager
def running_gateway(wanted: Wanted, environment: Mapping[str, str]) -> Iterator[Running]:
    """Provide a gateway while this is entered: found, shared or started. Raises InputError or EverlongError."""
    found = look_for(wanted, environment)
    if found is not None:
        yield found
        return
    folder = state_folder(environment)
    name = wanted.name(environment)
    with alone_in(folder):
        _clean(folder)
        shared = _join(folder / f"{name}.json") if SHARING else None
        running, process = (shared, None) if shared else _start(wanted, environment, folder, name)
    try:
        yield running
    finally:
        if running.lease is not None:
            running.lease.release()
        if process is not None and not SHARING:
            process.terminate()


def _join(record: Path) -> Running | None:
    """Join the gateway that another run with the same settings started, if it still answers."""
    try:
        fields = json.loads(record.read_text(encoding="utf-8"))
        address, log, lease = str(fields["address"]), str(fields["log"]), Lease(Path(fields["lease"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not lease.path.is_file() or not lease.lives() or not lease.take():
        return None
    if health_of(address) == __version__:
        return Running(address=address, log=log, lease=lease)
    lease.release()
    return None


def _start(
    wanted: Wanted, environment: Mapping[str, str], folder: Path, name: str
) -> tuple[Running, subprocess.Popen[bytes]]:
    """Start a gateway on a free port; it is ready when this returns."""
    expect_extras("the gateway", "server")
    identity = uuid4().hex[:12]
    lease, log = Lease(folder / f"{identity}.used"), folder / f"{identity}.log"
    lease.take()
    command = [sys.executable, "-P", "-m", "everlong", "serve", "--host", "127.0.0.1", "--port", "0"]
    command += ["--no-app", "--workers", "1", *wanted.options()]
    command += ["--while-used", str(lease.path)] if SHARING else []
    log.touch(mode=0o600)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**environment, **wanted.variables()},
            start_new_session=True,  # signals of the terminal are for the client, not for the gateway
        )
    address = ""
    try:
        address = _ready(process, log)
    finally:
        if not address:
            lease.release()
            process.terminate()
    fields = {"address": address, "log": str(log), "lease": str(lease.path), "pid": process.pid, "version": __version__}
    _write(folder / f"{name}.json", json.dumps(fields))
    return Running(address=address, log=str(log), started=True, lease=lease), process


def _ready(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the gateway answers; return its address."""
    end = time.monotonic() + STARTING
    while time.monotonic() < end:
        ended = process.poll() is not None
        text = log.read_text(encoding="utf-8", errors="replace")
        found = LISTENS.search(text)
        if found and health_of(found[1]):
            return found[1]
        if ended:
            said = [line.removeprefix("everlong: ") for line in text.splitlines() if line.strip()]
            raise EverlongError(f"the gateway did not start: {said[-1] if said else 'it printed nothing'} (log: {log})")
        time.sleep(LOOKING)
    raise EverlongError(f"the gateway did not answer within {STARTING:.0f} s (log: {log})")


def _write(path: Path, text: str) -> None:
    """Write a file atomically, readable only for this user."""
    fresh = path.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def _clean(folder: Path) -> None:
    """Remove what gateways that have ended left behind, and all but the newest logs."""
    for path in folder.glob("*.used"):
        lease = Lease(path)
        if not lease.lives():
            lease.forget()
    for record in folder.glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            if not Path(json.loads(record.read_text(encoding="utf-8"))["lease"]).is_file():
                record.unlink()
    for left in folder.glob("run-*"):
        if not _is_running(left.name.split("-")[1]):
            shutil.rmtree(left, ignore_errors=True)  # removes links, not their targets
    logs = sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in logs[KEPT_LOGS:]:
        with suppress(OSError):
            old.unlink()


def _is_running(process: str) -> bool:
    """Whether a process with this number runs; True if the system cannot say."""
    if sys.platform == "win32" or not process.isdigit():
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
