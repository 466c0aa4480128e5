"""A short line that tells a message from its neighbours: what was asked, said, called or answered.

For people who look at a list, never for a model. Language-neutral: it only quotes.
"""

import re
from collections.abc import Sequence

from everlong.core import JsonText, Message, Opaque, Reasoning, Role, ToolCall
from everlong.wire import arguments_object

__all__ = ["TITLE_LENGTH", "call_title", "message_title", "text_title"]

TITLE_LENGTH = 120  # characters
LOOKED_AT = 2_000  # characters of a text; a title is at its front or nowhere
LARGEST_PARSED = 1_000_000  # characters of arguments
CALLS_NAMED = 3
ARGUMENT_LENGTH = 60
PATH_LENGTH = 32

#: Clients wrap what the user typed: <command-name>/init</command-name>. The words count, not the wrapping.
TAG = re.compile(r"</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?>")
CHANGE_FOLDER = re.compile(r"^\s*cd \S+ (?:&&|;)\s*")  # what agents put before every command
#: The argument that says most about a call, best first.
TELLING = (
    "path",
    "file_path",
    "filePath",
    "filename",
    "file",
    "command",
    "cmd",
    "query",
    "pattern",
    "url",
    "text",
    "name",
)


def text_title(text: str) -> str:
    """The first words, on one line.

    Example: "<command-name>/init</command-name>\\n  please" -> "/init please"
    """
    head = text.lstrip()[:LOOKED_AT]
    bare = " ".join(TAG.sub(" ", head).split()).lstrip("# ")
    return _shortened(bare or " ".join(head.split()), TITLE_LENGTH)


def call_title(call: ToolCall) -> str:
    """The tool and the argument that tells most. Example: read_file {"path": "a.py"} -> "read_file a.py" """
    return f"{call.name} {_telling(call.arguments)}".strip()


def message_title(message: Message, calls: Sequence[ToolCall] = ()) -> str:
    """What the message is. `calls` are those that it makes or answers; "" if it is pictures only."""
    called = " · ".join(call_title(call) for call in calls[:CALLS_NAMED])
    if len(calls) > CALLS_NAMED:
        called += f" · +{len(calls) - CALLS_NAMED}"
    if message.role is Role.TOOL and called:
        return _shortened(called, TITLE_LENGTH)
    said = text_title(message.text) or called
    if said:
        return _shortened(said, TITLE_LENGTH)
    for part in message.parts:
        if isinstance(part, Reasoning) and part.text.strip():
            return text_title(part.text)
        if isinstance(part, Opaque):
            return _shortened(part.kind, TITLE_LENGTH)
    return ""


def _telling(arguments: JsonText) -> str:
    if len(arguments) > LARGEST_PARSED:
        return _shortened(" ".join(arguments[:LOOKED_AT].split()), ARGUMENT_LENGTH)
    fields = arguments_object(arguments)
    words = {name: value for name, value in fields.items() if isinstance(value, str) and value.strip()}
    chosen = next((words[name] for name in TELLING if name in words), next(iter(words.values()), ""))
    line = " ".join(CHANGE_FOLDER.sub("", chosen[:LOOKED_AT]).split())
    if "/" in line and " " not in line and "://" not in line:
        return _path_end(line)
    return _shortened(line, ARGUMENT_LENGTH)


def _path_end(path: str) -> str:
    """A path says most at its end.

    Example: "/home/ada/code/shop/src/till/layout.py" -> "…/code/shop/src/till/layout.py"
    """
    if len(path) <= PATH_LENGTH:
        return path
    end = path[-PATH_LENGTH:]
    return "…" + (end[end.index("/") :] if "/" in end else end)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
