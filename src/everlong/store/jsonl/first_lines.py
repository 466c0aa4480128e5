"""Metadata lines as the index keeps them, and what becomes of two that differ.

nanobot's list reads the first line of a file, its loader takes the last metadata line. What it changes in the first
line alone is carried over into the one that counts.
"""

import json
import re
from datetime import datetime

from everlong.core import JsonObject
from everlong.store.jsonl.header import OURS, Header, header_in
from everlong.store.jsonl.scanning import Line

__all__ = ["header_of", "merged", "stamp_place"]

STAMP = re.compile(
    rb'\{"_type": "metadata", "key": "(?:[^"\\]|\\.)*", "created_at": "[^"]*", "updated_at": "([-0-9T:.]{26})"'
)


def header_of(text: str, key: str, time: datetime) -> Header:
    """A metadata line; of a file without one, what stands for it."""
    return header_in(json.loads(text), key, time) if text else Header(key=key, created=time, updated=time)


def stamp_place(line: Line) -> int:
    """Where in the file its time of change stands, so that it can be set in place; -1 if it cannot."""
    found = STAMP.match(line.raw)
    return line.offset + found.start(1) if found else -1


def merged(old_first: str, new_first: str, counts: str) -> str:
    """The line that counts, with what changed from the old first line to the new one."""
    old, new = _inner(old_first), _inner(new_first)
    if old == new:
        return counts
    line: JsonObject = json.loads(counts)
    inner = _inner(counts)
    for key in old.keys() | new.keys():
        if key != OURS and old.get(key) != new.get(key):
            inner.pop(key, None)
            inner |= {key: new[key]} if key in new else {}
    return json.dumps(line | {"metadata": inner}, ensure_ascii=False)


def _inner(text: str) -> JsonObject:
    metadata = json.loads(text).get("metadata") if text else None
    return dict(metadata) if isinstance(metadata, dict) else {}
