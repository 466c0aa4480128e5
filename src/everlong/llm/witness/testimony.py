"""Find the passages of a request that answer a question, best first. Pure.

Terms are those of the package's search. The text around a passage must contain the numbers, dates, names and paths of
the question exactly. A passage without a word beyond the question's own says nothing and is not quoted.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from everlong.core import Message
from everlong.llm.witness.passages import Passage, Where, passages_of
from everlong.relevance import names_in, query_of_text, terms_of, words_of

__all__ = ["Quotation", "asks", "key_words", "quotations_for"]

MOST_QUOTED = 4
MOST_FOR_ONE = 3  # quotations for one question
LONGEST_QUOTE = 320  # characters
OWN, NEAR, BLOCK = 0.6, 0.2, 0.2  # the weights of a passage itself, with its neighbours, and of its whole text
ENOUGH = 0.45  # of the question, by weight
ENOUGH_ITSELF = 0.3
SHARED = 2  # terms of the question that a passage and its neighbours must have, if it has as many
BESIDE_THE_BEST = 0.82  # others are quoted if they answer nearly as much
RAREST = 3.0  # the greatest weight of a rare term
FIGURE_BONUS = 0.08  # for a figure, if one is asked for
NEWER_BONUS = 0.04  # of two that say the same the newer one comes first
TELLING_BONUS, TELLING = 0.06, 8  # for words beyond the question's own, up to this many
QUESTION_SHARE = 0.7  # the factor for questions and lists of names, which seldom answer anything
FEWEST_LISTED = 3  # commas
#: Factors by source: what was said is worth more than instructions and summaries that say the same.
SOURCE_SHARE: Mapping[Where, float] = {Where.SYSTEM: 0.8, Where.SUMMARY: 0.95}

_ASKING = re.compile(
    r"[?？]|吗|呢|什么|哪|谁|多少|几[个次点天本家号]|怎么|怎样|为何|为什么|何时|请问|告诉我|是不是|有没有"
)
_ASKING_WORD = re.compile(
    r"\s*(?:please\s+)?(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would"
    r"|should|has|have|had|tell|show|find|list|give|quote|name|remind|look)\b",
    re.IGNORECASE,
)
_FIGURE_ASKED = re.compile(
    r"how (?:many|much|long|old|often|large|big)|when|what (?:time|date|day|price|number)"
    r"|多少|几|何时|什么时候|哪天|日期|价"
)
_FIGURE = re.compile(r"\d")
_EXACT = re.compile(r"\d+(?:[.,:/-]\d+)*%?")
_QUESTION = re.compile(r"[^\n.。!！;；?？]+(?:\.(?=\w)[^\n.。!！;；?？]+)*[?？]")
_TRAILING = re.compile(r"[:：]$")
#: Words that only phrase a question and do not say what it is about.
_FRAME_WORDS = (
    "tell show find give quote name remind look say said says please about know exactly again now still us much many"
    " long time kind sort thing things any anything something there everything all mention mentioned told may might go"
    " goes going come comes set get make made use used mean means"
)
_FRAME_EN = frozenset(_FRAME_WORDS.split())
_FRAME_ZH = re.compile(
    r"请问|告诉我|帮我|我们|你们|他们|什么时候|什么|为什么|怎么样|怎么|怎样|哪[个些里天张家本位条一]?|多少|几[个次点天本家号]?|谁|是不是|有没有"
    r"|吗|呢|吧|啊|请|还是|现在|一共|说过|到底|最后|[的了是在我你他她它们和与也就都有这那]"
)


@dataclass(frozen=True, slots=True)
class Quotation:
    """A piece of the request, character for character, and the passage that it is from."""

    text: str
    passage: Passage


def asks(text: str) -> bool:
    """Return whether a message asks something rather than states it."""
    return _ASKING.search(text) is not None or _ASKING_WORD.match(text) is not None


def key_words(question: str) -> list[str]:
    """Return the words of a question to search for, as written."""
    words = [word for word in re.findall(r"[A-Za-z0-9_][\w./:%-]*", _bare(question)) if _terms(word)]
    chinese: list[str] = re.findall(r"[\u3400-\u9fff]{2,}", _bare(question))
    return list(dict.fromkeys(word.rstrip("./:-") for word in (*words, *chinese)))


def quotations_for(question: str, messages: Sequence[Message]) -> list[Quotation]:
    """Return quotations that answer a question, best first; [] if none is good enough. Each of several is answered."""
    passages = passages_of(messages)
    index = _Evidence(passages)
    found: dict[str, Quotation] = {}
    asked = [piece.strip() for piece in _QUESTION.findall(question)]
    for piece in asked if len(asked) > 1 else [question]:
        for passage in index.answers(piece):
            quotation = Quotation(_shortened(passage, _query(piece)), passage)
            if not any(quotation.text in other or other in quotation.text for other in found):
                found[quotation.text] = quotation
    return list(found.values())[:MOST_QUOTED]


class _Evidence:
    """The passages with their terms, for any question."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = passages
        self.terms = [frozenset(_terms(passage.text)) for passage in passages]
        self.blocks: defaultdict[int, list[int]] = defaultdict(list)
        for at, passage in enumerate(passages):
            self.blocks[passage.block].append(at)
        self.block_terms = {
            block: frozenset().union(*(self.terms[at] for at in places)) for block, places in self.blocks.items()
        }
        self.frequency = Counter(term for terms in self.terms for term in terms)

    def answers(self, question: str) -> list[Passage]:
        """Return the passages that answer one question, best first."""
        weights = self._weights(_query(question))
        total = sum(weights.values())
        if not total:
            return []
        exact, words = _exact(question), frozenset(_terms(question))
        with_figure = _FIGURE_ASKED.search(question.lower()) is not None
        scores: list[tuple[float, int]] = []
        for at, passage in enumerate(self.passages):
            if not self.terms[at] & weights.keys() or self.terms[at] <= words:
                continue
            score = self._score(at, weights, total)
            if score and all(self._has(at, token) for token in exact):
                score += FIGURE_BONUS if with_figure and _FIGURE.search(passage.text) else 0.0
                score += TELLING_BONUS * min(TELLING, len(self.terms[at] - weights.keys())) / TELLING
                scores.append((score + NEWER_BONUS * at / len(self.passages), at))
        scores.sort(reverse=True)
        best = scores[0][0] if scores else 0.0
        return [self.passages[at] for score, at in scores[:MOST_FOR_ONE] if score >= BESIDE_THE_BEST * best]

    def _weights(self, query: Mapping[str, float]) -> dict[str, float]:
        passages = len(self.passages)
        return {
            term: weight * min(RAREST, math.log(1 + (passages + 1) / (1 + self.frequency[term])))
            for term, weight in query.items()
        }

    def _score(self, at: int, weights: Mapping[str, float], total: float) -> float:
        """Return how much of the question a passage answers; 0 if it is not enough."""
        passage = self.passages[at]
        own = self._share(self.terms[at], weights, total)
        beside = [near for near in (at - 1, at + 1) if 0 <= near < len(self.passages)]
        near_terms = self.terms[at].union(*(self.terms[n] for n in beside if self.passages[n].block == passage.block))
        near = self._share(near_terms, weights, total)
        block = self._share(self.block_terms[passage.block], weights, total)
        score = (OWN * own + NEAR * near + BLOCK * block) * SOURCE_SHARE.get(passage.where, 1.0)
        if passage.text.endswith(("?", "？")) or _is_list(passage.text):
            score *= QUESTION_SHARE
        shared = len(near_terms & weights.keys())
        return score if score >= ENOUGH and own >= ENOUGH_ITSELF and shared >= min(SHARED, len(weights)) else 0.0

    @staticmethod
    def _share(terms: frozenset[str], weights: Mapping[str, float], total: float) -> float:
        return sum(weight for term, weight in weights.items() if term in terms) / total

    def _has(self, at: int, token: str) -> bool:
        """Return whether the passage or its text contains a figure or a name from the question."""
        whole = re.compile(rf"(?<![\w.]){re.escape(token)}(?![\w])", re.IGNORECASE)
        return any(whole.search(self.passages[n].text) for n in self.blocks[self.passages[at].block])


def _exact(question: str) -> list[str]:
    names = names_in(question)
    figures = [token for token in _EXACT.findall(question) if not any(token in name for name in names)]
    return [*names, *figures]


def _is_list(text: str) -> bool:
    """Return whether a passage is only a list of names, as in a summary, and says nothing about them."""
    return text.count(", ") >= FEWEST_LISTED and len(names_in(text)) > text.count(", ") // 2


def _bare(question: str) -> str:
    return _FRAME_ZH.sub(" ", question)


def _query(question: str) -> dict[str, float]:
    """Return the terms of a question, without the words that only phrase it."""
    bare = " ".join(word for word in _bare(question).split() if word.lower().strip(",.?!'\"") not in _FRAME_EN)
    return query_of_text(bare) or query_of_text(_bare(question))


@lru_cache(maxsize=20_000)
def _terms(text: str) -> tuple[str, ...]:
    return tuple({term: 0 for word in words_of(text) for term, _ in terms_of(word)})


def _shortened(passage: Passage, query: Mapping[str, float]) -> str:
    """Return the text to quote: the passage with what it announces, or the relevant part of a long one."""
    text = passage.text
    if _TRAILING.search(text):
        for line in passage.after.split("\n") if passage.after else []:
            if len(text) + len(line) < LONGEST_QUOTE:
                text = f"{text}\n{line}"
        return text.rstrip()
    if len(text) <= LONGEST_QUOTE:
        return text
    places = [word.start() for word in re.finditer(r"\w+", text) if any(term in query for term in _terms(word[0]))]
    first = max(0, (places[0] if places else 0) - LONGEST_QUOTE // 4)
    first = text.find(" ", first, first + 40) + 1 or first if first else 0
    return text[first : first + LONGEST_QUOTE].strip()
