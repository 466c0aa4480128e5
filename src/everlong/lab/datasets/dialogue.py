"""The lab's format for dialogue data sets: dialogues, questions about them, how they are checked and written.

Every converter of this package returns a `Dataset`. `read_dataset` reads a folder in this format, so that your own data
set is read and checked in the same way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from everlong.errors import InputError
from everlong.lab.data import half_of, in_half, rows

__all__ = [
    "CONVERSATIONS",
    "Dataset",
    "Dialogue",
    "Question",
    "Turn",
    "flat_ids",
    "read_dataset",
    "speaker_roles",
    "write_dataset",
]

CONVERSATIONS, QUESTIONS = "conversations.jsonl", "questions.jsonl"
ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a dialogue. `time` is ISO 8601 or LoCoMo's format; "" if it is unknown."""

    id: str
    role: str
    content: str
    name: str = ""
    time: str = ""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One dialogue. `half` is "tuning" or "confirming"; "" lets the id decide."""

    id: str
    turns: tuple[Turn, ...]
    half: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a dialogue; `evidence` are the ids of the turns that answer it.

    It is asked at the end, or before the turn `before`: then only earlier turns are history.
    """

    id: str
    dialogue: str
    question: str
    evidence: tuple[str, ...]
    category: str = ""
    answer: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Dialogues and the questions about them. Creating one checks that every question can be measured."""

    dialogues: tuple[Dialogue, ...]
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        """Check ids, roles and evidence. Raises InputError that names the first problem."""
        turns: dict[str, dict[str, int]] = {}
        for dialogue in self.dialogues:
            if dialogue.id in turns:
                raise InputError(f"two conversations have the id {dialogue.id}; ids must be unique")
            turns[dialogue.id] = _checked_places(dialogue)
        seen: set[str] = set()
        for question in self.questions:
            if question.id in seen:
                raise InputError(f"two questions have the id {question.id}; ids must be unique")
            seen.add(question.id)
            _check_question(question, turns)

    def questions_in(self, half: str) -> int:
        """Return how many questions are about dialogues of that half."""
        inside = {dialogue.id for dialogue in self.dialogues if in_half(_facts(dialogue), half)}
        return sum(question.dialogue in inside for question in self.questions)


def _facts(dialogue: Dialogue) -> dict[str, Any]:
    return {"id": dialogue.id} | ({"half": dialogue.half} if dialogue.half else {})


def _checked_places(dialogue: Dialogue) -> dict[str, int]:
    half_of(_facts(dialogue))  # raises for an unknown half
    places: dict[str, int] = {}
    for at, turn in enumerate(dialogue.turns):
        if turn.role not in ROLES:
            raise InputError(f"{dialogue.id}: the role of turn {turn.id} must be user or assistant, not {turn.role!r}")
        if turn.id in places:
            raise InputError(f"{dialogue.id}: two turns have the id {turn.id}; ids must be unique in a conversation")
        places[turn.id] = at
    if not places:
        raise InputError(f"{dialogue.id}: no messages")
    return places


def _check_question(question: Question, turns: Mapping[str, Mapping[str, int]]) -> None:
    if question.dialogue not in turns:
        raise InputError(f"question {question.id}: there is no conversation {question.dialogue!r}")
    if not question.question.strip():
        raise InputError(f"question {question.id}: the text of the question is empty")
    if not question.evidence:
        raise InputError(f"question {question.id}: no evidence; list the ids of the turns that answer it")
    places = turns[question.dialogue]
    missing = [turn for turn in question.evidence if turn not in places]
    if missing:
        raise InputError(
            f"question {question.id}: {question.dialogue} has no turn {missing[0]!r}, which is its evidence"
        )
    if not question.before:
        return
    if question.before not in places:
        raise InputError(
            f"question {question.id}: {question.dialogue} has no turn {question.before!r}, named in before"
        )
    if any(places[turn] >= places[question.before] for turn in question.evidence):
        raise InputError(f"question {question.id}: its evidence does not come before turn {question.before!r}")


# --- helpers of converters -----------------------------------------------------------------------


def speaker_roles(speakers: Iterable[str]) -> dict[str, str]:
    """Return a role for each speaker: the first is the user, the others answer. Example: Ann, Bo, Ann -> Ann: user"""
    names = list(dict.fromkeys(speakers))
    return {name: ROLES[at > 0] for at, name in enumerate(names)}


def flat_ids(value: object) -> tuple[str, ...]:
    """Return every id in lists and objects, each once, in order. Example: {"old": [3], "new": [8]} -> ("3", "8")"""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return () if value is None else (str(value),)
    return tuple(dict.fromkeys(key for item in value for key in flat_ids(item)))


# --- reading and writing ---------------------------------------------------------------------------


def read_dataset(folder: Path) -> Dataset:
    """Return the data set of a folder in the lab's format. Raises InputError that names file and field."""
    for name in (CONVERSATIONS, QUESTIONS):
        if not (folder / name).is_file() and not (folder / f"{name}.gz").is_file():
            raise InputError(f"{folder}: no {name}; docs/lab/data.md describes the form of a data set")
    dialogues = tuple(_dialogue(row, folder / CONVERSATIONS) for row in rows(folder / CONVERSATIONS))
    read = (_question(row, at, folder / QUESTIONS) for at, row in enumerate(rows(folder / QUESTIONS)))
    return Dataset(dialogues, tuple(question for question in read if question.evidence))


def _dialogue(row: Mapping[str, Any], path: Path) -> Dialogue:
    try:
        turns = tuple(
            Turn(
                str(turn["id"]),
                str(turn["role"]),
                _text(turn["content"]),
                str(turn.get("name") or ""),
                str(turn.get("time") or ""),
            )
            for turn in row["messages"]
        )
        return Dialogue(str(row["id"]), turns, str(row.get("half") or ""))
    except KeyError as error:
        raise InputError(f"{path}: {row.get('id', 'a conversation')}: {error} is missing") from error
    except (TypeError, AttributeError) as error:
        raise InputError(f"{path}: {row.get('id', 'a conversation')}: messages cannot be read: {error}") from error


def _question(row: Mapping[str, Any], at: int, path: Path) -> Question:
    key = str(row.get("id") or f"{row.get('conversation')}-q{at:04d}")
    try:
        evidence = flat_ids(row["evidence"])
        answer = row.get("answer")
        return Question(
            key,
            str(row["conversation"]),
            _text(row["question"]),
            evidence,
            str(row.get("category") or ""),
            "" if answer is None else str(answer),
            str(row.get("before") or ""),
        )
    except KeyError as error:
        raise InputError(f"{path}: question {key}: {error} is missing") from error
    except TypeError as error:
        raise InputError(f"{path}: question {key}: {error}") from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"it must be text, not {value!r}")
    return value


def write_dataset(dataset: Dataset, folder: Path) -> None:
    """Write the data set into the folder, which is created. The same data set gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (
        (CONVERSATIONS, map(_dialogue_row, dataset.dialogues)),
        (QUESTIONS, map(_question_row, dataset.questions)),
    ):
        (folder / name).write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        (folder / f"{name}.gz").unlink(missing_ok=True)  # an old compressed file would be a second version


def _dialogue_row(dialogue: Dialogue) -> dict[str, object]:
    turns = [
        {"id": turn.id, "role": turn.role}
        | ({"name": turn.name} if turn.name else {})
        | {"content": turn.content}
        | ({"time": turn.time} if turn.time else {})
        for turn in dialogue.turns
    ]
    return _facts(dialogue) | {"messages": turns}


def _question_row(question: Question) -> dict[str, object]:
    row: dict[str, object] = {
        "id": question.id,
        "conversation": question.dialogue,
        "question": question.question,
        "answer": question.answer,
        "category": question.category,
        "evidence": list(question.evidence),
    }
    if question.before:
        row["before"] = question.before
    return row
