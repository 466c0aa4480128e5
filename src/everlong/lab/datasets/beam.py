"""BEAM: long chats with an assistant, written by models, and questions of nine kinds about them.

`chats/SIZE/N/chat.json` has a chat in batches of turns, `probing_questions/probing_questions.json` its questions by
kind. `source_chat_ids` are the turns that answer a question; questions without them (abstention) are left out. Chats
with even numbers are for tuning, those with odd numbers for confirming. The plan numbers at the end of a user's turn
("->-> 1,4") are removed, because nobody writes them. Only the first turn of a batch has a date, so no turn gets one.
"""

import re

import msgspec

from everlong.lab.datasets.checkout import Checkout
from everlong.lab.datasets.dialogue import Dataset, Dialogue, Question, Turn, flat_ids

__all__ = ["convert_beam"]

PLAN_NUMBER = re.compile(r"\s*->->[\s\d,]*$")


class _Message(msgspec.Struct):
    id: int
    role: str
    content: str


class _Batch(msgspec.Struct):
    turns: list[list[_Message]]


class _Probe(msgspec.Struct):
    question: str
    answer: object = None
    ideal_answer: object = None
    source_chat_ids: object = None


def convert_beam(checkout: Checkout, size: str) -> Dataset:
    """Return the chats of a size, such as "100K", with their questions."""
    root = f"chats/{size}"
    dialogues: list[Dialogue] = []
    questions: list[Question] = []
    for number in (name for name in checkout.names(root) if name.isdecimal()):
        key = f"beam-{size.lower()}-{number}"
        batches = checkout.read(f"{root}/{number}/chat.json", list[_Batch])
        turns = tuple(
            Turn(str(message.id), message.role, PLAN_NUMBER.sub("", message.content))
            for batch in batches
            for exchange in batch.turns
            for message in exchange
        )
        dialogues.append(Dialogue(key, turns, "confirming" if int(number) % 2 else "tuning"))
        kinds = checkout.read(f"{root}/{number}/probing_questions/probing_questions.json", dict[str, list[_Probe]])
        questions += _questions(key, kinds)
    return Dataset(tuple(dialogues), tuple(questions))


def _questions(key: str, kinds: dict[str, list[_Probe]]) -> list[Question]:
    numbered = enumerate((kind, probe) for kind, probes in kinds.items() for probe in probes)
    return [
        Question(
            f"{key}-q{at:02d}",
            key,
            probe.question,
            evidence,
            kind,
            str(probe.answer or probe.ideal_answer or ""),
        )
        for at, (kind, probe) in numbered
        if (evidence := flat_ids(probe.source_chat_ids))
    ]
