"""What is asked of a selection: cases, each with the texts that must still be there.

probe       the agent used this string in its next call; it stands in 1 to 3 messages, well before
edit        the agent replaces this text next: all of it must be there, line after line
question    these turns answer it; it is the last user message
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from everlong.core import Json, Message, Role, Text, ToolCall
from everlong.errors import InputError
from everlong.lab.data import Conversation, agents, dialogues, in_half, rows

__all__ = ["REPLACED_KEYS", "Case", "Cases", "edit_cases", "every", "probe_cases", "question_cases", "replaced_texts"]

#: Under which names tools take the text that they replace.
REPLACED_KEYS = frozenset({"old_string", "old_str", "old_text", "oldText", "oldString", "oldStr", "old"})
LEAST_LINES = 2


@dataclass(frozen=True, slots=True)
class Case:
    """The history before message `at`, with the question behind it if there is one; `wanted` must be found in it.

    `groups` say what the case belongs to. Example: (("kind", "path"), ("source", "entireio/cli"))
    """

    at: int
    wanted: tuple[str, ...]
    groups: tuple[tuple[str, str], ...] = ()
    question: Message | None = None


@dataclass(frozen=True, slots=True)
class Cases:
    """A conversation and what is asked of it, in order."""

    conversation: Conversation
    cases: tuple[Case, ...]


def probe_cases(folder: Path, files: Sequence[str], half: str = "all") -> list[Cases]:
    """The probes of these files."""
    asked: dict[str, list[Case]] = {}
    source = {c.id: c for name in files for c in agents(folder, name, half)}
    path = folder / "agents" / "probes.jsonl"
    for row in rows(path):
        try:
            key = str(row["conversation"])
            if row["file"] not in files or not in_half(key, half):
                continue
            if key not in source:
                raise InputError(f"{path}: no conversation {key!r} in {row['file']}")
            groups = (("kind", str(row["kind"])), ("source", source[key].source))
            asked.setdefault(key, []).append(Case(int(row["at"]), (str(row["needle"]),), groups))
        except KeyError as error:
            raise InputError(f"{path}: a probe has no {error}") from error
        except (TypeError, ValueError) as error:
            raise InputError(f"{path}: {row.get('id', 'a probe')} cannot be read: {error}") from error
    return [Cases(source[key], _in_order(found)) for key, found in asked.items()]


def edit_cases(conversations: Iterable[Conversation]) -> list[Cases]:
    """Every text of two lines or more that a call replaces."""
    found = []
    for conversation in conversations:
        groups = (("source", conversation.source),)
        cases = tuple(
            Case(at, (text,), groups)
            for at, message in enumerate(conversation.messages)
            for call in message.calls
            for text in replaced_texts(call)
        )
        if cases:
            found.append(Cases(conversation, cases))
    return found


def question_cases(folder: Path, name: str, half: str = "all") -> list[Cases]:
    """The questions of a dialogue data set that have evidence."""
    source = {c.id: c for c in dialogues(folder, name, half)}
    texts = {key: dict(zip(c.ids, (turn.text for turn in c.messages), strict=True)) for key, c in source.items()}
    asked: dict[str, list[Case]] = {}
    path = folder / name / "questions.jsonl"
    for row in rows(path):
        try:
            key, evidence = str(row["conversation"]), row["evidence"]
            if not in_half(key, half) or not evidence:
                continue
            wanted = tuple(texts[key][turn] for turn in evidence)
            groups = (("category", str(row.get("category", ""))),)
            said = Message(Role.USER, (Text(row["question"]),))
        except KeyError as error:
            raise InputError(f"{path}: {row.get('id', 'a question')} refers to {error}, which is not there") from error
        except TypeError as error:
            raise InputError(f"{path}: {row.get('id', 'a question')} cannot be read: {error}") from error
        asked.setdefault(key, []).append(Case(len(source[key].messages), wanted, groups, said))
    return [Cases(source[key], tuple(found)) for key, found in asked.items()]


def every(cases: Iterable[Cases], step: int) -> list[Cases]:
    """Every `step`-th case of all, in order; conversations without one are left out."""
    number = 0
    kept = []
    for group in cases:
        chosen = tuple(case for at, case in enumerate(group.cases, number) if at % step == 0)
        number += len(group.cases)
        if chosen:
            kept.append(Cases(group.conversation, chosen))
    return kept


def replaced_texts(call: ToolCall) -> Iterator[str]:
    """The texts of two lines or more that a call replaces, without line ends around them."""
    try:
        value = cast(Json, json.loads(call.arguments))
    except (ValueError, RecursionError):
        return
    for text in _under(value, REPLACED_KEYS):
        bare = text.strip("\n")
        if bare.count("\n") + 1 >= LEAST_LINES:
            yield bare


def _under(value: Any, keys: frozenset[str]) -> Iterator[str]:
    """The strings under these names, in lists and objects too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in keys and isinstance(inner, str):
                yield inner
            else:
                yield from _under(inner, keys)
    elif isinstance(value, list):
        for inner in value:
            yield from _under(inner, keys)


def _in_order(cases: Iterable[Case]) -> tuple[Case, ...]:
    return tuple(sorted(cases, key=lambda case: case.at))
