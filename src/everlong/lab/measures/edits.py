"""The measure of edits: text of two or more lines that an agent replaces next must still be there, line by line.

A text is replaced by a call that names it, by a patch in a call, or by a block of an answer that says what to search
for and what to put there, as agents without tool calls write it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from everlong.core import Json, Message, Role, ToolCall
from everlong.lab.cases import Case, Cases
from everlong.lab.data import Conversation
from everlong.lab.measures.presence import Measure, argument_strings, find_lines

__all__ = ["EDITS", "REPLACED_KEYS", "acted_texts", "edit_cases", "replaced_in", "replaced_texts"]

EDITS = Measure("edits", find_lines)

#: The argument names with which tools take the text to replace.
REPLACED_KEYS = frozenset({"old_string", "old_str", "old_text", "oldText", "oldString", "oldStr", "old"})
LEAST_LINES = 2
PATCH = "*** Begin Patch"

#: A block of code in an answer. Example: ```bash\nls\n```
_FENCED = re.compile(r"^(`{3,}|~{3,})[^\n`]*\n(.*?)^\1`*[ \t]*$", re.MULTILINE | re.DOTALL)
#: The text to search for, in a block that replaces it.
_SEARCHED = re.compile(r"^<{5,9} SEARCH>?[^\n]*\n(.*?)^={5,9}[ \t]*$", re.MULTILINE | re.DOTALL)


def edit_cases(conversations: Iterable[Conversation]) -> list[Cases]:
    """Return a case for every text of two or more lines that a call replaces."""
    groups = []
    for conversation in conversations:
        cases = tuple(
            Case(at, (text,), (("source", conversation.source),))
            for at, message in enumerate(conversation.messages)
            for text in replaced_in(message)
        )
        if cases:
            groups.append(Cases(conversation, cases))
    return groups


def replaced_in(message: Message) -> Iterator[str]:
    """Yield the texts of two or more lines that a message replaces, by its calls or in its text."""
    for call in message.calls:
        yield from replaced_texts(call)
    yield from _long(text for block in acted_texts(message) for text in _SEARCHED.findall(block))


def acted_texts(message: Message) -> list[str]:
    """Return the actions of an agent that acts in its text: the code blocks of an answer without a call."""
    if message.role is not Role.ASSISTANT or message.calls:
        return []
    return [block for _, block in _FENCED.findall(message.text)]


def replaced_texts(call: ToolCall) -> Iterator[str]:
    """Yield the texts of two or more lines that a call replaces, without the line ends around them."""
    for text in argument_strings(call.arguments):
        if PATCH in text:
            yield from _long(_patched(text))
    try:
        value = cast(Json, json.loads(call.arguments))
    except (ValueError, RecursionError):
        return
    yield from _long(_strings_under(value, REPLACED_KEYS))


def _long(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        bare = text.strip("\n")
        if bare.count("\n") + 1 >= LEAST_LINES:
            yield bare


def _patched(patch: str) -> Iterator[str]:
    """Yield the text that each part of a patch expects to find. Example: "@@\\n a\\n-b\\n+c" -> "a\\nb" """
    for part in re.split(r"^(?:@@|\*\*\*)[^\n]*$", patch, flags=re.MULTILINE):
        lines = part.strip("\n").split("\n")
        if any(line.startswith("-") for line in lines):
            yield "\n".join(line[1:] for line in lines if not line.startswith("+"))


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
