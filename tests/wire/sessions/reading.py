"""What the tests look at in a conversation: who said which words, made which calls, got which results."""

from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

from everlong.core import Json, JsonObject, Message
from everlong.wire.document import Document
from everlong.wire.fields import load
from everlong.wire.sessions.records import records_of


class Said(NamedTuple):
    role: str
    words: str
    calls: tuple[tuple[str, str, str], ...]
    results: tuple[tuple[str, str, bool], ...]


def said(messages: Sequence[Message]) -> list[Said]:
    return [
        Said(
            message.role.value,
            message.text,
            tuple((call.id, call.name, str(load(call.arguments))) for call in message.calls),
            tuple((result.call, result.text, result.failed) for result in message.results),
        )
        for message in messages
    ]


def outline(messages: Sequence[Message]) -> list[str]:
    """One line a message: its role, the first line of its words, its calls and results."""
    lines = []
    for message in messages:
        ids = [*(call.id for call in message.calls), *(result.call for result in message.results)]
        lines.append(" ".join([f"{message.role.value}:", *message.text.splitlines()[:1], *ids]))
    return lines


def read(module: ModuleType, lines: Sequence[Json]) -> Document:
    records, warnings = records_of(
        ((f"line {at}", line) for at, line in enumerate(lines, start=1)), module.parse_record
    )
    found = module.document(records, warnings)
    assert isinstance(found, Document)
    return found


def written(module: ModuleType, document: Document) -> list[JsonObject]:
    lines: list[JsonObject] = module.render_document(document)
    return lines
