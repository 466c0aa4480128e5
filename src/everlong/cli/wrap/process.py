"""The client's process: it has the terminal, its signals and its exit code are as they would be without us."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from everlong.errors import InputError

__all__ = ["end_like", "run_client"]

NOT_FOUND, NOT_STARTED = 127, 126
#: Signals that others send to us alone, and that the client is to hear.
HANDED_ON = tuple(number for number in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, number))
#: Signals of the terminal, which the client gets by itself.
OF_TERMINAL = tuple(number for number in ("SIGINT", "SIGQUIT", "SIGTSTP") if hasattr(signal, number))
#: A client that one of these has ended: we end by the same, so that a shell or a script sees what it would see.
ENDED_BY = tuple(number for number in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, number))


def run_client(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the client until it ends; return its exit code, or the number of the signal that ended it, negative."""
    with _signals() as listeners:
        try:
            process = subprocess.Popen(list(command), env=dict(environment))
        except OSError as error:
            raise InputError(f"{command[0]} cannot be started: {error.strerror or error}") from None
        listeners.append(process)
        return _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end. A client that stops itself (Ctrl-Z) stops us too, so that the shell is there again."""
    if sys.platform == "win32":
        return process.wait()
    while True:
        try:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
        except InterruptedError:
            continue
        if os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)
            process.send_signal(signal.SIGCONT)
            continue
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode


@contextmanager
def _signals() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Hand signals on to the processes in the list; those of the terminal only if it did not reach them."""
    listeners: list[subprocess.Popen[bytes]] = []

    def hand_on(number: int, _: FrameType | None) -> None:
        for process in listeners:
            if process.returncode is None:
                process.send_signal(number)

    def hand_on_unless_heard(number: int, frame: FrameType | None) -> None:
        if not _in_foreground():
            hand_on(number, frame)

    handlers = dict.fromkeys(HANDED_ON, hand_on) | dict.fromkeys(OF_TERMINAL, hand_on_unless_heard)
    kept = {name: signal.signal(signal.Signals[name], handler) for name, handler in handlers.items()}
    try:
        yield listeners
    finally:
        for name, handler in kept.items():
            signal.signal(signal.Signals[name], handler)


def _in_foreground() -> bool:
    """Whether the terminal's keys reach our group of processes, the client among them."""
    if sys.platform == "win32":
        return True
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def end_like(code: int) -> None:
    """End this process as the client ended: with its exit code, or by the signal that ended it."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if code < 0:
        name = signal.Signals(-code).name
        if name in ENDED_BY:
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        sys.exit(128 - code)
    sys.exit(code)
