"""MemoryBank and MADial-Bench: people who tell an assistant about their days, in Chinese and in English.

MemoryBank (`eval_data/cn`, `eval_data/en`) has ten days of conversation per user, and questions without evidence. The
turns that answer the questions of the first ten users were marked for the lab by reading all of them; they are in
`MARKS`. The English text is a translation turn by turn, so the same marks apply; if a day was cut short, its questions
are left out. MADial-Bench has dated notes about two children, and conversations in which an assistant should mention
one of them: the last lines before that are the question, its notes the evidence. Every third Chinese conversation is
set apart.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from everlong.errors import InputError
from everlong.lab.datasets.checkout import Checkout
from everlong.lab.datasets.dialogue import Dataset, Dialogue, Question, Turn

__all__ = ["convert_madial", "convert_memorybank"]

#: For each user of MemoryBank, in the order of the questions: who or what is asked for (the user, the assistant, a
#: day), and the turns that answer the question.
MARKS = (
    "u=D4:7 u=D5:1 a=D7:6 u=D2:3 u=D4:5 d=D6:3 d=D8:3",
    "d=D1:5 u=D2:17 a=D3:4 u=D9:3 d=D10:3 d=D4:3 a=D2:6",
    "u=D1:7 u=D3:3+D3:5 u=D2:3 u=D4:3 a=D7:2 a=D6:4 u=D2:3",
    "u=D2:3 u=D1:9 d=D7:4 d=D5:3 u=D1:5 a=D4:4 a=D8:2",
    "u=D2:5 u=D3:7 u=D2:5 a=D1:10 u=D5:3 u=D6:7 d=D8:4",
    "d=D10:3 d=D10:7 d=D1:5+D1:7 d=D2:6 d=D6:3 d=D5:3 d=D8:3",
    "u=D2:3 d=D3:1+D3:3 u=D2:5 d=D4:1 d=D9:1 u=D8:1 u=D10:1",
    "a=D1:3+D1:5+D1:9 u=D10:5 d=D6:1 u=D2:5 u=D1:7 a=D9:2 a=D6:2",
    "u=D1:3 d=D4:1 a=D4:4 a=D8:4 u=D10:3 a=D2:6 a=D6:2",
    "d=D2:5 u=D8:2 a=D9:4 a=D8:4 d=D6:1+D6:3 a=D4:2 a=D7:2",
)
ASKED_FOR = {"u": "user", "a": "assistant", "d": "day"}
ASSISTANT = "AI"
LINES_BEFORE = 4  # of a MADial conversation that become the question
CHILDREN = {1: "Bart", 2: "Lisa"}
APART = 1  # conversations whose number leaves this remainder modulo three are set apart

_LINE = re.compile(r'\s*<(\w+)>\s*[:：]\s*"?(.*?)"?\s*', re.DOTALL)


class _Exchange(msgspec.Struct):
    query: str
    response: str


class _User(msgspec.Struct):
    history: dict[str, list[_Exchange]]


class _Note(msgspec.Struct, rename="kebab"):
    time: str
    event: str
    user_id: int = 0


class _Talk(msgspec.Struct, rename="kebab"):
    dialogue: list[str]
    test_turn: list[int]
    relevant_id: list[int]
    user_id: int


# --- MemoryBank --------------------------------------------------------------------------------------


def convert_memorybank(checkout: Checkout, code: str, language: str) -> Dataset:
    """Return the ten users whose answers are marked. `code` is the data set's name for the language, such as "cn"."""
    root = f"eval_data/{code}"
    users = {
        name.strip(): user for name, user in checkout.read(f"{root}/memory_bank_{code}.json", dict[str, _User]).items()
    }
    asked = checkout.read_lines(f"{root}/probing_questions_{code}.jsonl", dict[str, list[str]])
    listed = [(name.strip(), questions) for line in asked for name, questions in line.items()]
    dialogues: list[Dialogue] = []
    questions: list[Question] = []
    for number, ((name, texts), marks) in enumerate(zip(listed, MARKS, strict=False)):
        if name not in users:
            raise InputError(f"{root}/memory_bank_{code}.json: no user {name!r}, whose questions are there")
        key = f"mb-{language}-{number:02d}"
        turns = tuple(_days(name, users[name]))
        dialogues.append(Dialogue(key, turns))
        questions += _marked(key, texts, marks, {turn.id for turn in turns})
    return Dataset(tuple(dialogues), tuple(questions))


def _days(name: str, user: _User) -> Iterator[Turn]:
    for day, (date, exchanges) in enumerate(user.history.items(), start=1):
        for at, exchange in enumerate(exchanges):
            yield Turn(f"D{day}:{2 * at + 1}", "user", exchange.query, name, date)
            yield Turn(f"D{day}:{2 * at + 2}", "assistant", exchange.response, ASSISTANT, date)


def _marked(key: str, texts: Sequence[str], marks: str, known: set[str]) -> Iterator[Question]:
    """Yield the questions of a user whose marked turns exist."""
    for at, (text, mark) in enumerate(zip(texts, marks.split(), strict=False)):
        kind, _, turns = mark.partition("=")
        evidence = tuple(turns.split("+"))
        if known.issuperset(evidence):
            yield Question(f"{key}-q{at}", key, text, evidence, ASKED_FOR[kind])


# --- MADial-Bench ------------------------------------------------------------------------------------


def convert_madial(checkout: Checkout, folder: str, code: str, *, apart: bool | None = None) -> Dataset:
    """Return the notes as two dialogues and the conversations as questions: all, those set apart, or the others."""
    stem = f"data/{folder}/MADial-Bench-{code}"
    lines = checkout.read_lines(f"{stem}-memory.json", dict[str, _Note])
    notes = sorted((item for line in lines for item in line.items()), key=lambda item: item[1].time)
    talks = list(enumerate(checkout.read_lines(f"{stem}-dialogue.json", _Talk)))
    half = "confirming" if apart else ""
    dialogues = []
    for child, name in CHILDREN.items():
        own = ((key, note) for key, note in notes if (note.user_id or _child_in(note.event)) == child)
        turns = tuple(Turn(key, "user", note.event, name, note.time) for key, note in own)
        if turns:
            dialogues.append(Dialogue(f"madial-{name}", turns, half))
    known = {dialogue.id: {turn.id for turn in dialogue.turns} for dialogue in dialogues}
    questions = []
    for number, talk in talks:
        key = f"madial-{CHILDREN.get(talk.user_id, talk.user_id)}"
        evidence = tuple(note for note in map(str, talk.relevant_id) if note in known.get(key, ()))
        if evidence and apart in (None, number % 3 == APART):
            questions.append(_recalled(f"madial-{number}", key, talk, evidence))
    return Dataset(tuple(dialogues), tuple(questions))


def _child_in(event: str) -> int:
    """Return the number of the child in a note, 0 if there is none. The English notes have no number."""
    return next((child for child, name in CHILDREN.items() if name in event), 0)


def _recalled(key: str, dialogue: str, talk: _Talk, evidence: tuple[str, ...]) -> Question:
    lines = [f"{found[1]}：{found[2]}" if (found := _LINE.fullmatch(line)) else line.strip() for line in talk.dialogue]
    first = min(talk.test_turn, default=len(lines))
    said = lines[max(1, first - LINES_BEFORE) : first]
    if not said:
        raise InputError(f"{key}: there is no line before the first test-turn")
    answer = lines[first] if first < len(lines) else ""
    return Question(key, dialogue, "\n".join(said), evidence, f"n{min(3, len(evidence))}", answer)
