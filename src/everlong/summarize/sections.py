"""An answer as parts: from JSON, from broken JSON, or from headings with lists. Says what is there, judges nothing."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from everlong.core import Json
from everlong.summarize.parts import Field, field_named

__all__ = ["CutOff", "sections_of"]

LARGEST = 200_000  # characters; no summary is longer
_FENCE = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n?(.*?)\n?```", re.DOTALL | re.MULTILINE)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_KEY = re.compile(r"[\"'“]([^\"'”\n:：]{2,60})[\"'”]\s*[:：]")
_ITEM = re.compile(r"[\"“]((?:[^\"\\\n]|\\.)*)[\"”]")
_SINGLE = re.compile(r"'((?:[^'\\\n]|\\.)*)'(?=\s*[,\]}])")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.{1,80})$")
_LABEL = re.compile(
    r"^\s*(?:[-*+]\s+|\d+[.)、]\s*)?(?:\*\*|__)?([^:：*\n]{1,40}?)(?:\*\*|__)?\s*[:：]\s*(?:\*\*|__)?\s*(.*)$"
)
_BOLD = re.compile(r"^\s*(?:\d+[.)、]\s*)?(?:\*\*|__|【)([^*_\n】]{1,60})(?:\*\*|__|】)\s*$")
_BULLET = re.compile(r"^\s*(?:[-*+•·–]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)、]\s*)")


@dataclass(frozen=True, slots=True)
class CutOff:
    """The answer ends in the middle."""


def sections_of(text: str) -> dict[Field, list[str]] | CutOff | None:
    """What stands under which part; None if it has no parts.

    Example: "## Decisions\\n- use SQLite\\n## Next\\n- tests" -> {"decisions": ["use SQLite"], "next": ["tests"]}
    """
    text = text[:LARGEST]
    inner = _unfenced(text)
    at = inner.find("{")
    if at >= 0 and _KEY.match(inner[at + 1 :].lstrip()):
        return _from_json(inner[at:])
    if text.count("```") % 2:
        return CutOff()
    return _from_lines(inner) or None


def _unfenced(text: str) -> str:
    """What stands in the fence, if the answer is little else."""
    found = _FENCE.search(text)
    if found and len(found[1]) * 2 > len(text):
        return found[1]
    opened = re.match(r"^\s*```[\w-]*[ \t]*\n", text)
    return text[opened.end() :] if opened and not found else text


def _from_json(text: str) -> dict[Field, list[str]] | CutOff | None:
    for attempt in (text, _TRAILING_COMMA.sub(r"\1", text)):
        try:
            value, _ = json.JSONDecoder(strict=False).raw_decode(attempt)
        except (ValueError, RecursionError):
            continue
        return _from_object(value) or _unnamed(value) or None
    bare = _ITEM.sub("", text)
    if bare.count("{") > bare.count("}") or bare.count("[") > bare.count("]"):
        return CutOff()
    return _from_broken(text) or None


def _from_object(value: Json) -> dict[Field, list[str]]:
    found: dict[Field, list[str]] = {}
    if not isinstance(value, dict):
        return found
    for key, inner in value.items():
        field = field_named(key)
        if field is not None:
            found.setdefault(field, []).extend(_texts(inner))
        elif isinstance(inner, dict):
            for name, items in _from_object(inner).items():
                found.setdefault(name, []).extend(items)
    return found


def _unnamed(value: Json) -> dict[Field, list[str]]:
    """An object of other parts than ours: all it says is context."""
    found = [text for inner in value.values() for text in _texts(inner) if text] if isinstance(value, dict) else []
    return {"context": found} if found else {}


def _texts(value: Json) -> Iterator[str]:
    """The sentences in a value: a text, a list of texts, or objects as "name: what". Two levels, no deeper."""
    if isinstance(value, list):
        for inner in value:
            yield from [_flat(inner)]
    elif isinstance(value, dict):
        yield from (f"{name}: {_flat(inner)}" for name, inner in value.items())
    else:
        yield _flat(value)


def _flat(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ": ".join(str(inner) for inner in value.values() if isinstance(inner, str | int | float))
    if isinstance(value, list):
        return ", ".join(str(inner) for inner in value if isinstance(inner, str | int | float))
    return "" if value is None or isinstance(value, bool) else str(value)


def _from_broken(text: str) -> dict[Field, list[str]]:
    """JSON that no parser takes, by its keys and the strings between them."""
    found: dict[Field, list[str]] = {}
    keys = list(_KEY.finditer(text))
    for key, after in zip(keys, [*keys[1:], None], strict=True):
        field = field_named(key[1])
        if field is not None:
            body = text[key.end() : after.start() if after else len(text)]
            items = list(_ITEM.finditer(body)) or list(_SINGLE.finditer(body))
            found.setdefault(field, []).extend(item[1] for item in items if item[1].strip())
    return {field: items for field, items in found.items() if items}


def _from_lines(text: str) -> dict[Field, list[str]]:
    found: dict[Field, list[str]] = {}
    current: Field | None = None
    listed, skipping = True, False
    lead: list[str] = []
    for line in map(str.rstrip, text.splitlines()):
        head = _headed(line, listed=listed)
        if head is None and _HEADING.match(line):
            skipping = current is not None  # a part that nobody asked for
            continue
        if head is not None:
            current, rest = head
            listed, skipping = _BULLET.match(line) is not None, False
        bare = _BULLET.sub("", line if head is None else rest).strip()
        if bare and not skipping:
            (lead if current is None else found.setdefault(current, [])).append(bare)
    if found and lead and "context" not in found and not lead[-1].endswith((":", "：")):
        found["context"] = lead
    return found


def _headed(line: str, *, listed: bool) -> tuple[Field, str] | None:
    """The part that a line begins, and what it says of it there. Items begin parts only where parts are `listed`."""
    if heading := _HEADING.match(line) or _BOLD.match(line):
        field, rest = field_named(heading[1]), ""
    elif (label := _LABEL.match(line)) and (listed or "**" in line or not _BULLET.match(line)):
        field, rest = field_named(label[1]), label[2]
    else:
        return None
    return None if field is None else (field, rest)
