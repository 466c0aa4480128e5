"""Write a conversation as data for another model: framed, clamped, without images, reasoning and secrets.

Nothing inside can close the frame or imitate a line of another speaker: lines that look like ours are quoted. Invisible
characters are removed before secrets are searched. A history that is too long for one call is split into chunks: whole
steps, in order, nothing left out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from everlong.core import (
    CallId,
    History,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
    steps_of,
)
from everlong.relevance import in_language
from everlong.summarize.secrets.redaction import redacted
from everlong.summarize.text import UNSEEN, framed, in_pieces
from everlong.tokens import Counter

__all__ = ["Line", "chunks", "clamped", "lines_of", "read_transcript", "shown", "transcript"]

TAG = "conversation"
#: The most characters of one result and of one message; tried in order until the whole fits.
CLAMPS = ((8_000, 40_000), (3_000, 20_000), (1_200, 8_000), (500, 3_000), (200, 1_200), (80, 400), (40, 120))
SPEAKERS = {
    "en": {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: "tool"},
    "zh": {Role.SYSTEM: "系统", Role.USER: "用户", Role.ASSISTANT: "助手", Role.TOOL: "工具"},
}
#: The most characters of one result and of one message when a chunk is measured.
RESULT, MESSAGE = 3_000, 20_000
FRAME = 32  # tokens of the two tags around a chunk
LINE_END = 1  # token between two steps
PICTURE = "[image]"
LONGEST_NAME = 64  # characters of a tool's name, or of the kind of a part
SHORTEST = 16  # characters; below that nothing is left to cut
SPARE = 0.95  # of the limit is the aim: the middle of a text may have fewer tokens than its ends

_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BLANK = re.compile(r"\s{64,}")
_SPEAKER = re.compile(
    r"^(?=[ \t\u3000]{0,20}[\[［【](?:\s{0,4}(?:user|human|assistant|system|developer|tool|用户|助手|系统|工具)\b"
    r"|[^\]\n]{0,80}→))",
    re.IGNORECASE | re.MULTILINE,
)
_NOT_IN_NAME = re.compile(r"[^\w.:/-]+")
_FRAMED = re.compile(rf"<({TAG}-\w+)>\n(.*?)\n?</\1>", re.DOTALL)
_SPOKEN = re.compile(r"^\[([^\]\n]{1,140})\] ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Line:
    """One part of a message: speaker and cleaned text. Results and calls are clamped more than other text."""

    who: str
    text: str
    result: bool = False


def transcript(messages: Sequence[Message], *, counter: Counter, limit: int, language: str) -> str:
    """Return the conversation in its frame, shortened to `limit` tokens if possible."""
    lines = lines_of(messages, language)
    inside = ""
    for result, message in CLAMPS:
        inside = shown(lines, result=result, message=message)
        text = framed(inside, TAG)
        if counter.text(text) <= limit:
            return text
    return _cut_to(inside, counter, limit)


def read_transcript(text: str) -> list[tuple[Role, str]]:
    """Return who said what in the transcript inside a text, in order; [] if there is none. Calls are left out.

    Example: "<conversation-1f>\\n[user] hi\\n[bash →] ok\\n</conversation-1f>" -> [(USER, "hi"), (TOOL, "ok")]
    """
    found = _FRAMED.search(text)
    if found is None:
        return []
    roles = {name: role for names in SPEAKERS.values() for role, name in names.items()}
    pieces = _SPOKEN.split(found[2])
    said: list[tuple[Role, str]] = []
    for who, words in zip(pieces[1::2], pieces[2::2], strict=True):
        role = Role.TOOL if who.endswith("→") else roles.get(who)
        if role is not None:
            said.append((role, words.strip("\n")))
    return said


def chunks(messages: Sequence[Message], *, counter: Counter, room: int) -> list[History]:
    """Return chunks whose transcripts fit into `room` tokens, as few as possible, with the steps in order.

    A step that is too large becomes its own chunk; its transcript is shortened.
    Example: ten steps of 400 tokens, room 1,000 -> five chunks of two steps
    """
    parts: list[History] = []
    part: list[Message] = []
    used = FRAME
    for step in steps_of(messages):
        members = messages[step.start : step.stop]
        size = LINE_END + counter.text(shown(lines_of(members, "en"), result=RESULT, message=MESSAGE))
        if part and used + size > room:
            parts.append(tuple(part))
            part, used = [], FRAME
        part += members
        used += size
    return [*parts, tuple(part)] if part else parts


def lines_of(messages: Sequence[Message], language: str) -> list[Line]:
    """Return a line for each part except reasoning, in order.

    Example: a call of `bash` -> Line("assistant → bash", …)
    """
    speakers = in_language(SPEAKERS, language)
    names: dict[CallId, str] = {}
    lines = (_line(part, speakers[message.role], speakers, names) for message in messages for part in message.parts)
    return [line for line in lines if line is not None]


def _line(part: Part, who: str, speakers: dict[Role, str], names: dict[CallId, str]) -> Line | None:
    match part:
        case Text(text):
            return Line(who, _plain(text)) if text.strip() else None
        case ToolCall(call, name, arguments):
            names[call] = _name(name)
            return Line(f"{who} → {names[call]}", _plain(arguments), result=True)
        case ToolResult(call, content, name):
            tool = _name(name) or names.get(call, "") or speakers[Role.TOOL]
            return Line(f"{tool} →", "\n".join(map(_inner, content)), result=True)
        case Image():
            return Line(who, PICTURE)
        case Opaque(kind):
            return Line(who, f"[{_name(kind)}]")
        case Reasoning():
            return None
        case _:
            assert_never(part)


def _inner(part: ResultPart) -> str:
    match part:
        case Text(text):
            return _plain(text)
        case Image():
            return PICTURE
        case Opaque(kind):
            return f"[{_name(kind)}]"
        case _:
            assert_never(part)


def shown(lines: Sequence[Line], *, result: int, message: int) -> str:
    """Return the lines as text, with at most `result` characters of a result and `message` of a message."""
    return "\n".join(f"[{line.who}] {clamped(line.text, result if line.result else message)}" for line in lines)


def clamped(text: str, most: int) -> str:
    """Return the beginning and the end of a text, and how much is missing between them.

    Example: clamped("a" * 90 + "z" * 10, 30) -> "aaaaaaaaaaaaaaaaaaaa […70…] zzzzzzzzzz"
    """
    if len(text) <= most:
        return text
    head = most * 2 // 3
    return f"{text[:head]} […{len(text) - most:,}…] {text[len(text) - (most - head) :]}"


def _plain(text: str) -> str:
    return in_pieces(_quoted, redacted(in_pieces(_seen, text)))


def _seen(text: str) -> str:
    return UNSEEN.sub("", _BREAKS.sub("\n", text))


def _quoted(text: str) -> str:
    return _SPEAKER.sub("| ", _BLANK.sub(_shorter_blank, text))


def _shorter_blank(blank: re.Match[str]) -> str:
    return "\n\n" if "\n" in blank[0] else " "


def _name(name: str) -> str:
    return _NOT_IN_NAME.sub("_", redacted(name))[:LONGEST_NAME]


def _cut_to(inside: str, counter: Counter, limit: int) -> str:
    """Return the framed beginning and end of the whole, shortened until it fits."""
    most = len(inside)
    while True:
        text = framed(clamped(inside, most), TAG)
        size = counter.text(text)
        if size <= limit or most <= SHORTEST:
            return text
        most = max(SHORTEST, min(int(most * SPARE * limit / size), most * 3 // 4))
