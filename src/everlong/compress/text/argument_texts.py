"""Replace long texts in the arguments of a call by a description.

    {"path": "a.py", "content": "…50 000 characters…"}
    {"path": "a.py", "content": {"omitted": {"characters": 50000, "ref": "0123456789abcdef"}}}

The arguments stay valid JSON: only the long string is replaced; every other byte (keys, paths, numbers, their order)
stays as it was. The replacement is an object, not text: models imitate their own earlier calls, and a text would end up
in somebody's file, while a tool that expects a string refuses an object.
"""

import json
import re
from collections.abc import Iterator

from everlong.compress.text.changes import sealed
from everlong.core import JsonText, Ref, ToolCall

__all__ = ["described", "without_long_texts"]

SMALLEST = 200  # characters; the description of a shorter text would be as long as the text

#: A string, and the colon that makes it a key. Possessive, so that a string of megabytes needs no memory for
#: backtracking.
STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"(\s*:)?', re.DOTALL)
#: Names of arguments with a path or address, which stay however long they are.
PLACE = re.compile(r"path|file_?name|^files?$|director|folder|^dir$|^cwd$|ur[li]$", re.IGNORECASE)


def described(call: ToolCall, ref: Ref, longest: int) -> ToolCall | None:
    """Return the call without texts above `longest` characters; None if it has none or the provider signed it."""
    if sealed(call):
        return None
    arguments = without_long_texts(call.arguments, ref, longest)
    return None if arguments == call.arguments else ToolCall(call.id, call.name, arguments, call.extra)


def without_long_texts(arguments: JsonText, ref: Ref, longest: int) -> JsonText:
    """Return the same JSON object with its long strings described; anything else unchanged.

    Example: '{"n": 1.50, "text": "xxx…"}' -> '{"n": 1.50, "text": {"omitted": {"characters": 3000, "ref": "…"}}}'
    """
    if len(arguments) <= longest:
        return arguments
    try:
        if not isinstance(json.loads(arguments), dict):
            return arguments
    except (ValueError, RecursionError):
        return arguments
    return "".join(_pieces(arguments, ref, max(SMALLEST, longest)))


def _pieces(arguments: JsonText, ref: Ref, longest: int) -> Iterator[str]:
    done, key = 0, ""
    for found in STRING.finditer(arguments):
        if found[1]:
            key = found[0][1:].partition('"')[0]
        elif len(found[0]) - 2 > longest and not PLACE.search(key):
            text = json.loads(found[0])
            if len(text) > longest:
                yield arguments[done : found.start()]
                yield json.dumps({"omitted": {"characters": len(text), "ref": ref}})
                done = found.end()
    yield arguments[done:]
