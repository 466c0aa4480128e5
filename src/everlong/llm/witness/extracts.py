"""Make a summary or a title from sentences of the conversation, in the form that was asked for. Pure.

Each sentence is copied unchanged into the field that its words suggest: finished, decided, holding, changed, open,
next. The engine itself copies what users asked, so their questions and reports are left out here.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from everlong.core import Message, Role, is_framed
from everlong.llm.witness.words import is_own_answer
from everlong.relevance import names_in, terms_of, words_of
from everlong.summarize import FREE_LIMIT, LONGEST_TITLE, Style, one_line, read_transcript
from everlong.tokens import Counter

__all__ = ["extract_summary", "extract_title"]

SHORTEST, LONGEST = 18, 260  # characters of a sentence that is taken; a Chinese one counts twice
LONGEST_CONTEXT = 190
MOST_TOKENS = 900
SHARE = 4  # a summary has at most a quarter of the tokens that it covers
MOST_ITEMS = 8  # of one list
LEAST_WORTH = 3.5  # the least value of `_telling` for a sentence that is taken
MOST_LOOKED_AT = 4_000  # sentences, the newest

_END = re.compile(r"(?<=[。！？；])(?=.)|(?<=[.!?])\s+(?=[\"'“(*`A-Z0-9\u4e00-\u9fff])|\n+")
_MARKER = re.compile(r"^(?:[-*+•>]\s+|#{1,6}\s+|\d{1,3}[.)、]\s*|[一二三四五六七八九十]、\s*)+")
_MARKUP = re.compile(r"\*\*|__")
_CODE = re.compile(r"^\s*(?:[{}()\[\]<>@$]|(?:def|class|import|from|return|if|for|SELECT|at) |```)|[;{}]\s*$|\s{3,}|\|")

#: Field -> the words that put a sentence there. The first field that matches is taken.
SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "open_questions",
        re.compile(
            r"[?？]$|\bnot (?:yet |been )?(?:decided|settled|clear)|\bunclear|还没定|不清楚|待定", re.IGNORECASE
        ),
    ),
    (
        "next",
        re.compile(
            r"\bnext\b|\bwill\b|\bwaiting\b|\buntil\b|\bby (?:mon|tues|wednes|thurs|fri|satur|sun)day|\btomorrow\b"
            r"|\bplan(?:ned|s) to\b|\bI(?:'|’)ll\b|接下来|下一步|等.{0,8}(?:回复|给|到)|明天|之后|待办|到时候",
            re.IGNORECASE,
        ),
    ),
    (
        "constraints",
        re.compile(
            r"\bnever\b|\bmust\b|\bonly\b|\bat most\b|\bno more than\b|\balways\b|\bbudget\b|\brule\b|\bdo not\b"
            r"|\bdon['’]t\b|不要|必须|只能|不能|不得|最多|预算|一律|规定|以.{1,6}为准",
            re.IGNORECASE,
        ),
    ),
    (
        "decisions",
        re.compile(
            r"\bdecided?\b|\bagreed\b|\binstead\b|\bwe use\b|\bchose\b|\brecommend|\bsuggest"
            r"|决定|改为|定为|建议|就按|采用|取消",
            re.IGNORECASE,
        ),
    ),
    (
        "file_changes",
        re.compile(
            r"(?:\b(?:edited|created|changed|added|wrote|updated)\b|新增|修改|改了).{0,80}\w[./]\w", re.IGNORECASE
        ),
    ),
    (
        "done",
        re.compile(
            r"\bdone\b|\bfixed\b|\bpass(?:es|ed)?\b|\badded\b|\bwritten\b|\bclosed\b|\blive\b|\bfound\b|\bfinished\b"
            r"|\bready\b|\bis in\b|已经?|完成|修好|通过|查到|改好|记下|一共|合计",
            re.IGNORECASE,
        ),
    ),
)
#: The keys of each style, and the fields that go there.
KEYS: Mapping[Style, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "structured": (
        ("decisions", ("decisions",)),
        ("constraints", ("constraints",)),
        ("open_questions", ("open_questions",)),
        ("file_changes", ("file_changes",)),
        ("done", ("done",)),
        ("next", ("next",)),
    ),
    "buffer": (
        ("what_happened", ("done", "file_changes")),
        ("important_details", ("constraints", "decisions")),
    ),
    "chat": (
        ("finished_tasks", ("done", "file_changes")),
        ("key_context", ("constraints", "decisions")),
        ("next_steps", ("next",)),
    ),
}
CONTEXT_KEY: Mapping[Style, str] = {"buffer": "ongoing_context", "chat": "current_state"}


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    role: Role
    at: int
    field: str
    worth: float


def extract_summary(messages: Sequence[Message], style: Style, counter: Counter) -> str:
    """Return the answer to a request for a summary. The last message asks for it, and may hold the conversation."""
    said = _said(messages)
    sentences = list(_sentences(said))[-MOST_LOOKED_AT:]
    covered = counter.text("\n".join(text for _, text in said))
    left = min(MOST_TOKENS, covered // SHARE)
    context = _context(said)
    if style == "free":
        return _prose(context, sentences)
    left -= counter.text(context)
    chosen: dict[str, list[_Sentence]] = {}
    counts: dict[str, int] = {}
    for sentence in sorted(sentences, key=lambda one: (-one.worth, -one.at)):
        cost = counter.text(sentence.text) + 6
        if cost <= left and counts.get(sentence.field, 0) < MOST_ITEMS:
            chosen.setdefault(sentence.field, []).append(sentence)
            counts[sentence.field] = counts.get(sentence.field, 0) + 1
            left -= cost
    answer: dict[str, object] = {CONTEXT_KEY.get(style, "context"): context}
    for key, fields in KEYS["structured" if style == "rolling" else style]:
        items = sorted((one for field in fields for one in chosen.get(field, ())), key=lambda one: one.at)
        answer[key] = [one.text for one in items]
    return json.dumps(answer, ensure_ascii=False, indent=1)


def extract_title(said: str) -> str:
    """Return a title made of the first words that a user said."""
    line = one_line(next((part for part in _END.split(said) if _telling(part) > 1), said))
    if any("\u4e00" <= character <= "\u9fff" for character in line):
        return re.split(r"[，。！？；,:：]", line)[0][:12] or line[:12]
    return " ".join(line.split()[:6]).rstrip(",.;:!?")[:LONGEST_TITLE]


def _said(messages: Sequence[Message]) -> list[tuple[Role, str]]:
    """Return who said what: in the newest transcript that a message holds, else in all messages but the last."""
    for message in reversed(messages):
        said = read_transcript(message.text)
        if said:
            return [(role, text) for role, text in said if not is_framed(text) and not is_own_answer(text)]
    talk = [message for message in messages[:-1] if message.role is not Role.SYSTEM and not is_framed(message.text)]
    return [
        (part_role, text)
        for message in talk
        for part_role, text in ((message.role, message.text), *((Role.TOOL, one.text) for one in message.results))
        if text.strip() and not is_own_answer(text)
    ]


def _sentences(said: Sequence[tuple[Role, str]]) -> Iterator[_Sentence]:
    seen: set[str] = set()
    at = 0
    for role, text in said:
        if role is Role.TOOL:
            continue
        fenced = False
        for line in _END.split(text):
            fenced ^= line.lstrip().startswith("```")
            sentence = one_line(_MARKUP.sub("", _MARKER.sub("", line.strip())))
            at += 1
            wide = sum(not character.isascii() for character in sentence)
            if fenced or _CODE.search(line) or not SHORTEST <= len(sentence) + wide <= LONGEST or sentence in seen:
                continue
            field = next((name for name, signs in SIGNS if signs.search(sentence)), "")
            worth = _telling(sentence)
            if sentence.endswith((":", "：", "…")) or worth < LEAST_WORTH:
                continue
            if field and not (role is Role.USER and field in ("open_questions", "done", "file_changes")):
                seen.add(sentence)
                yield _Sentence(sentence, role, at, field, worth)


def _telling(sentence: str) -> float:
    """Return how much a sentence says, by its names and figures and its other words."""
    names = len(names_in(sentence)) + len(re.findall(r"\d[\d.,:]*", sentence))
    words = {term for word in words_of(sentence) for term, _ in terms_of(word) if len(term) > 1}
    return 2.0 * min(names, 4) + min(len(words), 14) / 2


def _context(said: Sequence[tuple[Role, str]]) -> str:
    """Return the most informative sentence of the user's last message."""
    asked = [text for role, text in said if role is Role.USER] or [text for _, text in said]
    parts = [
        one_line(_MARKUP.sub("", _MARKER.sub("", part.strip()))) for part in _END.split(asked[-1] if asked else "")
    ]
    fitting = [part for part in parts if part and len(part) <= LONGEST_CONTEXT and not _CODE.search(part)]
    return max(fitting, key=_telling, default="")


def _prose(context: str, sentences: Sequence[_Sentence]) -> str:
    text = context
    for sentence in sorted(sentences, key=lambda one: (-one.worth, -one.at)):
        longer = f"{text} {sentence.text}".strip()
        if len(longer) <= FREE_LIMIT:
            text = longer
    return text
