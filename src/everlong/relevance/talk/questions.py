"""Find which session and whose words a question is about."""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from everlong.core import Role
from everlong.relevance.sessions import Speaker

__all__ = ["is_reply", "session_named", "speakers_asked_about", "without_names"]

_TALK = r"(?:conversation|chat|talk|session|meeting|time we)"
_FIRST = re.compile(
    rf"\bfirst {_TALK}\b|\bwe first (?:talk|spoke|chat|met)|(?:第一次|最初|一开始|最早)(?:对话|聊|谈|交流|见面)",
    re.IGNORECASE,
)
_LAST = re.compile(rf"\b(?:last|previous) {_TALK}\b|上一?次(?:我们)?(?:对话|聊|谈|交流|见面)", re.IGNORECASE)


def session_named(question: str, last: int) -> int | None:
    """Return the session that a question calls the first or the last; None if it names neither.

    Example: "What was our first chat about?" -> 0
    """
    if _FIRST.search(question):
        return 0
    return last if _LAST.search(question) else None


_CLAUSE = re.compile(r"[,;:.!?，；：。！？\n]+")
#: Phrases whose pronouns do not say whose words are meant.
_POLITE = re.compile(
    r"\b(?:can|could|would|will)\s+you\s+(?:(?:please|also|maybe|kindly|just|quickly)\s+)*\w+(?:\s+me)?\b"
    r"|\bplease\s+\w+(?:\s+me)?\b"
    r"|\b(?:do|did)\s+you\s+(?:(?:still|even|happen\s+to)\s+)*(?:remember|remind|recall|know)\b"
    r"|(?<!did )\byou(?:\s+would|'d)?\s+(?:recommend|suggest|advise|propose|think)\b"  # asks for advice now, not then
    r"|\b(?:remind|tell|show|give)\s+me\b|\bi\s+(?:wonder|forgot|want|need)\b"
    r"|请?你还?(?:记得|知道|能|可以|会|觉得|认为)|请你|(?:告诉|提醒|帮)我|我(?:想|忘)",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?P<asking>i|me|my|mine)\b|\b(?:you|your|yours)\b|(?P<asking_zh>我(?!们))|[你您](?!们)", re.IGNORECASE
)


def without_names(question: str, speakers: Iterable[Speaker]) -> str:
    """Return the question without the speakers' names: speakers rarely say their own names."""
    for _, name in speakers:
        question = _name_pattern(name).sub(" ", question) if name else question
    return question


def speakers_asked_about(question: str, speakers: Collection[Speaker]) -> frozenset[Speaker]:
    """Return the speakers whose words the question is about; empty if that is unclear or would be all of them.

    Example: "What did you recommend?" -> the assistant
    """
    named = {name for _, name in speakers if name and _name_pattern(name).search(question)}
    if named:
        meant = frozenset(speaker for speaker in speakers if speaker[1] in named)
    else:
        role = _role_meant(question)
        meant = frozenset(speaker for speaker in speakers if speaker[0] is role)
    return meant if len(meant) < len(speakers) else frozenset()


def _role_meant(question: str) -> Role | None:
    """Return the role of the first pronoun in the last clause with one: "where I was, what did you say" means "you"."""
    for clause in reversed(_CLAUSE.split(_POLITE.sub(" ", question))):
        pronoun = _PRONOUN.search(clause)
        if pronoun:
            return Role.USER if pronoun["asking"] or pronoun["asking_zh"] else Role.ASSISTANT
    return None


@lru_cache(maxsize=1_000)
def _name_pattern(name: str) -> re.Pattern[str]:
    edge = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
    return re.compile(f"{edge[0]}{re.escape(name)}{edge[1]}", re.IGNORECASE)


_OPENING = (
    r"thanks?|thank you|thx|great|perfect|excellent|awesome|amazing|wonderful|brilliant|nice|cool|lovely|good|got it"
    r"|ok|okay|alright|all right|sure|fine|right|exactly|agreed|deal|understood|makes sense|interesting|wow"
    r"|yes|yeah|yep|no|nope|nah|not (?:quite|really|sure)|actually|wait|hmm+|but|and|or|so|also|then|instead"
    r"|(?:that|this|it|those|these|they)(?:'s| is| was| are| looks?| sounds?| works?| doesn't| does not| didn't| won't)"
    r"|i (?:like|love|agree|disagree|see|don't (?:agree|understand|get))|what about|how about|why not|go on|continue"
)
_OPENING_ZH = (
    r"谢谢|多谢|感谢|可以[的了吧]|没问题|不错|太好了|明白|懂了|是的|不是|不对|不行|不用|没有|但是?|那么?|然后|还有|而且|另外|继续|接着|再[来给换]|这[个样些]"
    r"|等等|(?:好|行|对|嗯+|哦+)(?=[的吧啊呀了呢]|\W|$)"
)
_NUMBERED = r"(?:first|second|third|fourth|fifth|last|other|latter|former)"
#: A reply begins by taking up what was said, or points to a part of it.
_REPLY = re.compile(
    rf"^\W*(?:(?:{_OPENING})\b|{_OPENING_ZH})"
    r"|\byou(?:'ve)? (?:just|already) (?:said|wrote|gave|suggested|mentioned|listed|showed)\b"
    rf"|\byour (?:previous|{_NUMBERED}) (?:answer|reply|message|point|suggestion|option|idea|example)\b"
    rf"|\bthe {_NUMBERED} (?:one|option|idea|point|suggestion|version)s?\b"
    r"|上面|刚才|刚刚|前面|你(?:刚|上面)?(?:说|提到|列|给)的|第[一二三四五]个|后者|前者",
    re.IGNORECASE,
)


def is_reply(message: str) -> bool:
    """Whether a message replies to what was said just before it, and so means little without it.

    Example: "Great, I like the second one. Write it as an email." -> True
    """
    return _REPLY.search(message.replace("’", "'")) is not None
