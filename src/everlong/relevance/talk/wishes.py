"""Find standing wishes: what a user wants from now on, in all later answers.

"Always answer in German", "from now on", "I prefer short answers", 以后都, 请始终: patterns find such sentences, and a
wish is kept word for word. Quoted text is not the user's wish: code, quoted lines, text between quotation marks or
tags, the middle of a long paste. The caller must know that a user wrote the text.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

__all__ = ["wishes_in"]

SHORTEST, LONGEST = 6, 400  # characters of a wish
EDGE = 1_200  # characters at the beginning and the end of a long message; the rest counts as pasted
MOST_ITEMS = 8  # lines of a list that follows a wish
MOST_OF_ONE = 8  # wishes in one message; if there are more, they are pasted rules
MASK = "\x00"  # replaces each quoted character

_BEGIN = r"(?:^|(?<=[;:]\s))(?:(?:and|also|but|so|ok|okay|oh|please|hey|then|note|rule|important|btw)[,:]?\s+)*"
_ANSWERS = r"(?:answers?|repl(?:y|ies)|responses?|messages?|explanations?|summaries|suggestions?|recommendations?)"
_ASKING = (
    r"(?:ask (?:you|about|for|how|what|why|which|whether|to)|(?:say|mention|request|paste|send|share|bring up)\b"
    r"|(?:want|need|talk) (?:you|about|to)\b)"
)
_ANSWERING = r"(?:answer|reply|respond|write|give|suggest|recommend|explain|list|show|create|mention|provide|refer)\b"
_VERY = r"(?:\s(?:really|strongly|much|generally|usually|typically|always|also|personally|definitely|still|just))*"

#: Phrases for what holds from now on: words of which the sentence must contain one, and the pattern to match.
_ROWS: tuple[tuple[str, str], ...] = (
    ("always", rf"{_BEGIN}always\b(?!\s+(?:an?|the|been|good|great|nice|fun|happy|glad|here|there|up|on|\w+ing)\b)"),
    (
        "never",
        rf"{_BEGIN}never\b(?!\s+(?:mind|again|an?|the|have|had|did|been|done|seen|saw|heard|thought|knew|got|\w+ed|say "
        rf"never)\b)",
    ),
    (
        "always|never",
        r"\b(?:please|should|must|shall|(?:can|could|would|will) you|you to|sure to|sure you|remember to|try to)"
        r"\s+(?:please\s+)?(?:always|never)\b",
    ),
    ("from |henceforth", r"\bfrom (?:now|here|this point|today) (?:on(?:wards?)?|forward|out)\b|\bhenceforth\b"),
    (
        "forward|future",
        r"\b(?:going forward|in (?:the )?future),?\s+(?:please|always|never|do\b|don't|use|make|keep|give|answer|reply"
        r"|write|avoid|include|you (?:should|must|can)|i(?:'d| would) (?:like|prefer))",
    ),
    (
        "whenever|time i|time you",
        rf"\b(?:whenever|every\s?time|each time|any\s?time) (?:i {_ASKING}|you {_ANSWERING})",
    ),
    ("when i", rf"{_BEGIN}when i {_ASKING}[^,]*,"),
    ("prefer|rather you", rf"\bi(?:'d| would)?{_VERY}\sprefer\b|\bmy preference is\b|\bi(?:'d| would) rather you\b"),
    ("i like|i really like", rf"\bi (?:really )?like (?:my|your|the)?\s?(?:\w+\s){{0,2}}{_ANSWERS}\b"),
    ("i don't|i do not", r"\bi (?:don't|do not) (?:like it when|want) you\b"),
    (
        "remember|in mind|forget",
        rf"{_BEGIN}(?:remember|keep in mind|bear in mind|don't forget|do not forget)(?:\s+(?:that|my|i|i'm)\b|:)",
    ),
    ("ever|any more|anymore", rf"{_BEGIN}(?:don't|do not|stop|no)\b.*\b(?:ever|any\s?more)\b"),
    ("call me|address me", r"\b(?:call|address) me (?:as )?(?-i:[A-Z])"),
    ("otherwise", r"\b(?:until|unless) (?:i|we) (?:say|tell|ask)(?: you)? otherwise\b"),
    ("the rest of|throughout", r"\b(?:the rest of|throughout) (?:this|our|the) (?:conversation|chat|session|thread)\b"),
    ("in all|in every|in each|with every", rf"\b(?:in|with) (?:all|every|each)(?: of)? (?:your )?{_ANSWERS}\b"),
    ("all |every ", rf"\b(?:all|every)(?: your)? {_ANSWERS} (?:should|must)\b"),
    # Taking back a wish is also a wish.
    (
        "no longer|any more|anymore|can stop",
        r"\byou (?:no longer (?:need|have)|(?:don't|do not) (?:need|have) to\b.*\bany\s?more\b|can stop \w+ing)",
    ),
    ("以后", r"以后(?:都|请|别|不要|不用|一律|每次)|(?:^|[，,；;：:])以后(?:你|要|就|回答|回复|用|写|凡|说)"),
    ("今后", r"今后(?:都|请|要|你|别|不要|一律|，)"),
    ("从", r"从(?:现在|今天|此)(?:起|开始|以后|往后)?[，,]?(?:请|都|你|要|不|别|用|每|所有|回|一律)|从今往后"),
    ("始终|一直|总是|永远|每次", r"(?:请|务必|必须|你要?|记得|一定要?)(?:始终|一直|总是|永远|每次)"),
    ("始终|永远|一律", r"(?:^|[，,；;：:])(?:始终|永远|一律)(?!是)|永远(?:不要|别|不许)|(?:请|都|答案|回答|回复)一律"),
    (
        "每次|每当|每回",
        r"每(?:次|当|回)(?:我(?:问|说|提|让|要|发|请|贴)|你|回答|回复|提问)[^，,]{0,30}[，,]?[^，,]{0,20}(?:都|请|就|要)",
    ),
    ("凡是", r"凡是[^。]{0,40}(?:都|一律)"),
    ("再", r"(?:不要|别|不许|请勿|不用|不必|不需要)再"),
    ("喜欢|偏好|倾向", r"我(?:更|比较|一向|平时|通常|一般|还是)(?:更|比较)?(?:喜欢|偏好|倾向)|我(?:偏好|不喜欢你)"),
    ("希望你", r"我(?:不希望你|希望你(?:以后|每次|始终|都|总))"),
    ("记住|牢记|谨记", r"(?:^|[，,；;：:])(?:请|你要)?(?:记住|牢记|谨记)"),
    ("叫我|称呼我", r"(?:^|[，,]|请|可以|就)(?:叫|称呼)我(?!们|去|来|过)"),
    ("接下来|之后", r"(?:接下来|之后)的(?:对话|回答|回复|聊天)(?:中|里)"),
    ("所有|每个|每条", r"(?:所有|每个|每条)(?:回答|回复|答案)(?:都|必须|要)"),
)
_WISHES = tuple((tuple(words.split("|")), re.compile(pattern, re.IGNORECASE)) for words, pattern in _ROWS)
_WORDS = tuple({word: None for words, _ in _WISHES for word in words})

#: What users plan to do themselves. Example: From now on I'll run every day.
_PLAN = re.compile(
    r"\b(?:i|we)(?:'ll| will)\b.*\bfrom \w+ on|\bfrom \w+ on(?:wards?)?,?\s(?:i|we)\b(?!'d| would| want you)"
    r"|从(?:现在|今天|此).{0,6}[我咱]们?(?:要|会|打算|想|得|就)",
    re.IGNORECASE,
)
#: A question is not a wish, unless it politely asks for one.
_POLITE = re.compile(
    r"\b(?:can|could|would|will) you\b.*\b(?:always|never|from now on)\b|\b(?:always|never|from now on)\b.*\bplease\b"
    r"|(?:能不能|可以|能否|可否|能).{0,12}(?:以后|每次|始终|一直|总是)|(?:以后|每次).{0,20}(?:好吗|可以吗|行吗)",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"^[^\S\n]*(`{3,}|~{3,}).*?(?:^[^\S\n]*\1|\Z)"  # code
    r"|^[^\S\n]*>.*?$"  # lines that are quoted
    r"|<([A-Za-z][\w-]{0,40})[^<>\n]{0,200}>.*?(?:</\2>|\Z)"  # pasted markup
    r'|"[^"\n]{12,}"|“[^”\n]{4,}”|「[^」\n]{4,}」|『[^』\n]{4,}』|`[^`\n]+`',
    re.DOTALL | re.MULTILINE,
)
_SENTENCE = re.compile(r"[^\n.!?。！？；]+(?:[.!?](?!\s|$)[^\n.!?。！？；]*)*[.!?。！？；]*[\"'”’)\]]*")
_ITEM = re.compile(r"[^\S\n]*(?:[-*+•]|\d{1,2}[.)、])[^\S\n]+\S")


@lru_cache(maxsize=4_096)
def wishes_in(text: str) -> tuple[str, ...]:
    """Return the standing wishes in a user's text, word for word; none if there are so many that they must be pasted.

    Example: "Thanks! From now on answer in German. What is a monad?" -> ("From now on answer in German.",)
    """
    looked_at = (text,) if len(text) <= 2 * EDGE else (text[:EDGE], text[-EDGE:])
    found = tuple(wish for part in looked_at for wish in _wishes(part))
    return found if len(found) <= MOST_OF_ONE else ()


def _wishes(text: str) -> Iterator[str]:
    own = text.replace("’", "'")
    lower = own.lower()
    if not any(word in lower for word in _WORDS):
        return
    own = _QUOTED.sub(_masked, own)
    for found in _SENTENCE.finditer(own):
        sentence = found[0].rstrip()
        if not SHORTEST <= len(sentence) <= LONGEST or not _is_wish(sentence.lstrip()):
            continue
        end = found.start() + len(sentence)
        wish = text[found.start() : end].strip()
        yield _with_items(wish, own[end:]) if sentence.endswith((":", "：")) else wish


def _is_wish(sentence: str) -> bool:
    lower = sentence.lower()
    rows = (pattern for words, pattern in _WISHES if any(word in lower for word in words))
    if not any(pattern.search(sentence) for pattern in rows):
        return False
    if sentence.endswith(("?", "？")):
        return _POLITE.search(sentence) is not None
    return _PLAN.search(sentence) is None


def _masked(found: re.Match[str]) -> str:
    """Return a mask of the same length and lines, without the quoted words."""
    return re.sub(r"[^\n]", MASK, found[0])


def _with_items(wish: str, after: str) -> str:
    """Return the wish with the items of the list that it introduces."""
    held = [wish]
    for line in after.lstrip("\n").split("\n")[:MOST_ITEMS]:
        if _ITEM.match(line) is None or MASK in line or sum(map(len, held)) + len(line) > LONGEST:
            break
        held.append(line.rstrip())
    return "\n".join(held)
