"""Sessions to replay: from files and folders on disk, and from the lab's data folder. Reads only.

Reads any format that everlong reads, and knows where the programs in `PLACES` keep their sessions. A session is the
whole conversation: if a program compacted it, the program's summary is left out and the earlier messages are there,
unless the file no longer has them. The messages of sub-agents are separate sessions.
"""

import os
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain, count
from pathlib import Path

from everlong.core import History, JsonObject, Message, Role
from everlong.engine import cost_of
from everlong.errors import InputError
from everlong.lab.cases import Cases
from everlong.lab.data import Conversation, agents
from everlong.lab.measures.probes import chat_form, probe_cases, probes_in
from everlong.lab.replay.results import Recorded, SessionFacts
from everlong.lab.replay.sessions import Session
from everlong.lab.strategies.strategy import counter
from everlong.tokens import CALL_FRAME, MESSAGE_FRAME
from everlong.windows import Prices, window
from everlong.wire import (
    SESSION_FORMATS,
    SESSION_SUFFIXES,
    Document,
    RecordedRequest,
    SessionFormat,
    Usage,
    decode_bytes,
    marks_of,
    merged,
    read_all,
    unpack,
)

__all__ = ["name_of_file", "published", "recorded_of", "sessions_at", "sessions_in"]

SUFFIXES = (*SESSION_SUFFIXES, *(f"{suffix}.gz" for suffix in SESSION_SUFFIXES))
SHOWN_NAMES = 5
SURELY_THE_SAME = 3  # messages: fewer may be the beginning of two sessions of one task

_SUFFIX = re.compile(rf"(?:{'|'.join(map(re.escape, SESSION_SUFFIXES))})(?:\.gz)?$")
SYNTHETIC = "<synthetic>"  # the model name of replies that no model wrote
HOUR_WRITE = 2.0  # times the input price: Anthropic's price for a prefix that is cached for an hour
MILLION = 1_000_000
NOTHING = Usage()


def sessions_at(
    paths: Sequence[str], report: Callable[[str], None], *, home: Path | None = None, grown: bool = False
) -> list[Session]:
    """Return every conversation with an answer in it, in the order of the paths; in a folder, by file name.

    A path is a file, a folder, or one of `PLACES`. With `grown`, a session that another one continues is left out:
    backups and checkpoints keep many states of one session. `report` gets a line for each kind of file that is left
    out. Raises InputError for a named file that is not a conversation, and if nothing is found.
    """
    answered: list[Session] = []
    foreign: list[str] = []
    silent: list[str] = []
    taken: set[str] = set()
    for path, named in _files(paths, Path.home() if home is None else home):
        try:
            sessions = sessions_in(_bytes(path), str(path), report)
        except InputError:
            if named:
                raise
            foreign.append(path.name)
            continue
        usable = [session for session in sessions if session.requests]
        silent += [path.name] if not usable else []
        for session in usable:
            if not grown or not _replaces_or_repeats(session, answered):
                answered.append(_renamed(session, path, taken))
    if foreign:
        report(f"{_many(foreign, 'is not a conversation', 'are not conversations')}: {_listed(foreign)}")
    if silent:
        report(f"{_many(silent, 'skipped', 'skipped')}: no assistant messages ({_listed(silent)})")
    if not answered:
        raise InputError(f"nothing to replay in {', '.join(paths) or 'no files'}; looked for {LOOKED_FOR}")
    return answered


def sessions_in(data: bytes, path: str, report: Callable[[str], None]) -> list[Session]:
    """Return every conversation of a file, including those of its sub-agents. Errors name the file."""
    try:
        documents = read_all(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    warnings = [warning for document in documents for warning in document.warnings]
    if warnings:
        report(f"{path}: {warnings[0]}" + (f", and {len(warnings) - 1:,} more" if len(warnings) > 1 else ""))
    name = name_of_file(path)
    if len(documents) > 1:
        return [
            _session(document, _own_name(document, f"{name}-{number}")) for number, document in enumerate(documents)
        ]
    (document,) = documents
    program = SESSION_FORMATS.get(document.fmt)
    records = _records(data) if program and program.requests else []
    if program is None or program.side_chains is None:
        return [_session(document, name, recorded_of(document.fmt, records))]
    split = program.side_chains(records)
    main = _session(document, name, recorded_of(document.fmt, split.main))
    alone = len(split.agents) == 1 and not main.messages  # a sub-agent's own file
    sides = [
        _session(_chain_document(program, chain), name if alone else f"{name}/{key}", recorded_of(document.fmt, chain))
        for key, chain in split.agents.items()
    ]
    return [*([main] if main.messages else []), *sides]


def name_of_file(path: str) -> str:
    """Return the name of a file without its suffixes. Example: work/talk.jsonl.gz -> talk"""
    return _SUFFIX.sub("", Path(path).name)


# --- the data folder -------------------------------------------------------------------------


def published(folder: Path, files: Sequence[str], half: str = "all", longest: int = 0) -> list[Session]:
    """Return the sessions of these files of the data folder, longest first; at most `longest`, if set."""
    cases = {group.conversation.id: group for group in probe_cases(folder, files, half)}
    sessions = [
        _published_session(conversation, cases.get(conversation.id))
        for name in files
        for conversation in agents(folder, name, half)
    ]
    if not sessions:
        raise InputError(f"{folder}: no conversations in {', '.join(files)} ({half})")
    sessions.sort(key=lambda session: -session.facts.tokens)
    return sessions[:longest] if longest else sessions


def _published_session(conversation: Conversation, cases: Cases | None) -> Session:
    messages = conversation.messages
    frames = sum(MESSAGE_FRAME + CALL_FRAME * len(message.calls) for message in messages)
    facts = SessionFacts(
        id=conversation.id,
        source=conversation.source,
        messages=len(messages),
        tokens=counter().messages(messages) - frames,
    )
    return Session(facts=facts, messages=messages, cases=() if cases is None else cases.cases)


# --- files -------------------------------------------------------------------------------------


def _files(paths: Sequence[str], home: Path) -> list[tuple[Path, bool]]:
    """Return every file once, and whether it was named itself. Raises InputError before any file is read."""
    files: dict[str, tuple[Path, bool]] = {}
    for start in [start for given in paths for start in _starts(given, home)]:
        for path in _walked(start) if start.is_dir() else [start]:
            files.setdefault(os.path.realpath(path), (path, path == start))
    return list(files.values())


def _starts(given: str, home: Path) -> list[Path]:
    """Return the files or folders for a path. Raises InputError if there are none."""
    path = Path(given).expanduser()
    if path.exists():
        return [path]
    if given not in PLACES:
        raise InputError(f"{given}: no such file or folder; known names: {', '.join(PLACES)}")
    folders = [home / place for place in PLACES[given]]
    there = [folder for folder in folders if folder.is_dir()]
    if not there:
        raise InputError(f"{given}: no sessions in {' or '.join(map(str, folders))}")
    return there


def _walked(folder: Path) -> list[Path]:
    """Return the files below a folder that may be conversations, in order."""
    files = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return sorted(path for path in files if path.name.lower().endswith(SUFFIXES))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _many(names: Sequence[str], one: str, several: str) -> str:
    """Return the number of files in words. Example: "3 files skipped" """
    return f"1 file {one}" if len(names) == 1 else f"{len(names):,} files {several}"


def _listed(names: Sequence[str]) -> str:
    """Return the first few names. Example: a.json, b.json and 7 more"""
    hidden = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {hidden:,} more" if hidden > 0 else "")


def _replaces_or_repeats(session: Session, known: list[Session]) -> bool:
    """Return whether a known session continues this one. Known sessions that this one continues are replaced by it."""
    for at, other in enumerate(known):
        shorter = min(len(session.messages), len(other.messages))
        # The newest message may have been unfinished when a state was saved; a short beginning proves nothing.
        alike = shorter - 1 if shorter > SURELY_THE_SAME else shorter
        if session.messages[:alike] == other.messages[:alike]:
            if len(session.messages) > len(other.messages):
                known[at] = replace(session, facts=replace(session.facts, id=other.facts.id))
            return True
    return False


def _renamed(session: Session, path: Path, taken: set[str]) -> Session:
    """Return the session with a unique name. Files with the same name also get that of their folder."""
    plain, folder = session.facts.id, path.parent.name
    names = chain((plain, f"{folder}/{plain}"), (f"{folder}/{plain}~{number}" for number in count(2)))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return session if name == plain else replace(session, facts=replace(session.facts, id=name))


# --- conversations -----------------------------------------------------------------------------


def _session(document: Document, name: str, recorded: tuple[Recorded, ...] = ()) -> Session:
    timed = [(chat, _seconds(message.time)) for message in _spoken(document) for chat in chat_form(message)]
    messages = tuple(message for message, _ in timed)
    known = [time for _, time in timed if time is not None]
    models = dict.fromkeys((*(usage.model for usage in recorded), document.model))
    facts = SessionFacts(
        id=name,
        source=document.fmt,
        messages=len(messages),
        tokens=counter().messages(messages),
        seconds=max(known) - min(known) if known else None,
        recorded=recorded,
    )
    return Session(
        facts=facts,
        messages=messages,
        cases=probes_in(Conversation(name, name, document.fmt, messages), counter()).cases,
        times=tuple(time for _, time in timed) if known else (),
        models=tuple(model for model in models if model and model != SYNTHETIC),
    )


def _spoken(document: Document) -> History:
    """Return the messages without the program's own summaries, unless the file no longer has the originals."""
    if not document.boundaries:
        return document.messages
    marks = marks_of(document)
    kept: list[Message] = []
    begun = False
    for message in document.messages:
        summary = marks.is_summary(message, document)
        if not (summary and begun):
            kept.append(message)
        begun = begun or not (summary or message.role is Role.SYSTEM)
    return tuple(kept)


def _seconds(time: datetime | None) -> float | None:
    """Return seconds since 1970; None if the time is unknown, which some programs write as the start of 1970."""
    if time is None:
        return None
    seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return seconds if seconds > 0 else None


def _own_name(document: Document, otherwise: str) -> str:
    """Return the id of a conversation in a file with many, or `otherwise`."""
    name = unpack(document.extra)[0].get("id")
    return name if isinstance(name, str) and name else otherwise


# --- the records of a session ------------------------------------------------------------------


def _records(data: bytes) -> list[JsonObject]:
    decoded = decode_bytes(data)
    document = decoded.document
    values = [value for _, value in decoded.lines] or (document if isinstance(document, list) else [document])
    return [value for value in values if isinstance(value, dict)]


def _chain_document(program: SessionFormat, chain: Sequence[JsonObject]) -> Document:
    """Return the records of a sub-agent as that agent's conversation."""
    lines = [(f"record {at}", record) for at, record in enumerate(chain, start=1)]
    return program.read(lines, ())[0]


# --- recorded usage ----------------------------------------------------------------------------


def recorded_of(fmt: str, records: Iterable[JsonObject]) -> tuple[Recorded, ...]:
    """Return the usage of each model, the most used first; () if the format has none.

    Example: three lines of one Claude Code reply, with 1, 1 and 250 tokens of output -> one request, 250
    """
    requests: dict[Hashable, RecordedRequest] = {}
    program = SESSION_FORMATS.get(fmt)
    for key, request in program.requests(records) if program and program.requests else ():
        requests[key] = _joined(requests[key], request) if key in requests else request
    by_model: dict[str, list[RecordedRequest]] = {}
    for request in requests.values():
        if request.usage != NOTHING:
            by_model.setdefault(request.model, []).append(request)
    usages = [_summed(model, group) for model, group in by_model.items()]
    return tuple(sorted(usages, key=lambda usage: (-usage.requests, usage.model)))


def _joined(earlier: RecordedRequest, later: RecordedRequest) -> RecordedRequest:
    """Return two reports of the same request as one. Figures only grow, so their order does not matter."""
    return replace(
        later,
        usage=merged(earlier.usage, later.usage),
        cost=max(earlier.cost, later.cost),
        hour=max(earlier.hour, later.hour),
    )


def _summed(model: str, requests: list[RecordedRequest]) -> Recorded:
    paid = [dollars for request in requests if (dollars := _dollars(request)) is not None]
    return Recorded(
        model=model,
        requests=len(requests),
        prompt=sum(request.usage.prompt for request in requests),
        read=sum(request.usage.cached for request in requests),
        written=sum(request.usage.cache_written for request in requests),
        output=sum(request.usage.output for request in requests),
        dollars=sum(paid) if paid else None,
    )


def _dollars(request: RecordedRequest) -> float | None:
    """Return the cost in the file, else the one from the price table."""
    if request.cost > 0:
        return request.cost
    prices = _prices(request.model, request.provider)
    dollars = cost_of(request.usage, prices)
    if dollars is None or not request.hour or prices.input is None or prices.cache_write is None:
        return dollars
    return dollars + request.hour * (HOUR_WRITE * prices.input - prices.cache_write) / MILLION


@lru_cache(maxsize=256)
def _prices(model: str, provider: str) -> Prices:
    return window(model, provider=provider).prices if model else Prices()


#: The programs that can be named instead of a path -> the folders of their sessions, below the home directory.
PLACES = {name: program.folders for name, program in SESSION_FORMATS.items() if program.folders}
_PROGRAMS = [program.program for program in SESSION_FORMATS.values() if program.folders]
LOOKED_FOR = (
    f"sessions of {', '.join(_PROGRAMS[:-1])} or {_PROGRAMS[-1]}, or any other conversation, "
    f"as {' or '.join(SESSION_SUFFIXES)}, also .gz"
)
