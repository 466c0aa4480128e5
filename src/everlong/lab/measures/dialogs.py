"""The measure of dialogues: a question comes last, and the turns that answer it must still be there."""

from pathlib import Path

from everlong.core import Message, Role, Text
from everlong.errors import InputError
from everlong.lab.cases import Case, Cases
from everlong.lab.data import dialogues, outside, rows
from everlong.lab.measures.presence import Measure, find_texts

__all__ = ["DIALOGS", "question_cases"]


DIALOGS = Measure("dialogs", find_texts, recall=True)


def question_cases(folder: Path, name: str, half: str = "all") -> list[Cases]:
    """Return a case for every question with evidence; a question `before` a turn ends its history there."""
    conversations = {conversation.id: conversation for conversation in dialogues(folder, name, half)}
    texts = {
        key: dict(zip(conversation.ids, (turn.text for turn in conversation.messages), strict=True))
        for key, conversation in conversations.items()
    }
    places = {key: {turn: at for at, turn in enumerate(talk.ids)} for key, talk in conversations.items()}
    others = outside(folder / name / "conversations.jsonl", half)
    cases: dict[str, list[Case]] = {}
    path = folder / name / "questions.jsonl"
    for row in rows(path):
        try:
            key, evidence = str(row["conversation"]), row["evidence"]
            if key in others or not evidence:
                continue
            wanted = tuple(texts[key][turn] for turn in evidence)
            groups = (("category", str(row.get("category", ""))),)
            question = Message(Role.USER, (Text(row["question"]),))
            at = places[key][str(row["before"])] if row.get("before") else len(conversations[key].messages)
        except KeyError as error:
            raise InputError(f"{path}: {row.get('id', 'a question')} refers to {error}, which is not there") from error
        except TypeError as error:
            raise InputError(f"{path}: {row.get('id', 'a question')} cannot be read: {error}") from error
        cases.setdefault(key, []).append(Case(at, wanted, groups, question))
    return [Cases(conversations[key], tuple(group)) for key, group in cases.items()]
