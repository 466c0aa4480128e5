"""Write terminal output as a person would see it: no colour codes, progress lines in their last state.

It changes only tool results. Cursor moves inside a line are executed (carriage return, backspace, "erase line", "go to
column"); everything else that a terminal does not show is removed. Moves between lines are removed, not executed, so no
line disappears. Windows line ends stay.
"""

import re
from collections.abc import Sequence
from functools import partial
from unicodedata import category, east_asian_width

from everlong.compress.draft import Draft, Task
from everlong.compress.text.substitutes import Shorter, each_text, open_results, shorten
from everlong.relevance import in_language

__all__ = ["as_shown", "terminal"]

STEP = "terminal"
NOTHING_SHOWN = {"en": "(no visible output)", "zh": "(无可见输出)"}

WIDEST = 512  # columns; longer lines wrap, as on any terminal
TAB_STOP = 8

#: The codes inside a line that are executed: erase (K), go to column (G), forward (C), back (D).
MOVE = r"\x1b\[\d{0,4}[KGCD]"
CODE = re.compile(
    rf"(?P<move>{MOVE})"
    r"|\x1b\[[0-?]*+[ -/]*+[@-~]?"  # colours, modes, moves between lines; also truncated codes
    r"|\x1b\][^\x07\x1b\r\n]*+(?:\x07|\x1b\\)"  # window titles, links
    r"|\x1b[PX^_][^\x1b]*+\x1b\\"  # device strings, such as images
    r"|\x1b(?:[()*+./-][0-9A-Za-z<=>]| [FGLMN]|#[3-8]|%[@G8])"  # character sets
    r"|\x1b[!-~]?"
    r"|[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]"
)
TOKEN = re.compile(r"[^\t\r\x08\x1b]+|\t|\r+|\x08+|\x1b\[(\d*)([KGCD])")
MOVED = re.compile(r"[\t\x08\x1b]")
INVISIBLE = re.compile(r"[\x00-\x08\x0d-\x1f\x7f]")


def terminal(draft: Draft, task: Task, *, always: bool = False) -> Draft:
    """Write every open tool result as the terminal would have shown it."""
    if draft.total <= task.target and not always:
        return draft
    wanted = []
    for position, index, result in open_results(draft):
        shown = each_text(result, partial(_visible, task.language))
        if shown is not None:
            before, after = len(result.text), len(shown.text)
            reason = f"colour codes and overwritten text removed: {after:,} of {before:,} characters were visible"
            wanted.append(Shorter(position, index, shown, reason))
    return shorten(draft, task, STEP, wanted)


def as_shown(text: str) -> str:
    """Return what a terminal would show. Example: "\\x1b[32mok\\x1b[0m\\n10%\\r50%\\rdone" -> "ok\\ndone" """
    if INVISIBLE.search(text) is None:
        return text
    plain = CODE.sub(lambda code: code["move"] or "", text)
    if "\r" not in plain and "\b" not in plain and "\x1b" not in plain:
        return plain
    *lines, last = plain.split("\n")
    return "\n".join([*map(_settled, lines), _settled(last).rstrip("\r")])


def _visible(language: str, text: str) -> str | None:
    shown = as_shown(text)
    if shown == text:
        return None
    return shown if shown.strip() else in_language(NOTHING_SHOWN, language)


def _settled(line: str) -> str:
    """Return the last state of a line that was overwritten."""
    written = line.rstrip("\r")
    line_end = "\r" if len(written) < len(line) else ""
    if "\r" not in written and "\b" not in written and "\x1b" not in written:
        return written + line_end
    if written.isascii() and MOVED.search(written) is None:
        states = written.split("\r")
        if len(max(states, key=len)) < WIDEST:
            return _last_state(states) + line_end
    row = _Row()
    for token in TOKEN.finditer(written):
        row.take(token)
    return row.text() + line_end


def _last_state(states: Sequence[str]) -> str:
    """Return the last state in the common case, fast: each state overwrites the previous one from the first column."""
    shown = ""
    for state in reversed(states):
        if len(state) > len(shown):
            shown += state[len(shown) :]
    return shown.rstrip(" ")


class _Row:
    """One row of a terminal and its cursor. A cell is a character; further cells that it covers are ""."""

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.column = 0
        self.full: list[str] = []

    def text(self) -> str:
        """Return the text of the row, without trailing blanks."""
        return "".join([*self.full, *self.cells]).rstrip(" ")

    def take(self, token: re.Match[str]) -> None:
        """Process one piece of output."""
        first = token[0][0]
        if first == "\r":
            self.column = 0
        elif first == "\b":
            self.column = max(0, self.column - len(token[0]))
        elif first == "\x1b":
            self._move(token[2], int(token[1]) if token[1] else None)
        elif first == "\t" and self.column < len(self.cells):
            self._pass_over(TAB_STOP - self.column % TAB_STOP)
        else:
            self._write(token[0])

    def _move(self, kind: str, number: int | None) -> None:
        if kind == "K":
            self._erase(number or 0)
            return
        steps = max(1, number or 1)
        wanted = {"G": steps - 1, "C": self.column + steps, "D": self.column - steps}[kind]
        # A far move to the right becomes one blank: the distance has no meaning, and memory is limited.
        self.column = max(0, min(wanted, len(self.cells) + 1))

    def _pass_over(self, columns: int) -> None:
        """Move right without changing the text."""
        beyond = self.column + columns - len(self.cells)
        self.column = min(self.column + columns, len(self.cells))
        if beyond > 0:
            self._write(" " * beyond)

    def _erase(self, kind: int) -> None:
        if kind == 0:
            self._open_at(self.column)
            del self.cells[self.column :]
        elif kind == 1:
            last = min(self.column + 1, len(self.cells))
            self._open_at(last)
            self.cells[:last] = [" "] * last
        else:
            self.cells.clear()

    def _write(self, text: str) -> None:
        new = list(text) if text.isascii() and "\t" not in text else self._spread(text)
        start, stop = self.column, self.column + len(new)
        if start < len(self.cells):
            self._open_at(start)
            self._open_at(stop)
        else:
            self.cells += [" "] * (start - len(self.cells))
        self.cells[start:stop] = new
        self.column = stop
        if stop >= WIDEST and stop == len(self.cells):
            self.full.append("".join(self.cells))
            self.cells.clear()
            self.column = 0

    def _spread(self, text: str) -> list[str]:
        """Return the cells of a text: wide characters cover two, tabs reach their stop, marks join what they mark."""
        cells: list[str] = []
        for character in text:
            if character == "\t":
                covered = TAB_STOP - (self.column + len(cells)) % TAB_STOP
                cells += [character, *[""] * (covered - 1)]
            elif cells and category(character) in ("Mn", "Me", "Cf"):
                cells[-1 if cells[-1] or len(cells) < 2 else -2] += character
            else:
                cells += [character, ""] if east_asian_width(character) in "WF" else [character]
        return cells

    def _open_at(self, column: int) -> None:
        """Split a character that spans this column into blanks, as a terminal does."""
        if not 0 < column < len(self.cells) or self.cells[column]:
            return
        start = column
        while start > 0 and not self.cells[start]:
            start -= 1
        stop = column
        while stop < len(self.cells) and not self.cells[stop]:
            stop += 1
        self.cells[start:stop] = [" "] * (stop - start)
