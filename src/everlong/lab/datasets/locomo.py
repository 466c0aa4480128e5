"""LoCoMo, LoCoMo-Plus and REALTALK: two people who talk over weeks and months, with questions about it.

`data/locomo10.json` has ten conversations. Six of them are the lab's usual data set; the other four are set apart, all
for confirming. An image becomes its caption, `[image: …]`. Evidence that names no turn is left out.

LoCoMo-Plus has cues, a few lines that someone said, and for each a much later remark that only makes sense with it. As
its authors do it, a cue becomes a session of a LoCoMo conversation, as long before its end as the sample says. They
make a copy of a conversation for each sample; here every tenth sample goes into the same copy, so that the cues of the
others are in between.

REALTALK has real people's messages over three weeks, with questions in LoCoMo's format. Some people are in several
chats: the first four chats, whose people are in none of the others, are for tuning.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from everlong.errors import InputError
from everlong.lab.datasets.checkout import Checkout
from everlong.lab.datasets.dialogue import Dataset, Dialogue, Question, Turn, speaker_roles

__all__ = ["convert_locomo", "convert_locomo_plus", "convert_locomo_rest", "convert_realtalk"]

Shape = TypeVar("Shape")

FILE, PLUS_FILE = "data/locomo10.json", "data/locomo_plus.json"
USUAL = ("conv-26", "conv-41", "conv-42", "conv-44", "conv-47", "conv-49")
CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}
TIME, REAL_TIME = "%I:%M %p on %d %B, %Y", "%d.%m.%Y, %H:%M:%S"
REAL_TUNING = ("Chat_1_", "Chat_2_", "Chat_3_", "Chat_4_")
ASKED_AFTER = timedelta(days=7)  # from the last session to the remark
NUMBERS = ["a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

_SESSION = re.compile(r"session_(\d+)")
_TURN_ID = re.compile(r"D:?(\d+):0*(\d+)")
_GAP = re.compile(rf"\b(\d+|an|{'|'.join(NUMBERS)})\b\s+(day|week|month|year)s?\b", re.IGNORECASE)


class _Said(msgspec.Struct):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str = ""


class _Asked(msgspec.Struct):
    question: str
    category: int
    evidence: list[str] = []
    answer: object = None
    adversarial_answer: object = None


class _Sample(msgspec.Struct):
    sample_id: str
    conversation: dict[str, Any]
    qa: list[_Asked]


class _Cue(msgspec.Struct):
    relation_type: str
    cue_dialogue: str
    trigger_query: str
    time_gap: str


def convert_locomo(checkout: Checkout) -> Dataset:
    """Return the six conversations of the lab's usual set."""
    return _dataset([sample for sample in checkout.read(FILE, list[_Sample]) if sample.sample_id in USUAL])


def convert_locomo_rest(checkout: Checkout) -> Dataset:
    """Return the other four conversations, all for confirming."""
    samples = [sample for sample in checkout.read(FILE, list[_Sample]) if sample.sample_id not in USUAL]
    return _dataset(samples, half="confirming")


def _dataset(samples: Sequence[_Sample], half: str = "") -> Dataset:
    dialogues = tuple(Dialogue(sample.sample_id, tuple(_turns(sample)), half) for sample in samples)
    questions = (
        question
        for sample, dialogue in zip(samples, dialogues, strict=True)
        for question in _questions(sample, {turn.id for turn in dialogue.turns})
    )
    return Dataset(dialogues, tuple(questions))


def _turns(sample: _Sample) -> Iterator[Turn]:
    """Yield the turns of a conversation, session after session. `speaker_a` is the user."""
    talk = sample.conversation
    sessions = sorted((int(found[1]), key) for key in talk if (found := _SESSION.fullmatch(key)))
    said = [
        (key, turn)
        for _, key in sessions
        for turn in _converted(talk[key], list[_Said], f"{FILE}: {sample.sample_id}: {key}")
    ]
    named = [str(talk[name]) for name in ("speaker_a", "speaker_b") if name in talk]
    roles = speaker_roles([*named, *(turn.speaker for _, turn in said)])
    for key, turn in said:
        text = f"{turn.text} [image: {turn.blip_caption}]" if turn.blip_caption else turn.text
        time = str(talk.get(f"{key}_date_time", ""))
        yield Turn(_turn_id(turn.dia_id), roles[turn.speaker], text, turn.speaker, time)


def _turn_id(text: str) -> str:
    found = _TURN_ID.fullmatch(text)
    return f"D{found[1]}:{found[2]}" if found else text


def _questions(sample: _Sample, ids: set[str]) -> Iterator[Question]:
    """Yield the questions that name a turn of the conversation. One text may have two ids: "D8:6; D9:17"."""
    for at, asked in enumerate(sample.qa):
        named = (f"D{session}:{turn}" for text in asked.evidence for session, turn in _TURN_ID.findall(text))
        evidence = tuple(dict.fromkeys(key for key in named if key in ids))
        answer = asked.adversarial_answer if asked.answer is None else asked.answer
        if evidence:
            category = CATEGORIES.get(asked.category, str(asked.category))
            key = f"{sample.sample_id}-q{at:03d}"
            yield Question(key, sample.sample_id, asked.question, evidence, category, str(answer or ""))


# --- LoCoMo-Plus -----------------------------------------------------------------------------------


def convert_locomo_plus(checkout: Checkout) -> Dataset:
    """Return the LoCoMo conversations with the cues in them, and the remarks as questions."""
    samples = checkout.read(FILE, list[_Sample])
    cues = checkout.read(PLUS_FILE, list[_Cue])
    dialogues: list[Dialogue] = []
    questions: list[Question] = []
    for at, sample in enumerate(samples):
        own = list(enumerate(cues))[at :: len(samples)]
        key = f"plus-{sample.sample_id}"
        turns, placed = _with_cues(sample, own)
        dialogues.append(Dialogue(key, turns, "tuning" if sample.sample_id in USUAL else "confirming"))
        questions += [
            Question(f"{key}-q{number:03d}", key, _spoken(cue.trigger_query)[0][1], placed[number], cue.relation_type)
            for number, cue in own
        ]
    return Dataset(tuple(dialogues), tuple(questions))


def _with_cues(
    sample: _Sample, cues: Sequence[tuple[int, _Cue]]
) -> tuple[tuple[Turn, ...], dict[int, tuple[str, ...]]]:
    """Return the turns with every cue as a session at its time, and the ids of the turns of each cue."""
    turns = list(_turns(sample))
    if not turns:
        raise InputError(f"{FILE}: {sample.sample_id}: no session")
    speakers = list(dict.fromkeys(turn.name for turn in turns))[:2]
    names = dict(zip("AB", [speakers[0], speakers[-1]], strict=True))
    roles = {turn.name: turn.role for turn in turns}
    asked = max(_time(turn.time, sample) for turn in turns) + ASKED_AFTER
    events = [(_time(turn.time, sample), turn) for turn in turns]
    placed: dict[int, tuple[str, ...]] = {}
    for number, cue in cues:
        time = asked - _gap(cue.time_gap)
        said = [
            Turn(f"C{number}:{at}", roles[names[who]], text, names[who], time.isoformat())
            for at, (who, text) in enumerate(_spoken(cue.cue_dialogue), start=1)
        ]
        placed[number] = tuple(turn.id for turn in said)
        events += [(time, turn) for turn in said]
    return tuple(turn for _, turn in sorted(events, key=lambda event: event[0])), placed


def _time(text: str, sample: _Sample) -> datetime:
    try:
        return datetime.strptime(text, TIME)
    except ValueError as error:
        raise InputError(f"{FILE}: {sample.sample_id}: the time of a session cannot be read: {text!r}") from error


def _gap(text: str) -> timedelta:
    """Return a time span that is given in words; zero if it is not understood. Example: "two weeks later" -> 14 days"""
    found = _GAP.search(text)
    if not found:
        return timedelta()
    number, unit = found[1].lower(), found[2].lower()
    many = int(number) if number.isdecimal() else max(1, NUMBERS.index(number) if number in NUMBERS else 1)
    return timedelta(days=many * DAYS[unit])


def _spoken(text: str) -> list[tuple[str, str]]:
    """Return who said what. Example: "A: I moved.\\nB: Where to?" -> [("A", "I moved."), ("B", "Where to?")]"""
    lines: list[tuple[str, str]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line[:2] in ("A:", "B:"):
            lines.append((line[0], line[2:].strip()))
        elif lines:
            lines[-1] = (lines[-1][0], f"{lines[-1][1]}\n{line}")
        else:
            lines.append(("A", line))
    return lines or [("A", text.strip())]


# --- REALTALK --------------------------------------------------------------------------------------


class _RealSaid(msgspec.Struct):
    speaker: str
    dia_id: str
    clean_text: str = ""
    date_time: str = ""
    blip_caption: str = ""


def convert_realtalk(checkout: Checkout) -> Dataset:
    """Return the ten chats. Messages without words, such as a single picture, are left out."""
    dialogues: list[Dialogue] = []
    questions: list[Question] = []
    for name in checkout.names("data", ".json"):
        path = f"data/{name}"
        fields = checkout.read(path, dict[str, Any])
        key = f"realtalk-{name.split('_')[1]}" if name.startswith("Chat_") else name
        asked = _converted(fields.get("qa", []), list[_Asked], f"{path}: qa")
        sample = _Sample(key, fields, asked)
        turns = tuple(_real_turns(sample, path))
        dialogues.append(Dialogue(key, turns, "tuning" if name.startswith(REAL_TUNING) else "confirming"))
        questions += _questions(sample, {turn.id for turn in turns})
    return Dataset(tuple(dialogues), tuple(questions))


def _real_turns(sample: _Sample, path: str) -> Iterator[Turn]:
    fields = sample.conversation
    sessions = sorted((int(found[1]), key) for key in fields if (found := _SESSION.fullmatch(key)))
    said = [turn for _, key in sessions for turn in _converted(fields[key], list[_RealSaid], f"{path}: {key}")]
    roles = speaker_roles(turn.speaker for turn in said)
    for turn in said:
        text = f"{turn.clean_text} [image: {turn.blip_caption}]" if turn.blip_caption else turn.clean_text
        if text.strip():
            time = _real_time(turn.date_time)
            yield Turn(_turn_id(turn.dia_id), roles[turn.speaker], text.strip(), turn.speaker, time)


def _real_time(text: str) -> str:
    """Return a time as ISO 8601; "" if it cannot be read. Example: "28.12.2023, 18:37:49" -> "2023-12-28T18:37:49" """
    try:
        return datetime.strptime(text, REAL_TIME).isoformat()
    except ValueError:
        return ""


def _converted(value: object, shape: type[Shape], where: str) -> Shape:
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}") from error
