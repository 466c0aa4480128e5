"""The data folder of the lab: where it is, what it holds, and how its conversations are read.

    agents/NAME.jsonl[.gz]          a conversation a line, OpenAI messages, with its id and source
    agents/NAME.probes.jsonl        strings that an agent really used later
    agents/probes.jsonl             the same for the files that have none of their own
    NAME/conversations.jsonl        dialogues, each turn with id, name and time
    NAME/questions.jsonl            questions with the ids of the turns that answer them

A row of a conversation may have a `half`; otherwise its id decides. This module only reads.
"""

import gzip
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from everlong.core import History, Message, Role, Text
from everlong.errors import InputError
from everlong.wire import OPENAI_CHAT

__all__ = [
    "DATA_VARIABLE",
    "HALVES",
    "OWN_PROBES",
    "SHARED_PROBES",
    "Conversation",
    "agents",
    "data_folder",
    "dialogue_names",
    "dialogues",
    "half_of",
    "in_half",
    "outside",
    "rows",
]

DATA_VARIABLE = "EVERLONG_DATA"
OWN_PROBES, SHARED_PROBES, PACKED = ".probes.jsonl", "probes.jsonl", ".gz"
HALVES = ("tuning", "confirming", "all")
SOURCES = (
    "entireio/cli, sierra-research/tau-bench, badlogic/pi-mono, SWE-agent, OpenHands, snap-research/LoCoMo, "
    "MemoryBank-SiliconFriend and MADial-Bench"
)
TIMES = ("%I:%M %p on %d %B, %Y",)  # in addition to ISO 8601


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation. `ids` names the turns of a dialogue; () for an agent's work."""

    id: str
    data: str
    source: str
    messages: History
    ids: tuple[str, ...] = ()


def data_folder(option: str | None) -> Path:
    """Return the data folder: the option, else the environment variable. Raises InputError if there is none."""
    named = option or os.environ.get(DATA_VARIABLE, "")
    if named and Path(named).is_dir():
        return Path(named)
    problem = f"{named}: no such folder" if named else f"no data: name a folder with --data or {DATA_VARIABLE}"
    raise InputError(
        f"{problem}; a data folder has conversations of {SOURCES}, in the form that docs/lab/data.md describes; "
        "`everlong lab fetch-data` says how to get some"
    )


def half_of(row: Mapping[str, Any]) -> str:
    """Return the half of a conversation: the one in its row, else one by its id, the same on every machine."""
    stated = row.get("half")
    if stated is None:
        return "tuning" if zlib.crc32(str(row["id"]).encode()) % 2 == 0 else "confirming"
    if stated not in HALVES[:2]:
        raise InputError(f"the half of {row['id']} is {' or '.join(HALVES[:2])}, not {stated!r}")
    return str(stated)


def in_half(row: Mapping[str, Any], half: str) -> bool:
    """Return whether the conversation of a row is in that half. All are in "all"."""
    return half in ("all", half_of(row))


def outside(path: Path, half: str) -> set[str]:
    """Return the ids of the conversations of a file that are not in the half."""
    if half == "all":
        return set()
    try:
        return {str(row["id"]) for row in rows(path) if not in_half(row, half)}
    except KeyError as error:
        raise InputError(f"{path}: a conversation has no {error}") from error


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file with one JSON object per line, gzipped or not."""
    file = next((name for name in (path, path.with_name(f"{path.name}{PACKED}")) if name.is_file()), None)
    if file is None:
        raise InputError(f"{path}: no such file; {_others(path)}docs/lab/data.md describes the data folder")
    decoder = msgspec.json.Decoder()
    for number, line in enumerate(_lines(file), start=1):
        if not line.strip():
            continue
        try:
            row = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise InputError(f"{file}: line {number}: {error}") from error
        if not isinstance(row, dict):
            raise InputError(f"{file}: line {number}: not an object")
        yield row


def _others(missing: Path) -> str:
    """Return a hint at existing files in the form of `--files`. Example: "--files may name office; " """
    if missing.parent.name != "agents" or missing.name.endswith(SHARED_PROBES):
        return ""
    files = (path.name.removesuffix(PACKED) for path in missing.parent.glob("*.jsonl*"))
    named = sorted(
        {name.removesuffix(".jsonl") for name in files if name.endswith(".jsonl") and not name.endswith(SHARED_PROBES)}
    )
    return f"--files may name {', '.join(named)}; " if named else ""


def _lines(path: Path) -> Iterator[bytes]:
    open_file = gzip.open if path.suffix == PACKED else open
    try:
        with open_file(path, "rb") as lines:
            yield from lines
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: {error}") from error


def agents(folder: Path, name: str, half: str = "all") -> Iterator[Conversation]:
    """Yield the conversations of one file of agent sessions that are in the half."""
    path = folder / "agents" / f"{name}.jsonl"
    for row in rows(path):
        try:
            key = str(row["id"])
            if in_half(row, half):
                messages = tuple(
                    OPENAI_CHAT.read_message(raw, f"messages[{at}]") for at, raw in enumerate(row["messages"])
                )
                yield Conversation(key, name, str(row.get("source", name)), messages)
        except KeyError as error:
            raise InputError(f"{path}: a conversation has no {error}") from error
        except TypeError as error:
            raise InputError(f"{path}: the messages of a conversation must be a list: {error}") from error


def dialogue_names(folder: Path) -> tuple[str, ...]:
    """Return the names of the existing dialogue data sets."""
    return tuple(sorted(path.parent.name for path in folder.glob("*/questions.jsonl")))


def dialogues(folder: Path, name: str, half: str = "all") -> Iterator[Conversation]:
    """Yield the dialogues of one data set that are in the half."""
    path = folder / name / "conversations.jsonl"
    for row in rows(path):
        try:
            key = str(row["id"])
            if in_half(row, half):
                turns = cast("list[dict[str, Any]]", row["messages"])
                ids = tuple(str(turn["id"]) for turn in turns)
                yield Conversation(key, name, name, tuple(map(_turn, turns)), ids)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: a turn cannot be read: {error}") from error


def _turn(raw: Mapping[str, Any]) -> Message:
    """Return a turn as a message with its speaker and its time."""
    if not isinstance(raw["content"], str):
        raise TypeError(f"the content of a turn must be text, not {raw['content']!r}")
    return Message(
        Role(raw["role"]),
        (Text(raw["content"]),),
        name=str(raw.get("name") or ""),
        time=_time(str(raw.get("time") or "")),
    )


def _time(text: str) -> datetime | None:
    """Return the time, or None if it cannot be read. Example: "1:56 pm on 8 May, 2023" -> 2023-05-08 13:56"""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in TIMES:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None
