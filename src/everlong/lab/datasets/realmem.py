"""RealMem: chats of one user each with an assistant, over months and many projects, written by models.

`dataset/NAME_dialogues_256k.json` has sessions. Some turns of the user are queries that need something from before: the
answer lists the memories that it used, and each memory names its session and its turn. These turns are the evidence,
and the question is asked at its place: only what came before it is history. Half of the queries need the assistant's
words, so the category says whose: `user`, `assistant` or `both`. Queries with a memory that names no earlier turn, two
thirds of all, are left out. By name, every other user is for tuning.
"""

import re
from collections.abc import Iterator

import msgspec

from everlong.lab.datasets.checkout import Checkout
from everlong.lab.datasets.dialogue import Dataset, Dialogue, Question, Turn

__all__ = ["convert_realmem"]

FOLDER, SUFFIX = "dataset", "_dialogues_256k.json"
ROLES = {"User": "user", "Assistant": "assistant"}
SNAPSHOT = 40  # characters that identify a turn; the data set's own snapshots are shortened

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class _Used(msgspec.Struct):
    session_uuid: str
    content: object


class _Said(msgspec.Struct):
    speaker: str
    content: str
    is_query: bool = False
    query_id: str | None = None
    memory_used: list[_Used] = []


class _Memory(msgspec.Struct):
    content: object
    source_turn: int | None = None
    source_content_snapshot: str | None = None
    session_uuid: str = ""


class _Session(msgspec.Struct):
    session_uuid: str
    current_time: str
    dialogue_turns: list[_Said]
    extracted_memory: list[_Memory] = []


class _Chats(msgspec.Struct):
    dialogues: list[_Session]


def convert_realmem(checkout: Checkout) -> Dataset:
    """Return a dialogue for each user, all sessions in order, and the queries as questions."""
    dialogues: list[Dialogue] = []
    questions: list[Question] = []
    for number, name in enumerate(checkout.names(FOLDER, SUFFIX)):
        key = f"realmem-{name.removesuffix(SUFFIX)}"
        chats = checkout.read(f"{FOLDER}/{name}", _Chats)
        turns = tuple(_turns(chats))
        dialogues.append(Dialogue(key, turns, "confirming" if number % 2 else "tuning"))
        questions += _questions(key, chats, turns)
    return Dataset(tuple(dialogues), tuple(questions))


def _turns(chats: _Chats) -> Iterator[Turn]:
    for number, session in enumerate(chats.dialogues, start=1):
        found = _DATE.match(session.current_time)
        for at, said in enumerate(session.dialogue_turns, start=1):
            role = ROLES.get(said.speaker, said.speaker)
            yield Turn(f"S{number}:{at}", role, said.content, time=found[0] if found else "")


def _questions(key: str, chats: _Chats, turns: tuple[Turn, ...]) -> Iterator[Question]:
    sources = _sources(chats)
    place = {turn.id: at for at, turn in enumerate(turns)}
    for number, session in enumerate(chats.dialogues, start=1):
        for at, (asked, answer) in enumerate(zip(session.dialogue_turns, session.dialogue_turns[1:], strict=False), 1):
            if not asked.is_query or not asked.content.strip():
                continue
            before = f"S{number}:{at}"
            found = [sources.get((used.session_uuid, str(used.content)), "") for used in answer.memory_used]
            evidence = tuple(sorted(set(found), key=lambda turn: place.get(turn, -1)))
            if evidence and all(place.get(turn, len(turns)) < place[before] for turn in evidence):
                sides = {turns[place[turn]].role for turn in evidence}
                kind = sides.pop() if len(sides) == 1 else "both"
                yield Question(f"{key}-{asked.query_id or before}", key, asked.content, evidence, kind, before=before)


def _sources(chats: _Chats) -> dict[tuple[str, str], str]:
    """Return the turn of each memory, by the session and the text of the memory."""
    numbers = {session.session_uuid: number for number, session in enumerate(chats.dialogues, start=1)}
    sources: dict[tuple[str, str], str] = {}
    for session in chats.dialogues:
        number = numbers[session.session_uuid]
        for memory in session.extracted_memory:
            at = _source_turn(memory, session.dialogue_turns)
            if at:
                sources.setdefault(
                    (memory.session_uuid or session.session_uuid, str(memory.content)), f"S{number}:{at}"
                )
    return sources


def _source_turn(memory: _Memory, turns: list[_Said]) -> int:
    """Return the number of the turn, from 1, that the memory names and whose beginning it has; 0 if there is none.

    Memories of a whole session name turn 0, with a snapshot that is not their source.
    """
    named, snapshot = memory.source_turn or 0, (memory.source_content_snapshot or "")[:SNAPSHOT]
    fits = 0 < named <= len(turns) and bool(snapshot) and turns[named - 1].content.startswith(snapshot)
    return named if fits else 0
