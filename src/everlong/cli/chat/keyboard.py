"""The person at the terminal: lines with editing, history and completion; pasted text stays one piece.

Uses readline where it exists. Answers to questions and secrets never enter the history.
"""

import getpass
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from everlong.agent import at_home
from everlong.store import make_folder, open_private

__all__ = ["Keyboard", "Person", "completions", "echoed", "is_person", "unechoed"]

_editing: Any
_terminals: Any
try:
    import readline as _editing
    import termios as _terminals
except ImportError:  # a system without these modules still reads lines
    _editing = _terminals = None

PIPE = 4_096  # bytes
MOST_HISTORY = 2_000  # lines
PROMPT = "› "
MORE = "… "
NAMED = "@"  # before the path of a file in a message
COLOUR, PLAIN = "\x01\x1b[1;36m\x02", "\x01\x1b[0m\x02"  # in marks that tell readline not to count them as columns


class Person(Protocol):
    """Someone at a terminal who can be asked."""

    def line(self, prompt: str) -> str:
        """Return what they type; "" for nothing."""

    def secret(self, prompt: str) -> str:
        """Return what they type without showing it."""


class Keyboard:
    """A person's keyboard.

    Tab completes the commands in `names`, paths after those in `with_paths`, and paths after @.
    """

    def __init__(
        self, names: Sequence[str] = (), *, with_paths: Sequence[str] = (), history: Path | None = None
    ) -> None:
        self._history = history
        #: The folder for paths after @.
        self.folder = Path()
        if _editing is None:
            return
        _editing.set_auto_history(False)
        _editing.set_completer_delims(" \t\n")
        _editing.set_completer(_completer(lambda line: completions(line, names, with_paths, self.folder)))
        _editing.parse_and_bind("tab: complete")
        _editing.parse_and_bind("set enable-bracketed-paste on")
        _editing.set_history_length(MOST_HISTORY)
        if history is not None:
            with suppress(OSError):
                _editing.read_history_file(history)

    def message(self) -> str:
        """Read a message. A line that ends with a backslash continues. Raises EOFError and KeyboardInterrupt."""
        lines = [self._read(PROMPT)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(self._read(MORE))
        message = _writable("\n".join(lines))
        if message.strip() and _editing is not None:
            _editing.add_history(message.replace("\n", " "))
        return message

    def _read(self, prompt: str) -> str:
        return input(f"{COLOUR}{prompt}{PLAIN}" if _editing is not None else prompt)

    def line(self, prompt: str) -> str:
        """Read the answer to a question; "" at the end of input."""
        shown = sys.stdout if sys.stdout.isatty() else sys.stderr  # the model's answer may go to a file
        shown.write(prompt)
        shown.flush()
        with _signals_seen() as signals:
            while sys.stdin not in select.select([sys.stdin, signals], [], [])[0]:
                os.read(signals, PIPE)  # a signal that raises nothing, such as a resized terminal
        return _writable(sys.stdin.readline()).rstrip("\n")

    def secret(self, prompt: str) -> str:
        """Read an answer without showing it."""
        with suppress(EOFError):
            return _writable(getpass.getpass(prompt))
        return ""

    def close(self) -> None:
        """Save the history, readable only for this user."""
        if _editing is None or self._history is None:
            return
        with suppress(OSError):  # a read-only folder must not cause a failure at the end
            make_folder(self._history.parent)
            os.close(open_private(self._history, os.O_WRONLY))  # private before anything is written
            _editing.write_history_file(self._history)


@contextmanager
def _signals_seen() -> Iterator[int]:
    """Yield a descriptor that is readable after a signal, so that none is missed while waiting for the keyboard."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)


def unechoed() -> AbstractContextManager[None]:
    """Hide what is typed and keep it for later, so that it does not disturb the drawing."""
    return _echo(False)


def echoed() -> AbstractContextManager[None]:
    """Show what is typed."""
    return _echo(True)


@contextmanager
def _echo(wanted: bool) -> Iterator[None]:
    if _terminals is None or not is_person():
        yield
        return
    before = _terminals.tcgetattr(sys.stdin)
    flags = before[3] | _terminals.ECHO if wanted else before[3] & ~_terminals.ECHO
    _terminals.tcsetattr(sys.stdin, _terminals.TCSADRAIN, [*before[:3], flags, *before[4:]])
    try:
        yield
    finally:
        _terminals.tcsetattr(sys.stdin, _terminals.TCSADRAIN, before)


def completions(line: str, names: Sequence[str], with_paths: Sequence[str], folder: Path = Path()) -> list[str]:
    """Return the completions of a line after its first word, or of a single first word.

    Example: "/th" -> ["/threads ", "/threshold "]; "read @no" -> ["@notes.txt"]
    """
    command, space, rest = line.partition(" ")
    before, at, start = line.rpartition(NAMED)
    if at and not line.startswith("/") and (not before or before[-1].isspace()) and not any(map(str.isspace, start)):
        front = before.partition(" ")[2] if space else ""
        return [f"{front}{NAMED}{path}" for path in _paths(start, folder)]
    if not space:
        return [f"{name} " for name in names if name.startswith(command)] if command.startswith("/") else []
    return _paths(rest) if command in with_paths else []


def _paths(start: str, root: Path = Path()) -> list[str]:
    folder, _, name = start.rpartition("/")
    shown = f"{folder}/" if folder or start.startswith("/") else ""
    try:
        entries = sorted((root / at_home(shown or ".")).iterdir())
    except OSError:
        return []
    return [f"{shown}{path.name}{'/' if path.is_dir() else ''}" for path in entries if path.name.startswith(name)]


def _completer(options_for: Callable[[str], list[str]]) -> Callable[[str, int], str | None]:
    def complete(word: str, state: int) -> str | None:
        whole = _editing.get_line_buffer()[: _editing.get_endidx()]
        options = options_for(whole)
        before = whole[: len(whole) - len(word)].partition(" ")[2]  # words of the path before this one
        fitting = [option.removeprefix(before) for option in options]
        return fitting[state] if state < len(fitting) else None

    return complete


def _writable(text: str) -> str:
    """Return the text without lone surrogates, which a broken terminal may send."""
    return text.encode("utf-8", "replace").decode("utf-8")


def is_person() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()
