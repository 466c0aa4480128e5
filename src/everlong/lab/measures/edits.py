"""The measure of edits: text of two lines or more that an agent replaces next must still be there, line after line."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from everlong.core import Json, ToolCall
from everlong.lab.cases import Case, Cases
from everlong.lab.data import Conversation
from everlong.lab.measures.presence import Measure, find_lines

__all__ = ["EDITS", "REPLACED_KEYS", "edit_cases", "replaced_texts"]

EDITS = Measure("edits", find_lines)

#: The argument names under which tools take the text that they replace.
REPLACED_KEYS = frozenset({"old_string", "old_str", "old_text", "oldText", "oldString", "oldStr", "old"})
LEAST_LINES = 2


def edit_cases(conversations: Iterable[Conversation]) -> list[Cases]:
    """Return a case for every text of two lines or more that a call replaces."""
    groups = []
    for conversation in conversations:
        cases = tuple(
            Case(at, (text,), (("source", conversation.source),))
            for at, message in enumerate(conversation.messages)
            for call in message.calls
            for text in replaced_texts(call)
        )
        if cases:
            groups.append(Cases(conversation, cases))
    return groups


def replaced_texts(call: ToolCall) -> Iterator[str]:
    """Yield the texts of two lines or more that a call replaces, without the line ends around them."""
    try:
        value = cast(Json, json.loads(call.arguments))
    except (ValueError, RecursionError):
        return
    for text in _strings_under(value, REPLACED_KEYS):
        bare = text.strip("\n")
        if bare.count("\n") + 1 >= LEAST_LINES:
            yield bare


def _strings_under(value: Any, keys: frozenset[str]) -> Iterator[str]:
    """Yield the strings under these keys, also inside lists and objects."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in keys and isinstance(inner, str):
                yield inner
            else:
                yield from _strings_under(inner, keys)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings_under(inner, keys)
