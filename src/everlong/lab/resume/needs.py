"""What a call needs: the strings in its arguments that an agent does not invent.

`line` is a line of a text that the call replaces. `path` is a path or an address, `id` a number, a hash or another name
with digits, `name` a compound name such as `read_file` or `readFile`. Plain words, round numbers and names joined by a
dot (`strings.Contains`) are not needs: an agent knows or invents them. The rules are the lab's own, so that a change of
everlong's ranking never changes the measure.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from everlong.core import ToolCall
from everlong.lab.measures.edits import REPLACED_KEYS

__all__ = ["NEED_KINDS", "Need", "needs_of", "same_call"]

#: In the order of the report.
NEED_KINDS = ("line", "path", "id", "name")
SHORTEST = {"line": 8, "path": 5, "id": 5, "name": 6}  # characters
LONGEST_TOKEN = 120  # longer ones are data, such as pictures in base64
DIGITS = 0.25  # least share of digits in an id

_ADDRESS = re.compile(r"https?://[^\s\"'`<>()\[\]{}|\\]+")
_PATH = re.compile(r"(?<![\w./~@+-])(?:~|\.{1,2}|[\w.@+-]+)?(?:/[\w.@+-]+)+", re.ASCII)
_TOKEN = re.compile(r"[\w$][\w$.-]*[\w$]", re.ASCII)
_EXTENSION = re.compile(r"\w\.[A-Za-z]\w{0,9}$", re.ASCII)
_FILE = re.compile(r"[\w.@+-]*\w\.[A-Za-z]\w{0,9}", re.ASCII)
_COMPOUND = re.compile(r"[A-Za-z0-9]_+[A-Za-z0-9]|[a-z0-9][A-Z]", re.ASCII)
_ROUND = re.compile(r"\d+000")
_HASH = re.compile(r"(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}")
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Need:
    """A string that a call used, and its kind."""

    kind: str
    text: str


@lru_cache(maxsize=20_000)
def needs_of(call: ToolCall) -> tuple[Need, ...]:
    """Return what a call needs, each string once. A string inside another need of the same call is left out.

    Example: {"path": "src/app.py", "old": "return load_all()"} -> path src/app.py, line "return load_all()"
    """
    try:
        value: object = json.loads(call.arguments)
    except (ValueError, RecursionError):
        value = call.arguments
    found: dict[str, Need] = {}
    for text, replaced in _texts(value):
        for need in _lines(text) if replaced else _strings(text):
            if len(need.text) >= SHORTEST[need.kind]:
                found.setdefault(need.text, need)
    kept: list[Need] = []
    whole = ""
    for need in sorted(found.values(), key=lambda need: -len(need.text)):
        if need.text not in whole:
            kept.append(need)
            whole += f"{need.text}\0"
    return tuple(sorted(kept, key=lambda need: (NEED_KINDS.index(need.kind), need.text)))


def same_call(call: ToolCall) -> tuple[str, str]:
    """Return a key that equal calls share: the tool, and the arguments in any order."""
    try:
        return call.name, json.dumps(json.loads(call.arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return call.name, call.arguments


def _texts(value: object, *, replaced: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield every text and number of the arguments, and whether the call replaces it."""
    if isinstance(value, str):
        yield value, replaced
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, replaced=key in REPLACED_KEYS)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, replaced=replaced)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value), False


def _lines(text: str) -> Iterator[Need]:
    for line in map(str.strip, text.split("\n")):
        if _WORD.search(line):
            yield Need("line", line)


def _strings(text: str) -> Iterator[Need]:
    """Yield addresses and paths, then the needs in the words that are left."""
    if _FILE.fullmatch(text):
        yield Need("path", text)
        return
    for pattern in (_ADDRESS, _PATH):
        for match in pattern.findall(text):
            path = match.rstrip("./,;:-")
            if pattern is _ADDRESS or _is_path(path):
                yield Need("path", path)
        text = pattern.sub(" ", text)
    for token in _TOKEN.findall(text):
        if len(token) > LONGEST_TOKEN:
            continue
        if _is_id(token):
            yield Need("id", token)
        else:
            yield from (Need("name", name) for name in token.split(".") if _COMPOUND.search(name))


def _is_path(text: str) -> bool:
    """Return whether a text with a slash is a path, not two words or a command: and/or, /help"""
    return text.startswith(("~", ".")) or text.count("/") > 1 or _EXTENSION.search(text) is not None


def _is_id(token: str) -> bool:
    digits = sum(map(str.isdigit, token)) >= DIGITS * len(token)
    return (digits or _HASH.fullmatch(token) is not None) and _ROUND.fullmatch(token) is None
