"""Clients that are small programs: they ask the server that they are given, as the real ones do."""

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from everlong.cli.wrap.lease import Lease

__all__ = ["Desk", "digests"]

PATIENCE = 60  # seconds; only a failing test waits so long
#: What a fake does: says what it was given, asks, and ends with a code. Its first argument says what else.
PROGRAM = """#!{python}
import json, os, signal, sys, urllib.request

def ask(url, body, **headers):
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {{"content-type": "application/json", **headers}})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())

def messages(turns, words):
    said = []
    for turn in range(turns):
        said.append({{"role": "user", "content": f"Note {{turn}}: " + f"pier {{turn}} has boats. " * words}})
        body = {{"model": "claude-sonnet-4-5", "max_tokens": 200, "messages": said}}
        key = {{"x-api-key": os.environ.get("ANTHROPIC_API_KEY", "none"), "anthropic-version": "2023-06-01"}}
        answer = ask(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body, **key)
        said.append({{"role": "assistant", "content": answer["content"][0]["text"][:40]}})

def say(**told):
    print(json.dumps(told), flush=True)

{body}
"""


class Desk:
    """A user's machine: a home, programs on the PATH, and no gateway at the usual port."""

    def __init__(self, folder: Path) -> None:
        self.home, self.programs = folder / "home", folder / "programs"
        self.work = self.home / "work"
        self.work.mkdir(parents=True)
        self.programs.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.free_port = probe.getsockname()[1]

    def program(self, name: str, body: str) -> Path:
        """Put a client on the PATH."""
        path = self.programs / name
        path.write_text(PROGRAM.format(python=sys.executable, body=body), encoding="utf-8")
        path.chmod(0o755)
        return path

    def variables(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PYTHONPATH", "LANG", "TMPDIR") if name in os.environ}
        own = {"HOME": str(self.home), "PATH": f"{self.programs}{os.pathsep}/usr/bin{os.pathsep}/bin"}
        usual = {"EVERLONG_OFFLINE": "1", "EVERLONG_GATEWAY_PORT": str(self.free_port)}
        return kept | own | usual | more

    def start(self, *arguments: str, variables: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start `everlong …`; the caller reads what it says."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "everlong", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.work,
            env=self.variables(**(variables or {})),
        )

    def run(self, *arguments: str, variables: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        """Run `everlong …` to its end."""
        process = self.start(*arguments, variables=variables)
        out, err = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    @property
    def state(self) -> Path:
        return self.home / ".local" / "state" / "everlong" / "wrap"

    def leases(self) -> list[Lease]:
        """The leases of the gateways that runs have started."""
        return [Lease(path) for path in sorted(self.state.glob("*.used"))]


def digests(folder: Path) -> dict[str, str]:
    """The contents of every file below a folder, by name."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
