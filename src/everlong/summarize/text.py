"""A text split into sentences, and texts shortened at the end of a sentence.

Sentences end at . ! ? 。！？ and at line ends; never inside a name, a number or code. `framed` puts a text that is
data between tags that nothing inside can close.
"""

import re
from collections.abc import Callable

from everlong.core import ref_of

__all__ = [
    "ELLIPSIS",
    "PIECE",
    "UNSEEN",
    "clipped",
    "counted_words",
    "end_of_piece",
    "framed",
    "harmless",
    "in_pieces",
    "one_line",
    "plain_key",
    "sentences_of",
    "within_words",
]

ELLIPSIS = "…"
#: Colours and titles of terminals; characters without a form, or that turn the direction of writing. Line ends stay.
UNSEEN = re.compile(
    r"\x1b\[[0-?]{0,40}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|[\x00-\x08\x0e-\x1f\x7f-\x9f]"
    r"|[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    r"|(?<=[!-~])[\u200c\u200d](?=[!-~])"
)
_END = re.compile(r"(?<=[。！？；])(?=.)|(?<=[.!?][\"')\]])\s+|(?<=[.!?])\s+|\n+")
#: After these a dot ends no sentence.
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|mr|mrs|dr|st)\.$", re.IGNORECASE)
#: A number or letter of a list, alone before its dot.
_NUMBERED = re.compile(r"\W{0,4}(?:\d{1,3}|[A-Za-z])\.")
LONGEST_ABBREVIATION = 8  # characters
_CHINESE = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"[^\s\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_UNIT = re.compile(r"[^\s\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]")
CHARACTERS_FOR_A_WORD = 2  # 200 words are 400 Chinese characters


PIECE = 32_768  # characters that are searched at once: no other thread waits longer than for these


def end_of_piece(text: str, start: int) -> int:
    """The end of the piece of a long text that begins here: after a line end if its second half has one."""
    end = start + PIECE
    if end >= len(text):
        return len(text)
    return text.rfind("\n", start + PIECE // 2, end) + 1 or end


def in_pieces(change: Callable[[str], str], text: str) -> str:
    """The text with a change made piece by piece, for changes that know no line but their own."""
    changed = []
    start = 0
    while start < len(text):
        end = end_of_piece(text, start)
        changed.append(change(text[start:end]))
        start = end
    return "".join(changed)


def sentences_of(text: str) -> list[str]:
    """The sentences, bare of the space around them.

    Example: "Fixed a.py, e.g. the loop. 好了。再见" -> ["Fixed a.py, e.g. the loop.", "好了。", "再见"]
    """
    sentences: list[str] = []
    for piece in _END.split(text):
        bare = piece.strip()
        if not bare:
            continue
        last = sentences[-1] if sentences else ""
        if _ABBREVIATION.search(last[-LONGEST_ABBREVIATION:]) or _NUMBERED.fullmatch(last):
            sentences[-1] = f"{last} {bare}"
        else:
            sentences.append(bare)
    return sentences


def one_line(text: str) -> str:
    """The text without line ends and runs of space, so that it can stand as one item of a list."""
    return " ".join(text.split())


def plain_key(text: str) -> str:
    """The key by which two texts count as the same: letters and digits only. Example: "- Use `a.py`." -> "useapy" """
    return "".join(character for character in text.lower() if character.isalnum())


def clipped(text: str, most: int) -> str:
    """At most that many characters: whole sentences if the first fits, else its beginning and a mark.

    Example: ("One. Two is longer.", 10) -> "One."
    """
    if len(text) <= most:
        return text
    shortened = ""
    for sentence in sentences_of(text):
        longer = f"{shortened}{_joint(shortened)}{sentence}"
        if len(longer) > most:
            break
        shortened = longer
    return shortened or text[: max(0, most - len(ELLIPSIS))].rstrip() + (ELLIPSIS if most > 0 else "")


def counted_words(text: str) -> float:
    """The length of a text in words; two Chinese characters count as one. Example: "修复 the bug" -> 3.0"""
    return len(_WORD.findall(text)) + len(_CHINESE.findall(text)) / CHARACTERS_FOR_A_WORD


def within_words(text: str, most: int) -> str:
    """The text with at most so many words, cut after a line or sentence if one ends in its second half."""
    if counted_words(text) <= most:
        return text
    used, end = 0.0, 0
    for unit in _UNIT.finditer(text):
        used += 1 / CHARACTERS_FOR_A_WORD if _CHINESE.match(unit[0]) else 1
        if used > most:
            break
        end = unit.end()
    cut = text[:end]
    stops = [stop.end() for stop in re.finditer(r"[.!?](?=\s)|[。！？]|\n", cut)]
    return cut[: stops[-1]].rstrip() if stops and stops[-1] > len(cut) // 2 else cut.rstrip()


def _joint(before: str) -> str:
    return "" if not before or before[-1] in "。！？；" else " "


#: Tags that close or open frames of ours or of other programs, and the control marks of models' chat templates.
FRAME_TAGS = re.compile(
    r"<(?=\s*/?\s*(?:background|conversation|transcript|summary|previous-summary|system|untrusted|instructions?|user"
    r"|assistant|human|context|data|tool_|function_|title)[\w-]*\b)|<(?=[|｜])|(?<=[|｜])>"
    r"|\[(?=/?(?:INST|SYS|TOOL_CALLS)\])|<(?=</?SYS>>)",
    re.IGNORECASE,
)
MARK_LENGTH = 8  # hex digits
LOOKALIKE = {"<": "‹", ">": "›", "[": "［"}


def harmless(text: str) -> str:
    """The text with the tags of frames defused. Example: "</background-1f> SYSTEM" -> "‹/background-1f> SYSTEM" """
    return FRAME_TAGS.sub(lambda sign: LOOKALIKE[sign[0]], text)


def framed(text: str, name: str, opening: str = "") -> str:
    """The text as data between tags of that name. Equal content gives equal bytes."""
    inside = harmless(text)
    mark = ref_of(inside)[:MARK_LENGTH]
    while mark in inside:  # 32 bits can be met by chance or by trying; then another mark is used
        mark = ref_of(mark)[:MARK_LENGTH]
    lead = f"{opening}\n\n" if opening else ""
    return f"<{name}-{mark}>\n{lead}{inside}\n</{name}-{mark}>"
