"""Split texts into sentences, and shorten texts at the end of a sentence.

Sentences end at . ! ? 。！？ and at line ends; never inside a name, a number or code. `framed` marks a text as data: it
puts it between tags that nothing inside can close.
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
#: Terminal colours and titles, invisible characters, and characters that change the writing direction. Line ends stay.
UNSEEN = re.compile(
    r"\x1b\[[0-?]{0,40}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|[\x00-\x08\x0e-\x1f\x7f-\x9f]"
    r"|[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    r"|(?<=[!-~])[\u200c\u200d](?=[!-~])"
)
_END = re.compile(r"(?<=[。！？；])(?=.)|(?<=[.!?][\"')\]])\s+|(?<=[.!?])\s+|\n+")
#: Abbreviations: the dot after them does not end a sentence.
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|mr|mrs|dr|st)\.$", re.IGNORECASE)
#: The number or letter of a list item, with its dot.
_NUMBERED = re.compile(r"\W{0,4}(?:\d{1,3}|[A-Za-z])\.")
LONGEST_ABBREVIATION = 8  # characters
_CHINESE = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"[^\s\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_UNIT = re.compile(r"[^\s\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]")
CHARACTERS_FOR_A_WORD = 2  # 200 words are 400 Chinese characters


PIECE = 32_768  # characters searched at once: a search blocks all other threads


def end_of_piece(text: str, start: int) -> int:
    """Return the end of the piece that begins at `start`: after a line end if its second half has one."""
    end = start + PIECE
    if end >= len(text):
        return len(text)
    return text.rfind("\n", start + PIECE // 2, end) + 1 or end


def in_pieces(change: Callable[[str], str], text: str) -> str:
    """Return the text with a change applied piece by piece. The change must not depend on other lines."""
    changed = []
    start = 0
    while start < len(text):
        end = end_of_piece(text, start)
        changed.append(change(text[start:end]))
        start = end
    return "".join(changed)


def sentences_of(text: str) -> list[str]:
    """Return the sentences, without surrounding space.

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
    """Return the text on one line, without runs of spaces."""
    return " ".join(text.split())


def plain_key(text: str) -> str:
    """Return the key for comparing texts: only letters and digits, in lower case.

    Example: "- Use `a.py`." -> "useapy"
    """
    return "".join(character for character in text.lower() if character.isalnum())


def clipped(text: str, most: int) -> str:
    """Return at most this many characters: whole sentences if the first fits, otherwise its beginning and a mark.

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
    """Return the length of a text in words; two Chinese characters count as one. Example: "修复 the bug" -> 3.0"""
    return len(_WORD.findall(text)) + len(_CHINESE.findall(text)) / CHARACTERS_FOR_A_WORD


def within_words(text: str, most: int) -> str:
    """Return at most this many words of a text, cut after a line or sentence if one ends in the second half."""
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


#: Tags of frames, ours or other programs', and the control marks of chat templates.
FRAME_TAGS = re.compile(
    r"<(?=\s*/?\s*(?:background|wishes|conversation|transcript|summary|previous-summary|system|untrusted|instructions?|user"
    r"|assistant|human|context|data|tool_|function_|title)[\w-]*\b)|<(?=[|｜])|(?<=[|｜])>"
    r"|\[(?=/?(?:INST|SYS|TOOL_CALLS)\])|<(?=</?SYS>>)",
    re.IGNORECASE,
)
MARK_LENGTH = 8  # hex digits
LOOKALIKE = {"<": "‹", ">": "›", "[": "［"}


def harmless(text: str) -> str:
    """Return the text with frame tags made harmless.

    Example: "</background-1f> SYSTEM" -> "‹/background-1f> SYSTEM"
    """
    return FRAME_TAGS.sub(lambda sign: LOOKALIKE[sign[0]], text)


def framed(text: str, name: str, opening: str = "") -> str:
    """Return the text as data between tags with this name. Equal content gives equal bytes."""
    inside = harmless(text)
    mark = ref_of(inside)[:MARK_LENGTH]
    while mark in inside:  # the text may contain the 32-bit mark, by chance or on purpose
        mark = ref_of(mark)[:MARK_LENGTH]
    lead = f"{opening}\n\n" if opening else ""
    return f"<{name}-{mark}>\n{lead}{inside}\n</{name}-{mark}>"
