"""Questions about what the assistant said, made by rules from chats between a user and an assistant.

Most public questions ask for what the user said. These ask the other way round: "When I asked about …, what did you
suggest?" The evidence is the assistant's turn alone. A question is made if three things hold:

- The answer has its own fact: an item of a list, a point, code or a question with a word that no other turn has.
- The request before it has its own topic: one or two phrases, of which a word occurs in the answer, and that occur
  together in no other turn of the user.
- The question gives nothing away: it has no word that occurs in the answer and in no other turn.

Neither a model nor chance takes part, so the same chats give the same questions. The limits: the topic is in the user's
own words and not paraphrased, the phrasing comes from a few templates, and only English is understood.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log

from everlong.errors import InputError
from everlong.lab.datasets.dialogue import Dataset, Dialogue, Question

__all__ = ["make_assistant_words"]

MOST_A_CHAT = 10
ANSWER_CHARACTERS = range(300, 8_001)  # shorter ones say nothing, longer ones fill the smallest budget alone
TOPIC_CHARACTERS = 600  # of a request; what a user wants is at its beginning
PHRASE_WORDS = range(2, 5)
MOST_PHRASES = 8  # of a request that are tried in pairs
COMMON = 3  # turns in which a word must occur before it may be quoted from an answer
LEAST_ITEMS = 3
ORDINALS = ("first", "second", "third", "fourth", "fifth")

TEMPLATES = {
    "suggestion": (
        "When I asked about {topic}, what did you suggest?",
        "What did you recommend to me regarding {topic}?",
        "Can you remind me what you told me about {topic}?",
        "I'm going back to our talk about {topic}. Which options did you list?",
        "What was your advice on {topic}?",
        "You gave me some ideas on {topic}. Which ones were they?",
    ),
    "point": (
        'In your answer about {topic}, what did you say under "{label}"?',
        "You made a point about {label} when I asked about {topic}. What was it?",
        "What did you tell me about {label} when we discussed {topic}?",
    ),
    "ordinal": (
        "Which was the {nth} item of the list you gave me on {topic}?",
        "Of the things you listed for {topic}, what was the {nth} one?",
        "You answered my question about {topic} with a list. What did you put {nth}?",
    ),
    "code": (
        "Can you show me again the code you wrote when I asked about {topic}?",
        "What did the code look like that you gave me for {topic}?",
        "How did you implement it when I asked about {topic}?",
    ),
    "asked_back": (
        "What did you ask me at the end of your answer about {topic}?",
        "Which question did you put to me when I brought up {topic}?",
    ),
}

#: Words without a topic: function words, and words of asking.
STOP_WORDS = """
    a able about above accurate actually additional after ago again all already also always am an and any anything
    are aren't around as ask asked asking at back be because been before being best better bit called between both
    but by call came can can't check clear clearer come correct correctly concerned consider could curious days
    decide despite detailed did didn't different do does doesn't doing don't done down each effective effectively
    efficiently ensure especially etc ever every exactly example explain far feel few figure find first for from
    further gave get getting give given go going gonna good got great had handle has hasn't have haven't having he
    hear heard help helpful helps her here hers him his hope how i i'd i'll i'm i've idea ideas if implement
    important improve in include included includes including initial instead into is isn't it it's its itself just
    keep kind kinda know last let let's like likely little look looking lot made make makes making manage many maybe
    me mean might mine more most much must my necessary need needed needs never new nice no not now of off okay on
    once one only or other our out over own part perhaps plan planning please possible probably problem properly
    provide question quite rather really related relevant right said same say says see seem set she should show
    since situation so some something sorta sort specific start started starting still struggling stuff such suggest
    suggestions sure take taking tell than thank thanks that that's the their them then there these they they're
    thing things think thinking this those though through time tips to together told too torn tried try trying two
    under understand up us use used using very wait want wanted wants was wasn't way ways we we'll we're we've well
    went were what what's when where whether which while who why will wish with within without won't wonder
    wondering work worked working works worried would yeah yes yet you you'd you'll you're you've your
"""

_WORD = re.compile(r"[A-Za-z][A-Za-z'’+#-]*|\d+(?:[.,:]\d+)*")
_BREAK = re.compile(r"[^\w\s'’+#-]|\n|\s-+\s")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CODE = re.compile(r"```(?!plaintext|text|markdown|md)\w+\n(.*?)```", re.DOTALL)
_LABEL = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+\*\*(.{3,60}?):?\*\*:?[ \t]*(.*)$", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d+)[.)]\s+(.+)$", re.MULTILINE)
_QUESTION = re.compile(r"[^.!?\n]{20,200}\?")
_STOP = frozenset(STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class _Offer:
    """A possible question about an answer: its kind, what the template needs, and the answer."""

    kind: str
    values: dict[str, str]
    answer: str


def make_assistant_words(chats: Dataset) -> Dataset:
    """Return the chats with questions about the assistant's words, without chats that give none."""
    questions: list[Question] = []
    kept: list[Dialogue] = []
    for chat in chats.dialogues:
        made = _questions(chat)
        if made:
            kept.append(chat)
            questions += made
    if not questions:
        raise InputError("no question can be made: the chats have no long English answers with points or code in them")
    return Dataset(tuple(kept), tuple(questions))


def _questions(chat: Dialogue) -> list[Question]:
    """Return at most ten questions about a chat, spread over it, with alternating kinds."""
    words = [_words(turn.content) for turn in chat.turns]
    spread = Counter(word for bag in words for word in bag)
    requests = [bag for bag, turn in zip(words, chat.turns, strict=True) if turn.role == "user"]
    found: list[tuple[int, str, list[_Offer]]] = []
    for at in range(1, len(chat.turns)):
        request, answer = chat.turns[at - 1], chat.turns[at]
        if (request.role, answer.role) != ("user", "assistant") or len(answer.content) not in ANSWER_CHARACTERS:
            continue
        topic = _topic(request.content, words[at], requests)
        offers = list(_offers(answer.content, spread))
        if topic and offers:
            found.append((at, topic, offers))
    step = max(1, len(found) / MOST_A_CHAT)
    chosen = [found[int(number * step)] for number in range(min(MOST_A_CHAT, len(found)))]
    kinds = list(TEMPLATES)
    asked: list[Question] = []
    for number, (at, topic, offers) in enumerate(chosen):
        order = kinds[number % len(kinds) :] + kinds[: number % len(kinds)]
        offer = min(offers, key=lambda offer: order.index(offer.kind))
        templates = TEMPLATES[offer.kind]
        text = templates[at // 2 % len(templates)].format(topic=topic, **offer.values)
        key = f"{chat.id}-a{number:02d}"
        asked.append(Question(key, chat.id, text, (chat.turns[at].id,), offer.kind, offer.answer))
    return asked


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


# --- the topic of a request ------------------------------------------------------------------------


def _topic(request: str, answer: frozenset[str], requests: Sequence[frozenset[str]]) -> str:
    """Return one or two phrases that occur in the answer and in no other request of the chat; "" if there are none."""
    taken_up = [phrase for phrase in _phrases(request) if _words(phrase) & answer]
    phrases = sorted(taken_up, key=lambda phrase: -_rarity(phrase, requests))[:MOST_PHRASES]
    candidates = [(phrase,) for phrase in phrases] + list(combinations(phrases, 2))
    for candidate in candidates:
        words = frozenset().union(*map(_words, candidate))
        if sum(words <= bag for bag in requests) == 1:
            return " and ".join(candidate)
    return ""


def _phrases(request: str) -> list[str]:
    """Return runs of content words. Example: "is the 7 PM writing slot right?" -> ["7 PM writing slot"]"""
    text = _FENCE.sub("\n", request)[:TOPIC_CHARACTERS]
    runs: list[str] = []
    for piece in _BREAK.split(text):
        run: list[str] = []
        for word in [*_WORD.findall(piece), "the"]:
            if word.lower() not in _STOP:
                run.append(word)
                continue
            if len(run) in PHRASE_WORDS and not run[0].lower().endswith(("ing", "ly")):
                runs.append(" ".join(run))
            run = []
    return list(dict.fromkeys(runs))


def _rarity(phrase: str, requests: Sequence[frozenset[str]]) -> float:
    words = _words(phrase)
    return sum(log(len(requests) / max(1, sum(word in bag for bag in requests))) for word in words) / len(words)


# --- what an answer holds ----------------------------------------------------------------------------


def _offers(answer: str, spread: Counter[str]) -> Iterator[_Offer]:
    """Yield possible questions about an answer. Each has a word that occurs in no other turn."""
    prose = _FENCE.sub("\n", answer)
    labels = [(label.strip(), rest.strip()) for label, rest in _LABEL.findall(prose)]
    named = [label for label, _ in labels if _has_own(label, spread)]
    if len(labels) >= LEAST_ITEMS and named:
        yield _Offer("suggestion", {}, "; ".join(label for label, _ in labels))
    for label, rest in labels:
        if _is_common(label, spread) and _has_own(rest, spread):
            yield _Offer("point", {"label": label}, rest)
            break
    items = _NUMBERED.findall(prose)
    if len(items) >= LEAST_ITEMS and [int(number) for number, _ in items] == list(range(1, len(items) + 1)):
        for nth, (_, item) in list(zip(ORDINALS, items, strict=False))[1:]:
            if _has_own(item, spread):
                yield _Offer("ordinal", {"nth": nth}, item.strip("* :"))
                break
    blocks = [block for block in _CODE.findall(answer) if _has_own(block, spread)]
    if blocks:
        yield _Offer("code", {}, blocks[0].strip())
    asked = _QUESTION.findall(prose)
    if asked and answer.rstrip().endswith("?") and _has_own(asked[-1], spread):
        yield _Offer("asked_back", {}, asked[-1].strip())


def _has_own(text: str, spread: Counter[str]) -> bool:
    """Return whether a word of the text, which comes from a turn, occurs in one turn only."""
    return any(spread[word] == 1 for word in _words(text))


def _is_common(label: str, spread: Counter[str]) -> bool:
    """Return whether a label gives nothing away: all of its words occur in several turns."""
    words = _words(label)
    return bool(words) and all(spread[word] >= COMMON for word in words)
