"""The user's own transcripts as a data set: read from files or from the folder of a whole project, and saved.

Saved data can be shared, so keys, passwords and pictures are removed first. Probes are made from the rest, so they
never ask for a secret.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from everlong.core import Json, JsonObject
from everlong.errors import InputError
from everlong.lab.cases import Cases
from everlong.lab.data import OWN_PROBES, Conversation
from everlong.lab.replay.sessions import Session
from everlong.lab.replay.sources import name_of_file, sessions_at
from everlong.summarize import redacted
from everlong.wire import OPENAI_CHAT

__all__ = ["conversations_at", "conversations_of", "hidden", "save"]

#: The fields of a message in a data set; any other fields of a file are left out.
FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content")
#: Fields whose text nobody said.
NAMES = frozenset({"role", "type", "id", "tool_call_id", "name"})
PICTURE: JsonObject = {"type": "text", "text": "[image omitted]"}


def conversations_at(paths: Sequence[str], report: Callable[[str], None], source: str = "") -> list[Conversation]:
    """Return every conversation of files and folders. All of a folder are one data set, named after it.

    `source` is the project of all of them; without it, that is the name of the folder, or the format of the file.
    `report` gets a line for each kind of file that is left out. Raises InputError if there is no conversation.
    """
    if source:
        return conversations_of(sessions_at(paths, report, grown=True), source)
    found: list[Conversation] = []
    for path in paths:
        place = Path(path).expanduser()
        sessions = sessions_at([path], report, grown=True)
        found += conversations_of(sessions, place.name if place.is_dir() else "", name_of_file(path))
    return found


def conversations_of(sessions: Iterable[Session], project: str, otherwise: str = "") -> list[Conversation]:
    """Return sessions as conversations of one data set: that of a project, else one with the other name."""
    name = project.rpartition("/")[2] or otherwise
    return [
        Conversation(
            f"{name}/{session.facts.id}" if project else session.facts.id,
            name,
            project or session.facts.source,
            session.messages,
        )
        for session in sessions
    ]


def hidden(conversation: Conversation) -> Conversation:
    """Return the conversation without keys, passwords and pictures."""
    rows = (row for message in conversation.messages for row in OPENAI_CHAT.write_message(message))
    return replace(conversation, messages=tuple(OPENAI_CHAT.read_message(_clean_row(row)) for row in rows))


def _clean_row(row: JsonObject) -> JsonObject:
    return {key: row[key] if key in NAMES else _clean(row[key]) for key in FIELDS if key in row}


def _clean(value: Json) -> Json:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, list):
        return [_clean(inner) for inner in value]
    if isinstance(value, dict):
        return PICTURE if value.get("type") == "image_url" else {key: _clean_field(key, value[key]) for key in value}
    return value


def _clean_field(key: str, value: Json) -> Json:
    if key == "arguments" and isinstance(value, str):
        return _clean_arguments(value)
    return value if key in NAMES and isinstance(value, str) else _clean(value)


def _clean_arguments(arguments: str) -> str:
    """Return the arguments of a call, still JSON; each string in them is cleaned separately, whatever its name is."""
    try:
        value = cast(Json, json.loads(arguments))
    except (ValueError, RecursionError):
        return redacted(arguments)
    clean = _clean_strings(value)
    return arguments if clean == value else json.dumps(clean, ensure_ascii=False)


def _clean_strings(value: Json) -> Json:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, list):
        return [_clean_strings(inner) for inner in value]
    return {key: _clean_strings(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def save(folder: Path, conversations: Iterable[Conversation], cases: Iterable[Cases], half: str = "") -> None:
    """Write conversations and probes in the format of the data folder, and replace what was there.

    With `half`, all of them belong to that half.
    """
    home = folder / "agents"
    stated = {"half": half} if half else {}
    lines: dict[str, list[object]] = {}
    probes: dict[str, list[object]] = {}
    for conversation in conversations:
        messages = [raw for message in conversation.messages for raw in OPENAI_CHAT.write_message(message)]
        line = {"id": conversation.id, "source": conversation.source, **stated, "messages": messages}
        lines.setdefault(conversation.data, []).append(line)
    for group in cases:
        for number, case in enumerate(group.cases):
            row = {"id": f"{group.conversation.id}#{number}", "conversation": group.conversation.id}
            row |= {"file": group.conversation.data, "kind": dict(case.groups)["kind"], "needle": case.wanted[0]}
            probes.setdefault(group.conversation.data, []).append(row | {"at": case.at})
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name, rows in lines.items():
            _write_rows(home / f"{name}.jsonl", rows)
            _write_rows(home / f"{name}{OWN_PROBES}", probes.get(name, []))
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror or error}") from error


def _write_rows(path: Path, rows: Iterable[object]) -> None:
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
