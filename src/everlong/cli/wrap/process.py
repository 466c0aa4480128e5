"""The client's process: it has the terminal, and its signals and exit code are as they would be without us."""

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
#: Signals that others send only to us; they are forwarded to the client.
HANDED_ON = tuple(number for number in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, number))
#: Signals of the terminal, which the client gets directly.
OF_TERMINAL = tuple(number for number in ("SIGINT", "SIGQUIT", "SIGTSTP") if hasattr(signal, number))
#: If one of these ended the client, we end with the same signal, so that a shell or a script sees what it expects.
ENDED_BY = tuple(number for number in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, number))


def run_client(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the client until it ends; return its exit code, or the negative number of the signal that ended it."""
    with _signals() as listeners:
        try:
            process = subprocess.Popen(list(command), env=dict(environment))
        except OSError as error:
            raise InputError(f"{command[0]} cannot be started: {error.strerror or error}") from None
        listeners.append(process)
        return _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end. If the client stops (Ctrl-Z), we stop too, so that the shell is back."""
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
    """Forward signals to the processes in the list; signals of the terminal only if it did not send them there."""
    listeners: list[subprocess.Popen[bytes]] = []

    def hand_on(number: int, _: FrameType | None) -> None:
        for process in listeners:
            if process.returncode is None:
                process.send_signal(number)

    def hand_on_in_background(number: int, frame: FrameType | None) -> None:
        if not _in_foreground():
            hand_on(number, frame)

    handlers = dict.fromkeys(HANDED_ON, hand_on) | dict.fromkeys(OF_TERMINAL, hand_on_in_background)
    kept = {name: signal.signal(signal.Signals[name], handler) for name, handler in handlers.items()}
    try:
        yield listeners
    finally:
        for name, handler in kept.items():
            signal.signal(signal.Signals[name], handler)


def _in_foreground() -> bool:
    """Whether the terminal's keys reach our process group, which includes the client."""
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
    """End this process like the client: with its exit code, or with the signal that ended it."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if code < 0:
        name = signal.Signals(-code).name
        if name in ENDED_BY:
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        sys.exit(128 - code)
    sys.exit(code)
