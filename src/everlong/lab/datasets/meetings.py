"""QMSum and VCSum: real meetings of several people, in English and in Chinese, with the speakers' names.

Everyone in a meeting is a user, because no assistant takes part. QMSum has specific questions with the spans of turns
that answer them; these are long, so the mean share of evidence says more than the number of questions with all of it.
VCSum has no questions: one is built from the headline that people gave to a part of a meeting, and its evidence is what
they highlighted there. The validation parts of both are for tuning, the test parts for confirming.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from everlong.errors import InputError
from everlong.lab.datasets.checkout import Checkout
from everlong.lab.datasets.dialogue import Dataset, Dialogue, Question, Turn

__all__ = ["convert_qmsum", "convert_vcsum"]

QMSUM_PARTS = {"val": "tuning", "test": "confirming"}
VCSUM_PARTS = {"dev": "tuning", "test": "confirming"}
VCSUM_QUESTION = "会上关于“{headline}”说了什么？"
MESSAGE_CHARACTERS = 120  # of sentences in one message; whole turns of VCSum have up to 2,000
MOST_EVIDENCE = 5

_MARK = re.compile(r"\s*\{\w+\}")  # a transcriber's marks: {vocalsound}, {disfmarker}


class _Spoken(msgspec.Struct):
    speaker: str
    content: str


class _Query(msgspec.Struct):
    query: str
    answer: str
    relevant_text_span: list[list[str]]


class _Meeting(msgspec.Struct):
    meeting_transcripts: list[_Spoken]
    specific_query_list: list[_Query]


class _Segment(msgspec.Struct):
    id: str
    context: list[list[str]]
    speaker: list[int]
    discussion: str
    agenda: str
    highlights: list[list[list[int]]]


def convert_qmsum(checkout: Checkout) -> Dataset:
    """Return the meetings with their specific questions, without turns that are only a transcriber's mark."""
    dialogues: list[Dialogue] = []
    questions: list[Question] = []
    for part, half in QMSUM_PARTS.items():
        for name in checkout.names(f"data/ALL/{part}", ".json"):
            meeting = checkout.read(f"data/ALL/{part}/{name}", _Meeting)
            key = f"qmsum-{name.removesuffix('.json')}"
            said = enumerate(meeting.meeting_transcripts)
            turns = tuple(
                Turn(str(at), "user", text, turn.speaker)
                for at, turn in said
                if (text := _MARK.sub("", turn.content).strip())
            )
            dialogues.append(Dialogue(key, turns, half))
            known = {turn.id for turn in turns}
            for at, asked in enumerate(meeting.specific_query_list):
                evidence = tuple(turn for turn in _spanned(asked, key) if turn in known)
                if evidence:
                    questions.append(
                        Question(f"{key}-q{at:02d}", key, asked.query, evidence, _span_kind(evidence), asked.answer)
                    )
    return Dataset(tuple(dialogues), tuple(questions))


def _spanned(asked: _Query, key: str) -> list[str]:
    """Return the numbers of the turns in the spans, including the ends. Example: [["3", "5"]] -> ["3", "4", "5"]"""
    try:
        spans = [(int(span[0]), int(span[-1])) for span in asked.relevant_text_span if span]
    except ValueError as error:
        raise InputError(f"{key}: a span of {asked.query!r} cannot be read: {error}") from error
    return list(dict.fromkeys(str(at) for first, last in spans for at in range(first, last + 1)))


def _span_kind(evidence: Sequence[str]) -> str:
    """Return how long the evidence is, in which the questions differ most."""
    return next((name for name, most in (("short", 10), ("middle", 40)) if len(evidence) <= most), "long")


def convert_vcsum(checkout: Checkout) -> Dataset:
    """Return the meetings of VCSum, a question for each headline. Parts without a highlight give none."""
    dialogues: list[Dialogue] = []
    questions: list[Question] = []
    for part, half in VCSUM_PARTS.items():
        segments = checkout.read_lines(f"vcsum_data/short_{part}.txt", _Segment)
        for meeting, group in groupby(segments, key=lambda segment: segment.id.partition("_")[0]):
            key = f"vcsum-{meeting}"
            turns: list[Turn] = []
            for segment in group:
                messages = list(_messages(segment))
                turns += [turn for turn, _ in messages]
                marked = sorted((message for message in messages if message[1]), key=lambda message: -message[1])
                evidence = [turn.id for turn, _ in marked[:MOST_EVIDENCE]]
                if evidence:
                    text = VCSUM_QUESTION.format(headline=segment.agenda)
                    ids = tuple(turn.id for turn, _ in messages if turn.id in evidence)
                    questions.append(Question(f"vcsum-{segment.id}", key, text, ids, "headline", segment.discussion))
            dialogues.append(Dialogue(key, tuple(turns), half))
    return Dataset(tuple(dialogues), tuple(questions))


def _messages(segment: _Segment) -> Iterator[tuple[Turn, int]]:
    """Yield messages of complete sentences by one speaker, with the number of their highlighted characters."""
    if not len(segment.context) == len(segment.speaker) == len(segment.highlights):
        raise InputError(f"{segment.id}: context, speaker and highlights have different lengths")
    number = 0
    for sentences, speaker, marks in zip(segment.context, segment.speaker, segment.highlights, strict=True):
        text, marked = "", 0
        for sentence, mark in zip([*sentences, ""], [*marks, []], strict=False):
            if text and (not sentence or len(text) + len(sentence) > MESSAGE_CHARACTERS):
                number += 1
                yield Turn(f"{segment.id}:{number}", "user", text, f"发言人{speaker}"), marked
                text, marked = "", 0
            text, marked = text + sentence, marked + sum(mark)
