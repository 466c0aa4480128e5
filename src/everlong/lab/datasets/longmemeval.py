"""LongMemEval: questions, each with the chats that one user had with an assistant over months.

The file is a list of questions with their own sessions (`haystack_sessions`); turns with `has_answer` are the evidence.
Questions that cannot be answered (`_abs`) and those without such turns are left out. `question_type` is the category;
`single-session-assistant` asks for the assistant's words. Written from the published description of the file.
"""

import re

import msgspec

from everlong.errors import InputError
from everlong.lab.datasets.checkout import Checkout
from everlong.lab.datasets.dialogue import Dataset, Dialogue, Question, Turn

__all__ = ["convert_longmemeval"]

#: In this order: the cleaned file is newer.
FILES = ("longmemeval_s_cleaned.json", "longmemeval_s.json", "longmemeval_oracle.json")
UNANSWERABLE = "_abs"

_DATE = re.compile(r"(\d{4})/(\d\d)/(\d\d)(?: \(\w+\))?(?: (\d\d:\d\d))?")


class _Said(msgspec.Struct):
    role: str
    content: str
    has_answer: bool = False


class _Entry(msgspec.Struct):
    question_id: str
    question_type: str
    question: str
    haystack_dates: list[str]
    haystack_sessions: list[list[_Said]]
    answer: object = ""


def convert_longmemeval(checkout: Checkout) -> Dataset:
    """Return a dialogue for each question: all its sessions, oldest first."""
    paths = [path for name in FILES for path in (name, f"data/{name}") if checkout.has(path)]
    dialogues: list[Dialogue] = []
    questions: list[Question] = []
    for entry in checkout.read(paths[0] if paths else FILES[0], list[_Entry]):
        key = f"lme-{entry.question_id}"
        turns, evidence = _turns(entry)
        if evidence and not entry.question_id.endswith(UNANSWERABLE):
            dialogues.append(Dialogue(key, turns))
            questions.append(Question(key, key, entry.question, evidence, entry.question_type, str(entry.answer)))
    return Dataset(tuple(dialogues), tuple(questions))


def _turns(entry: _Entry) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
    """Return the turns of all sessions by time, and the ids of those with the answer."""
    if len(entry.haystack_dates) != len(entry.haystack_sessions):
        raise InputError(f"{entry.question_id}: haystack_dates and haystack_sessions have different lengths")
    sessions = sorted(
        zip(map(_iso, entry.haystack_dates), entry.haystack_sessions, strict=True), key=lambda dated: dated[0]
    )
    placed = [
        (Turn(f"S{number}:{at}", said.role, said.content, time=time), said.has_answer)
        for number, (time, session) in enumerate(sessions, start=1)
        for at, said in enumerate(session, start=1)
    ]
    return tuple(turn for turn, _ in placed), tuple(turn.id for turn, answers in placed if answers)


def _iso(date: str) -> str:
    """Return a date as ISO 8601; "" if it cannot be read. Example: "2023/05/20 (Sat) 02:21" -> "2023-05-20T02:21" """
    found = _DATE.fullmatch(date.strip())
    if not found:
        return ""
    day = f"{found[1]}-{found[2]}-{found[3]}"
    return f"{day}T{found[4]}" if found[4] else day
