"""A peer: another library in one long-lived process in its own environment.

Owns the process and remembers what was sent to it, so that a conversation is sent only once, however many questions
there are about it. Messages that the peer did not change come back as the same values.
"""

import json
import os
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any

from everlong.core import History, Json, JsonObject, Message
from everlong.errors import EverlongError, InputError
from everlong.lab.environments import ENVIRONMENTS, Environments, folder_from
from everlong.lab.peers.table import PEERS, PeerRow
from everlong.wire import OPENAI_CHAT

__all__ = ["Peer", "Process", "open_peer"]

LAST_WORDS_SECONDS = 5.0  # for a process that closed its output to say why
PATIENCE = 300.0  # seconds for one answer
WORKER = "everlong.lab.peers.worker"


def open_peer(name: str, environments: Environments | None = None) -> "Peer":
    """Return the peer with that name, after creating its environment if necessary.

    Raises InputError if there is no such peer, or if it cannot be installed.
    """
    if name not in PEERS:
        raise InputError(f"unknown peer {name!r}: the peers are {', '.join(PEERS)}")
    where = environments or Environments(folder_from(os.environ))
    row = PEERS[name]
    environment = ENVIRONMENTS[row.environment]
    if not where.installed(environment):
        raise InputError(f"{row.title} cannot be installed: {', '.join(environment.wanted)}")
    command = (str(where.python(environment)), "-m", WORKER, row.module, row.strategy)
    return Peer(row, Process(command, where.settings()), where.report)


class Process:
    """A program that answers each line with a line. It starts with the first request, and again after it has ended."""

    def __init__(self, command: Sequence[str], settings: dict[str, str], patience: float = PATIENCE) -> None:
        self._command = tuple(command)
        self._settings = settings
        self._patience = patience
        self._running: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None
        self._last_words = ""
        self._end: Callable[[], object] = _nothing

    @property
    def fresh(self) -> bool:
        """Return whether the next request is the first one for a process."""
        return self._running is None

    def ask(self, line: str) -> str:
        """Return the answer; "" if the process ended or took too long: `last_words` then says why."""
        running = self._running or self._start()
        if running.stdin is None or running.stdout is None:
            raise EverlongError(f"{self._command[0]} has no pipes")
        clock = threading.Timer(self._patience, running.kill)
        clock.start()
        try:
            running.stdin.write(line + "\n")
            running.stdin.flush()
            answer = running.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            clock.cancel()
        if not answer:
            with suppress(subprocess.TimeoutExpired):
                running.wait(LAST_WORDS_SECONDS)  # its output may end before its reason is written
            self.close()
        return answer

    def last_words(self) -> str:
        """Return the last line that the process wrote to standard error."""
        return self._last_words

    def close(self) -> None:
        """End the process if there is one."""
        if self._errors is not None and not self._errors.closed:
            self._errors.seek(0)
            lines = (line.strip() for line in reversed(self._errors.readlines()))
            self._last_words = next(filter(None, lines), "the answer timed out")
        self._end()
        self._running = None

    def _start(self) -> subprocess.Popen[str]:
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - kept to be read
        self._running = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=self._settings,
            text=True,
            encoding="utf-8",
        )
        self._end = weakref.finalize(self, _end, self._running, self._errors)
        return self._running


def _nothing() -> None:
    """Do nothing: no process was started."""


def _end(running: subprocess.Popen[str], errors: IO[str]) -> None:
    running.kill()
    running.wait()
    for pipe in (running.stdin, running.stdout, errors):
        with suppress(BrokenPipeError):  # a request that was never read is still in the pipe
            if pipe is not None:
                pipe.close()


class Peer:
    """Takes messages and a budget, returns messages; none if the peer fails. Each reason is reported once."""

    def __init__(self, row: PeerRow, process: Process, report: Callable[[str], None]) -> None:
        self.row = row
        self._process = process
        self._report = report
        self._reported: set[str] = set()
        self._sent: list[Message] = []
        self._written: list[Message] = []  # one per line that was sent; results in one message are separate here
        self._ends: list[int] = []  # where each sent message ends in that list

    @property
    def name(self) -> str:
        """Return the name of the peer."""
        return self.row.name

    def __call__(self, messages: Sequence[Message], budget: int) -> History:
        """Return what the peer would send."""
        answer = self._ask(messages, budget)
        if "error" in answer:
            self._report_once(answer["error"])
            return ()
        return tuple(self._message(entry) for entry in answer["messages"])

    def close(self) -> None:
        """End the process of the peer."""
        self._process.close()

    def _ask(self, messages: Sequence[Message], budget: int) -> dict[str, Any]:
        if self._process.fresh:
            self._forget(0)
        shared = _shared(self._sent, messages)
        added: list[JsonObject] = []
        if shared < len(messages):
            self._forget(shared)
        keep = len(self._written)
        for message in messages[shared:]:
            written = OPENAI_CHAT.write_message(message)
            added += written
            self._written += [message] if len(written) == 1 else map(OPENAI_CHAT.read_message, written)
            self._sent.append(message)
            self._ends.append(len(self._written))
        length = self._ends[len(messages) - 1] if messages else 0
        request = {"keep": keep, "add": added, "length": length, "budget": budget}
        answer = self._process.ask(json.dumps(request))
        if not answer:
            return {"error": self._process.last_words()}
        decoded: dict[str, Any] = json.loads(answer)
        return decoded

    def _report_once(self, error: str) -> None:
        kind = error.partition(":")[0]
        if kind not in self._reported:
            self._reported.add(kind)
            self._report(f"{self.name} gives nothing for some: {error}")

    def _forget(self, length: int) -> None:
        del self._sent[length:]
        del self._ends[length:]
        del self._written[self._ends[-1] if self._ends else 0 :]

    def _message(self, entry: Json) -> Message:
        return self._written[entry] if isinstance(entry, int) else OPENAI_CHAT.read_message(entry)


def _shared(known: Sequence[Message], messages: Sequence[Message]) -> int:
    """Return the number of common leading messages."""
    pairs = enumerate(zip(known, messages, strict=False))
    differing = (at for at, (one, other) in pairs if one is not other and one != other)
    return next(differing, min(len(known), len(messages)))
