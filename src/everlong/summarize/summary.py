"""A summary as a value, and the text it is kept as.

Facts are copied out of the conversation by code; the rest is what a model wrote and the audit let pass. Nothing here is
ever an instruction: whoever sends it wraps it as background.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeAlias

from everlong.core import JsonText
from everlong.errors import InputError

__all__ = ["NO_FACTS", "Facts", "Source", "Style", "Summary", "decode_summary", "encode_summary"]

#: structured: sections, ours and the default. free: prose. rolling: structured, merged every few rounds (N1-8).
#: buffer: what happened, details, ongoing context (SB-5). chat: done, state, context, next (CB-1.2).
Style: TypeAlias = Literal["structured", "free", "rolling", "buffer", "chat"]
#: Who wrote it: a model, or rules where no model could.
Source: TypeAlias = Literal["model", "rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Copied by code, word for word, oldest first, each kind bounded."""

    #: What users asked for, in their own words; the newest are whole, older ones may be cut with a mark.
    requests: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    open_tasks: tuple[str, ...] = ()


NO_FACTS = Facts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What stands for a part of a conversation. `context` is prose; the lists are short sentences, oldest first."""

    style: Style = "structured"
    source: Source = "model"
    language: str = "en"
    context: str = ""
    decisions: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    file_changes: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    facts: Facts = field(default_factory=Facts)
    #: Every row of the thread before this order is covered.
    covers: int = 0
    #: What the user asked to keep when this one was made; not carried over to later ones.
    focus: str = ""


def encode_summary(summary: Summary) -> JsonText:
    """As it is kept in a point; empty fields are left out."""
    said = asdict(summary)
    said["facts"] = {name: value for name, value in said["facts"].items() if value}
    return json.dumps({name: value for name, value in said.items() if value}, ensure_ascii=False)


def decode_summary(kept: JsonText) -> Summary:
    """What `encode_summary` wrote; fields of later versions are ignored."""
    try:
        said = json.loads(kept)
        facts = {name: tuple(map(str, value)) for name, value in said.pop("facts", {}).items() if name in FACT_FIELDS}
        plain: dict[str, Any] = {
            name: tuple(said[name]) if name in LISTS else said[name] for name in SUMMARY_FIELDS & said.keys()
        }
        return Summary(**plain, facts=Facts(**facts))
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"not a summary: {error}") from None


FACT_FIELDS = frozenset(one.name for one in fields(Facts))
SUMMARY_FIELDS = frozenset(one.name for one in fields(Summary)) - {"facts"}
LISTS = frozenset({"decisions", "constraints", "open_questions", "file_changes", "done", "next"})
