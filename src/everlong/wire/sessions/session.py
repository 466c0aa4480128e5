"""The description of a session file format: one value with everything about it.

Each module beside this one that reads the files of a program exports one `SESSION`; `everlong.wire.sessions` has the
table of them.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from everlong.core import Json, JsonObject, Message
from everlong.wire.document import Document, Record
from everlong.wire.sessions.records import fields_of, records_of, time_of
from everlong.wire.usage import Usage

__all__ = [
    "NamedValue",
    "RecordedRequest",
    "SessionFormat",
    "SessionMarks",
    "SideChains",
    "amount_in",
    "read_records",
    "record_text",
    "record_time",
    "text_in",
]

MOST = 1e12  # tokens or dollars; anything above is implausible

#: A record, or a whole document, with its place in the file: "line 7".
NamedValue: TypeAlias = tuple[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMarks:
    """How to read facts about a session from its document. Texts are "" if the file has none."""

    session_id: Callable[[Document], str] = lambda _document: ""
    title: Callable[[Document], str] = lambda _document: ""
    #: When it began and last changed, if the file has this besides the times of its messages.
    began: Callable[[Document], datetime | None] = lambda _document: None
    changed: Callable[[Document], datetime | None] = lambda _document: None
    #: The id that the program gave a message.
    message_id: Callable[[Message], str] = lambda _message: ""
    #: Whether a message is the program's replacement for messages that it no longer sends.
    is_summary: Callable[[Message, Document], bool] = lambda _message, _document: False
    #: The tokens of the messages that a summary covers; 0 if unknown.
    covered_tokens: Callable[[Message], int] = lambda _summary: 0
    #: Earlier conversations that the session keeps besides the current one.
    archived: Callable[[Document], tuple[Document, ...]] = lambda _document: ()
    #: The other branches of the same conversation, if the program keeps them.
    branches: Callable[[Document], tuple[Document, ...]] = lambda _document: ()
    #: Whether the user archived it.
    put_away: Callable[[Document], bool] = lambda _document: False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """A request whose usage the session recorded.

    `cost` is in dollars, 0 if unknown; `hour` is the number of tokens that were cached for an hour.
    """

    model: str
    usage: Usage
    provider: str = ""
    cost: float = 0.0
    hour: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SideChains:
    """The records of a session itself, and those of each sub-agent by name, as records of a separate session."""

    main: Sequence[JsonObject]
    agents: Mapping[str, Sequence[JsonObject]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFormat:
    """The session files of one program."""

    #: The name in commands: "claude-code".
    name: str
    #: The name for people: "Claude Code".
    program: str
    #: The name of the wire format whose rules the messages must follow when they are sent.
    sent_as: str
    #: Whether the first records, or the single document, are this program's.
    recognises: Callable[[Sequence[JsonObject]], bool]
    #: Reads one record. Raises WireError if it is not one.
    read_record: Callable[[Json, str], Record]
    #: Reads the conversations in records or in a document; the second argument has earlier warnings.
    read: Callable[[Iterable[NamedValue], Sequence[str]], tuple[Document, ...]]
    #: Writes the records or the document.
    write: Callable[[Document], Sequence[JsonObject] | JsonObject]
    #: Whether a file has one record per line; otherwise it is one document.
    in_lines: bool = True
    #: The suffixes of its files.
    suffixes: tuple[str, ...] = (".jsonl",)
    marks: SessionMarks = field(default_factory=SessionMarks)
    #: Beginnings of texts that the program writes in the user's name.
    not_the_user: tuple[str, ...] = ()
    #: The folders of its sessions, below the home directory.
    folders: tuple[str, ...] = ()
    #: The environment variable for another folder, and the folder in the home directory that it replaces:
    #: ("CODEX_HOME", ".codex").
    moved_by: tuple[str, str] = ("", "")
    #: Yields the requests whose usage is in the records; reports with the same key belong to one request.
    requests: Callable[[Iterable[JsonObject]], Iterator[tuple[Hashable, RecordedRequest]]] | None = None
    #: Splits the records, for a program that writes those of sub-agents into the same file.
    side_chains: Callable[[Sequence[JsonObject]], SideChains] | None = None

    def places(self, home: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
        """Return the folders of a user's sessions, whether or not they exist."""
        variable, replaced = self.moved_by
        moved = environment.get(variable, "").strip() if variable else ""
        return tuple(
            Path(moved, folder.removeprefix(f"{replaced}/"))
            if moved and folder.startswith(f"{replaced}/")
            else home / folder
            for folder in self.folders
        )


def read_records(
    parse_record: Callable[[Json, str], Record], document: Callable[[Sequence[Record], Sequence[str]], Document]
) -> Callable[[Iterable[NamedValue], Sequence[str]], tuple[Document, ...]]:
    """Return the reader for a file of records. An unreadable record stays in its place, and a warning names it."""

    def read(named: Iterable[NamedValue], warnings: Sequence[str]) -> tuple[Document, ...]:
        records, unread = records_of(named, parse_record)
        return (document(records, (*warnings, *unread)),)

    return read


def record_text(*places: tuple[str, str]) -> Callable[[Document], str]:
    """Return a function that returns the text at the first place that has one, from the last record with it.

    A place is the type of a record ("" for any) and the path of a field.
    Example: record_text(("session_meta", "payload.id"), ("", "id"))
    """

    def text(document: Document) -> str:
        records = [fields_of(record) for record in document.records]
        return next(filter(None, (_text_at(records, kind, path) for kind, path in places)), "")

    return text


def record_time(*places: tuple[str, str]) -> Callable[[Document], datetime | None]:
    """Return a function that returns the time at the first place with a text; None if that is not a time."""
    text = record_text(*places)
    return lambda document: time_of(text(document))


def _text_at(records: Iterable[JsonObject], kind: str, path: str) -> str:
    chosen = [record for record in records if not kind or kind in (record.get("type"), record.get("_type"))]
    return next(filter(None, (_field(record, path.split(".")) for record in reversed(chosen))), "")


def _field(record: JsonObject, path: Iterable[str]) -> str:
    value: Json = record
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return text_in(value)


def text_in(value: Json) -> str:
    """Return the value if it is a text, otherwise ""."""
    return value if isinstance(value, str) else ""


def amount_in(value: Json) -> float:
    """Return a plausible figure; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 < value < MOST else 0.0
