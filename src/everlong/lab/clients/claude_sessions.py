"""Claude Code as people use it: long sessions with constant texts, and one session for each other feature.

This module has the rows and their scripted model. The user says "continue" after the first prompt, and hooks add the
same text to every prompt. In each turn the model has files read in the way that the session tests: one after the other,
several at once, by a sub-agent, as pictures. `drivers.programs.claude_sessions` starts the program for each turn.
"""

import json
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from everlong.core import Image, Message, Role, Text
from everlong.lab.clients.script import SUMMARY, Clerk, record_line, summary_wanted, thought_for, tool_names
from everlong.lab.clients.table import CLIENTS, ClientRow
from everlong.llm import Answer, ReceivedRequest

__all__ = ["LONG_SESSIONS", "SESSIONS", "Director", "Turns"]

ERRAND = re.compile(r"\bErrand (\d+):")
#: The names that the tool for starting a sub-agent has had.
AGENT_TOOLS = ("Agent", "Task")
SIDE = 640  # pixels of a picture


@dataclass(frozen=True, slots=True)
class Turns:
    """The work of a session: turns, the files of each, and the lines of a file, about 20 tokens each.

    With `at_once` one answer reads all files of a turn, with `agents` a sub-agent does; `pictures` are read in
    addition.
    """

    count: int = 40
    files: int = 2
    lines: int = 120
    at_once: bool = False
    agents: bool = False
    pictures: bool = False

    def prompts(self) -> list[str]:
        """Return everything that the user says: the same word in every turn but the first."""
        first = "Task 1: read the records of the harbour office, some in each turn. Go on when I say so."
        return [first, *("continue" for _ in range(self.count - 1))]

    def done(self, task: int) -> str:
        """Return what the model says at the end of a turn."""
        return f"Turn {task} is done."

    def name(self, turn: int, at: int) -> str:
        """Return the name of a file."""
        return f"part-{turn}-{at}.png" if self.pictures and at == self.files else f"part-{turn}-{at}.txt"

    def opening(self, turn: int, at: int) -> str:
        """Return the first line of a file."""
        return f"Record {turn}.{at} of the harbour office"

    def write(self, folder: Path) -> None:
        """Write the files of all turns."""
        for turn in range(1, self.count + 1):
            for at in range(1, self.files + 1):
                path = folder / self.name(turn, at)
                if path.suffix == ".png":
                    path.write_bytes(picture(turn))
                    continue
                lines = [self.opening(turn, at), *(record_line(turn, at, row) for row in range(self.lines))]
                path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def script(self, folder: Path) -> Clerk:
        """Return the model of a session."""
        return Director(self, folder)


def picture(number: int) -> bytes:
    """Return a picture; no two are the same."""
    rows = b"".join(
        b"\0" + bytes((number * 7 + row * 3 + column) % 256 for column in range(SIDE)) for row in range(SIDE)
    )
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    sums = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(sums)


@dataclass(slots=True)
class Director:
    """The script: each turn's files, then the closing words. `missing` names what the model did not get."""

    turns: Turns
    folder: Path
    turn: int = 1
    read: int = 0
    #: Whether the sub-agent of this turn was started, and what each has read.
    sent: bool = False
    errands: dict[int, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def __call__(self, asked: ReceivedRequest) -> Answer:
        """Answer with the next step of the turn."""
        names = tool_names(asked.tools)
        if "Read" not in names or summary_wanted(asked.messages):
            return Answer(text=SUMMARY, thinking=thought_for(asked))
        errand = _errand(asked.messages)
        answer = self._run_errand(errand, asked) if errand else self._go_on(asked, names)
        return replace(answer, thinking=thought_for(asked))

    def _go_on(self, asked: ReceivedRequest, names: Sequence[str]) -> Answer:
        if self.turns.agents:
            if not self.sent:
                self.sent = True
                return _call(next(name for name in AGENT_TOOLS if name in names), self._errand_arguments())
            return self._end()
        if self.read:
            self._note_missing(asked.messages, self.turn, self.read)
        if self.read >= self.turns.files:
            return self._end()
        upto = self.turns.files if self.turns.at_once else self.read + 1
        paths = [self.folder / self.turns.name(self.turn, at) for at in range(self.read + 1, upto + 1)]
        self.read = upto
        calls = tuple(("Read", json.dumps({"file_path": str(path)})) for path in paths)
        return Answer(text=f"Reading {', '.join(path.name for path in paths)}.", calls=calls)

    def _end(self) -> Answer:
        done = self.turns.done(self.turn)
        self.turn, self.read, self.sent = self.turn + 1, 0, False
        return Answer(text=done)

    def _errand_arguments(self) -> dict[str, str]:
        prompt = f"Errand {self.turn}: read the records of turn {self.turn} and say when you are done."
        return {"description": "read records", "prompt": prompt, "subagent_type": "general-purpose"}

    def _run_errand(self, turn: int, asked: ReceivedRequest) -> Answer:
        """Answer a sub-agent."""
        at = self.errands.get(turn, 0)
        if at:
            self._note_missing(asked.messages, turn, at)
        if at >= self.turns.files:
            return Answer(text=f"Errand {turn} is done.")
        self.errands[turn] = at + 1
        return _call("Read", {"file_path": str(self.folder / self.turns.name(turn, at + 1))})

    def _note_missing(self, messages: Sequence[Message], turn: int, at: int) -> None:
        """Record a file that was just read but is not in the request."""
        name, opening = self.turns.name(turn, at), self.turns.opening(turn, at)
        parts = [part for message in messages for result in message.results for part in result.content]
        parts += [part for message in messages[-2:] for part in message.parts if isinstance(part, Image)]
        seen = (
            any(isinstance(part, Image) for part in parts)
            if name.endswith(".png")
            else any(isinstance(part, Text) and opening in part.text for part in parts)
        )
        if not seen:
            self.missing.append(name)


def _call(tool: str, arguments: dict[str, str]) -> Answer:
    return Answer(text=f"Calling {tool}.", calls=((tool, json.dumps(arguments)),))


def _errand(messages: Sequence[Message]) -> int:
    """Return the number of a sub-agent's errand; 0 for the main conversation."""
    first = next((message.text for message in messages if message.role is Role.USER), "")
    found = ERRAND.search(first)
    return int(found[1]) if found else 0


def _session(name: str, work: Turns, *windows: int, model: str = "claude-sonnet-4-5") -> ClientRow:
    row = CLIENTS["claude-code"]
    modes = (f"messages {name}",)
    return replace(row, driver="programs.claude_sessions", modes=modes, windows=windows, tasks=work, model=model)


SHORT = Turns(count=12, files=3, lines=100)
#: The sessions that run by default. Answers may have 32,000 tokens, which the program requests by itself.
SESSIONS: dict[str, ClientRow] = {
    name: _session(name, work, window)
    for name, work, window in (
        ("constant", Turns(), 64_000),
        ("agents", replace(SHORT, count=6, agents=True, files=10, lines=320), 64_000),
        ("parallel", replace(SHORT, at_once=True, files=4, lines=150), 64_000),
        ("images", replace(SHORT, pictures=True, lines=250), 64_000),
        ("plan", replace(SHORT, lines=150), 64_000),
        ("resume", replace(SHORT, lines=150), 64_000),
        ("fork", replace(SHORT, lines=150), 64_000),
        ("compact", replace(SHORT, count=20, lines=150), 64_000),
    )
}
#: Longer sessions: 40 turns, beyond windows of 100,000 tokens and more.
LONG_SESSIONS: dict[str, ClientRow] = {
    "constant-100k": _session("constant", Turns(lines=200), 100_000),
    "constant-200k": _session("constant", Turns(files=3, lines=260), 200_000),
    "constant-1m": _session("constant", Turns(files=5, lines=400), 1_000_000, model="claude-sonnet-4-5[1m]"),
}
