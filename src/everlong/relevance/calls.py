"""Split a tool call into texts: the file it works on, what it replaces and what it writes, whatever the tool.

Tools name the file in an argument, in a shell command or in a patch, and may keep the texts of several edits in lists.
A patch is split line by line and its marks are removed, so that a text reads as it does in the file.
"""

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple, TypeGuard, cast

from everlong.core import Json, JsonObject, JsonText

__all__ = ["PATH_KEYS", "CallText", "File", "TextKind", "base_name", "fields_of", "file_of", "texts_of_call"]

LONGEST_PATH = 300
LONGEST_ARGUMENT = 600  # characters; a longer one is a text of its own
DEEPEST = 4  # levels of nested lists and objects to search

#: The names of arguments that hold the file a tool works on.
PATH_KEYS = (
    *("path", "file_path", "filepath", "filePath", "filename", "file", "target_file", "notebook_path"),
    *("relative_path", "uri"),
)
COMMAND_KEYS = ("command", "cmd", "script")
REPLACED_KEYS = frozenset({"old_string", "old_str", "old_text", "oldText", "oldString", "oldStr", "old"})
WRITTEN_KEYS = frozenset(
    {
        *("new_string", "new_str", "new_text", "newText", "newString", "newStr", "new"),
        *("content", "file_text", "contents"),
    }
)

#: A command that shows one file, from its beginning or from a given line.
_SHOWN = re.compile(
    r"(?:^|&&|[;\n])\s*(?:sed\s+-n\s+['\"]?(\d+),\d+p['\"]?|cat(?:\s+-[nA])*|nl(?:\s+-ba?)*|head(?:\s+-(?:n\s*)?\d+)?)"
    r"\s+['\"]?([^\s'\"|;&<>]*[^\s'\"|;&<>.]\.[A-Za-z]\w{0,5})['\"]?\s*"
    r"(?=$|[;&\n]|2>|\|\s*(?:head|sed\s+-n\s+['\"]?(\d+),))"
)
_PATCHED = re.compile(r"\*\*\* (?:Update|Add) File: (.+)")
PATCH = "*** Begin Patch"

_written = json.JSONEncoder(ensure_ascii=False).encode


class TextKind(StrEnum):
    """What a call does with a text."""

    CALLED = "called"
    REPLACED = "replaced"
    WRITTEN = "written"


class File(NamedTuple):
    """The file that a call works on ("" if unknown), and the first line that it shows."""

    path: str
    first_line: int = 1


class CallText(NamedTuple):
    """A long text in the arguments of a call, with its key."""

    kind: TextKind
    key: str
    path: str
    text: str


def base_name(path: str) -> str:
    """The last part of a path. Example: "C:\\\\work\\\\app.py" -> "app.py" """
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def fields_of(arguments: JsonText) -> JsonObject:
    """Return the arguments by name. Arguments that are not a JSON object get the name "arguments"."""
    try:
        value = cast(Json, json.loads(arguments))
    except (ValueError, RecursionError):
        value = arguments
    return value if isinstance(value, dict) else {"arguments": value}


def file_of(fields: JsonObject) -> File:
    """Return the file that a call works on. Example: {"command": "sed -n '40,80p' app.py"} -> File("app.py", 40)"""
    path = next((value for key, value in fields.items() if key in PATH_KEYS and _is_path(value)), "")
    return File(path) if path else _shown(fields)


def texts_of_call(fields: JsonObject, path: str) -> tuple[list[CallText], list[str]]:
    """Return the long texts of a call, and its short arguments, such as ["path=a.py", "count=1"]."""
    long: list[CallText] = []
    short: list[str] = []
    for key, value in fields.items():
        inner = list(_edits(value, path)) if isinstance(value, dict | list) else []
        if inner:
            long += inner
            continue
        text = value if isinstance(value, str) else _written(value)
        if PATCH in text:
            long += _patch_texts(key, text)
        elif "\n" in text or len(text) > LONGEST_ARGUMENT or key in REPLACED_KEYS or key in WRITTEN_KEYS:
            long.append(CallText(_kind(key), key, path, text))
        else:
            short.append(f"{key}={text}")
    return long, short


def _kind(key: str) -> TextKind:
    if key in REPLACED_KEYS:
        return TextKind.REPLACED
    return TextKind.WRITTEN if key in WRITTEN_KEYS else TextKind.CALLED


def _is_path(value: Json) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= LONGEST_PATH and "\n" not in value


def _shown(fields: JsonObject) -> File:
    """Return the file that a shell command shows; none if it shows several, whose lines cannot be told apart."""
    command = next((fields[key] for key in COMMAND_KEYS if key in fields), "")
    if isinstance(command, list):
        command = command[-1] if command else ""
    if not isinstance(command, str) or len(command) > LONGEST_ARGUMENT:
        return File("")
    found = _SHOWN.findall(command)
    if len(found) != 1:
        return File("")
    first, path, piped = found[0]
    return File(path, int(first or piped or 1))


def _edits(value: Json, path: str, depth: int = DEEPEST) -> Iterator[CallText]:
    """Yield the texts that nested edits replace and write. Each edit may name its own file."""
    if isinstance(value, dict):
        path = next((inner for key, inner in value.items() if key in PATH_KEYS and _is_path(inner)), path)
        for key, inner in value.items():
            if isinstance(inner, str) and _kind(key) is not TextKind.CALLED:
                yield CallText(_kind(key), key, path, inner)
            elif depth:
                yield from _edits(inner, path, depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from _edits(inner, path, depth - 1)


def _patch_texts(key: str, text: str) -> Iterator[CallText]:
    """Yield the lines before and after the change, for each place that a patch changes."""
    path, gone, stand = "", list[str](), list[str]()
    for line in [*text.split("\n"), "*** End Patch"]:
        if not line.startswith(("@@", "*** ")):
            if not line.startswith("+"):
                gone.append(line[1:] if line.startswith("-") else line.removeprefix(" "))
            if not line.startswith("-"):
                stand.append(line[1:] if line.startswith("+") else line.removeprefix(" "))
            continue
        if gone != stand:
            if any(gone):
                yield CallText(TextKind.REPLACED, key, path, "\n".join(gone))
            yield CallText(TextKind.WRITTEN, key, path, "\n".join(stand))
        elif any(stand):
            yield CallText(TextKind.CALLED, key, path, "\n".join(stand))
        gone, stand = [], []
        found = _PATCHED.match(line)
        path = found[1].strip() if found else path
