"""Conversations to replay, from files and folders as they lie on disk.

Any format that can be read, and the places where Claude Code, Codex, pi and nanobot keep their sessions, by name. What
is given is the whole conversation as it was said: where a program compacted it, its own summary is left out and what
stood before is there, unless the file does not hold it. What sub-agents said is a conversation of its own. Reads only.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path

from everlong.core import History, JsonObject, Message, Role
from everlong.errors import InputError
from everlong.lab.cases import Cases
from everlong.lab.data import Conversation, agents
from everlong.lab.measures.probes import chat_form, probe_cases, probes_in
from everlong.lab.replay.records import RECORDING, SYNTHETIC, recorded_of
from everlong.lab.replay.results import Recorded, SessionFacts
from everlong.lab.replay.sessions import Session
from everlong.lab.strategies.strategy import counter
from everlong.tokens import CALL_FRAME, MESSAGE_FRAME
from everlong.wire import Document, decode_bytes, read_all, records_of, unpack
from everlong.wire.sessions import chatbox, claude_code, codex, nanobot, pi

__all__ = ["PLACES", "published", "sessions_at", "sessions_in"]

#: Where programs keep their sessions, below the home directory.
PLACES: dict[str, tuple[str, ...]] = {
    claude_code.FORMAT: (".claude/projects", ".config/claude/projects"),
    codex.FORMAT: (".codex/sessions", ".codex/archived_sessions"),
    pi.FORMAT: (".pi/agent/sessions",),
    nanobot.FORMAT: (".nanobot/sessions", ".nanobot/workspace/sessions"),
}
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
LOOKED_FOR = "sessions of Claude Code, Codex, pi or nanobot, or any other conversation, as .json or .jsonl, also .gz"
SHOWN_NAMES = 5

_SUFFIX = re.compile(r"\.jsonl?(?:\.gz)?$")

#: How each program marks what it wrote itself to stand for what went before: from the fields and hints of a message.
SUMMARIES: dict[str, Callable[[JsonObject, JsonObject], bool]] = {
    chatbox.FORMAT: lambda fields, _: fields.get("isSummary") is True,
    claude_code.FORMAT: lambda fields, _: fields.get("isCompactSummary") is True,
    codex.FORMAT: lambda _, hints: "compacted" in hints,
    nanobot.FORMAT: lambda _, hints: hints.get("summary") is True,
    pi.FORMAT: lambda fields, _: fields.get("type") == "compaction",
}


def sessions_at(paths: Sequence[str], tell: Callable[[str], None], *, home: Path | None = None) -> list[Session]:
    """Every conversation with an answer in it, in the order of the paths; a folder's by the names of its files.

    A path is a file, a folder, or one of `PLACES`. What is left out is told, a line a kind. Raises InputError for a
    file that was named and is no conversation, and where nothing is found.
    """
    found: list[Session] = []
    foreign: list[str] = []
    silent: list[str] = []
    taken: set[str] = set()
    for path, named in _files(paths, Path.home() if home is None else home):
        try:
            sessions = sessions_in(_bytes(path), str(path), tell)
        except InputError:
            if named:
                raise
            foreign.append(path.name)
            continue
        spoken = [session for session in sessions if session.requests]
        silent += [path.name] if not spoken else []
        found += [_renamed(session, path, taken) for session in spoken]
    if foreign:
        tell(f"{_many(foreign, 'is no conversation', 'are no conversations')}: {_listed(foreign)}")
    if silent:
        tell(f"{_many(silent, 'holds no answer', 'hold no answer')}: {_listed(silent)}")
    if not found:
        raise InputError(f"nothing to replay in {', '.join(paths) or 'no files'}; looked for {LOOKED_FOR}")
    return found


def sessions_in(data: bytes, path: str, tell: Callable[[str], None]) -> list[Session]:
    """Every conversation of a file, also those of sub-agents that stand in it; an error names the file."""
    try:
        documents = read_all(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    warnings = [warning for document in documents for warning in document.warnings]
    if warnings:
        tell(f"{path}: {warnings[0]}" + (f", and {len(warnings) - 1:,} more" if len(warnings) > 1 else ""))
    name = _SUFFIX.sub("", Path(path).name)
    if len(documents) > 1:
        return [_session(one, _own_name(one, f"{name}-{number}")) for number, one in enumerate(documents)]
    (document,) = documents
    records = _records(data) if document.fmt in RECORDING else []
    if document.fmt != claude_code.FORMAT:
        return [_session(document, name, recorded_of(document.fmt, records))]
    own = [record for record in records if record.get("isSidechain") is not True]
    main = _session(document, name, recorded_of(document.fmt, own))
    chains = _side_chains(records)
    alone = len(chains) == 1 and not main.messages  # a sub-agent's own file
    sides = [
        _session(_chain_document(said), name if alone else f"{name}/{key}", recorded_of(document.fmt, said))
        for key, said in chains.items()
    ]
    return [*([main] if main.messages else []), *sides]


# --- files -------------------------------------------------------------------------------------


def _files(paths: Sequence[str], home: Path) -> list[tuple[Path, bool]]:
    """Every file once, with whether it was named by itself; a path that is wrong is found before any is read."""
    files: dict[str, tuple[Path, bool]] = {}
    for start in [start for given in paths for start in _starts(given, home)]:
        for path in _walked(start) if start.is_dir() else [start]:
            files.setdefault(os.path.realpath(path), (path, path == start))
    return list(files.values())


def _starts(given: str, home: Path) -> list[Path]:
    """What a path stands for. Raises InputError if there is nothing of that name."""
    path = Path(given).expanduser()
    if path.exists():
        return [path]
    if given not in PLACES:
        raise InputError(f"{given}: no such file or folder; places that are known by name: {', '.join(PLACES)}")
    folders = [home / place for place in PLACES[given]]
    there = [folder for folder in folders if folder.is_dir()]
    if not there:
        raise InputError(f"{given}: no sessions in {' or '.join(map(str, folders))}")
    return there


def _walked(folder: Path) -> list[Path]:
    """The files of a folder and its folders that may be conversations, in order."""
    found = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return sorted(path for path in found if path.name.lower().endswith(SUFFIXES))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _many(names: Sequence[str], one: str, several: str) -> str:
    """Example: "3 files hold no answer" """
    return f"1 file {one}" if len(names) == 1 else f"{len(names):,} files {several}"


def _listed(names: Sequence[str]) -> str:
    """The first few names. Example: a.json, b.json and 7 more"""
    hidden = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {hidden:,} more" if hidden > 0 else "")


def _renamed(session: Session, path: Path, taken: set[str]) -> Session:
    """The session under a name that no other has; files of one name are told apart by their folder."""
    plain, folder = session.told.id, path.parent.name
    names = chain((plain, f"{folder}/{plain}"), (f"{folder}/{plain}~{number}" for number in count(2)))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return session if name == plain else replace(session, told=replace(session.told, id=name))


# --- conversations -----------------------------------------------------------------------------


def _session(document: Document, name: str, recorded: tuple[Recorded, ...] = ()) -> Session:
    said = [(form, _seconds(message.time)) for message in _said(document) for form in chat_form(message)]
    messages = tuple(form for form, _ in said)
    known = [time for _, time in said if time is not None]
    named = dict.fromkeys((*(one.model for one in recorded), document.model))
    told = SessionFacts(
        id=name,
        source=document.fmt,
        messages=len(messages),
        tokens=counter().messages(messages),
        seconds=max(known) - min(known) if known else None,
        recorded=recorded,
    )
    return Session(
        told=told,
        messages=messages,
        cases=probes_in(Conversation(name, name, document.fmt, messages), counter()).cases,
        times=tuple(time for _, time in said) if known else (),
        models=tuple(model for model in named if model and model != SYNTHETIC),
    )


def _said(document: Document) -> History:
    """The messages without the program's own summaries, except of what the file does not hold."""
    if not document.boundaries:
        return document.messages
    kept: list[Message] = []
    begun = False
    for message in document.messages:
        summary = _is_summary(message)
        if not (summary and begun):
            kept.append(message)
        begun = begun or not (summary or message.role is Role.SYSTEM)
    return tuple(kept)


def _is_summary(message: Message) -> bool:
    marked = SUMMARIES.get(message.origin)
    return marked is not None and marked(*unpack(message.extra))


def _seconds(time: datetime | None) -> float | None:
    """Since 1970; None for a time that is unknown, also where its program writes the start of 1970 for that."""
    if time is None:
        return None
    seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return seconds if seconds > 0 else None


def _own_name(document: Document, otherwise: str) -> str:
    """The id that a conversation has in a file of many."""
    name = unpack(document.extra)[0].get("id")
    return name if isinstance(name, str) and name else otherwise


# --- the records of a session ------------------------------------------------------------------


def _records(data: bytes) -> list[JsonObject]:
    decoded = decode_bytes(data)
    document = decoded.document
    values = [value for _, value in decoded.lines] or (document if isinstance(document, list) else [document])
    return [value for value in values if isinstance(value, dict)]


def _side_chains(records: Sequence[JsonObject]) -> dict[str, list[JsonObject]]:
    """What each sub-agent said, by its id; older versions give none, then by the record that the chain begins with."""
    chains: dict[str, list[JsonObject]] = {}
    chain_of: dict[str, str] = {}
    for record in records:
        if record.get("isSidechain") is not True:
            continue
        agent, parent = record.get("agentId"), record.get("parentUuid")
        before = chain_of.get(parent) if isinstance(parent, str) else None
        name = f"agent-{agent}" if isinstance(agent, str) and agent else before or f"agent-{len(chains) + 1}"
        chains.setdefault(name, []).append(record)
        if isinstance(own := record.get("uuid"), str):
            chain_of[own] = name
    return chains


def _chain_document(said: Sequence[JsonObject]) -> Document:
    """A side chain read as the conversation that it was to its agent."""
    lines = [(f"record {at}", record | {"isSidechain": False}) for at, record in enumerate(said, start=1)]
    records, _ = records_of(lines, claude_code.parse_record)
    return claude_code.document(records)


def published(folder: Path, files: Sequence[str], half: str = "all", longest: int = 0) -> list[Session]:
    """The sessions of these files, the longest first; only so many of them, if a number is given."""
    asked = {one.conversation.id: one for one in probe_cases(folder, files, half)}
    found = [_published_session(one, asked.get(one.id)) for name in files for one in agents(folder, name, half)]
    if not found:
        raise InputError(f"{folder}: no conversations in {', '.join(files)} ({half})")
    found.sort(key=lambda session: -session.told.tokens)
    return found[:longest] if longest else found


def _published_session(conversation: Conversation, asked: Cases | None) -> Session:
    messages = conversation.messages
    frames = sum(MESSAGE_FRAME + CALL_FRAME * len(message.calls) for message in messages)
    told = SessionFacts(
        id=conversation.id,
        source=conversation.source,
        messages=len(messages),
        tokens=counter().messages(messages) - frames,
    )
    return Session(told=told, messages=messages, cases=() if asked is None else asked.cases)
