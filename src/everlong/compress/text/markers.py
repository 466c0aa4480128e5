"""The texts that replace what was left out, by language.

Each says what is missing, how much, and the reference of the original, and how to recall it if the model can
(`Task.recall`). Markers are never put into the arguments of a call.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from everlong.compress.draft import Task
from everlong.compress.text.boundaries import Cut, tail_start
from everlong.core import Ref
from everlong.relevance import in_language

__all__ = [
    "GAP",
    "gap_in_message",
    "gap_in_result",
    "gaps_in_message",
    "is_placeholder",
    "parts_shown",
    "picture_stub",
    "piece_at",
    "result_placeholder",
    "rounds_left_out",
]

GAP = "[…]"  # marks further gaps in a text; the first gap has the full marker
LONGEST_NAME = 200  # characters of a path, an address or a tool's name inside a marker
LONGEST_QUESTION = 80  # characters of a listed question
LONGEST_PLACEHOLDER = 1_000  # characters; a longer text is a real result, whatever its beginning


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of one language, as format strings."""

    lines: str
    characters: str
    message: str
    gaps: str
    parts: str
    piece: str
    result: str
    tokens: str
    picture: str
    pictures: str
    unnamed: str
    ref: str
    recall: str
    comma: str
    rounds: str


WORDS = {
    "en": Words(
        lines="{left} lines left out here, about {tokens} tokens; {shown} of {total} lines shown; "
        "continue at line {next}",
        characters="{left} characters left out here, about {tokens} tokens; {shown} of {total} characters shown; "
        "the cut is in line {next} of {lines}",
        message="{left} of {total} characters left out here",
        gaps="{left} of {total} characters left out here and at […]",
        parts="excerpts: {shown} of {total} lines, about {tokens} tokens left out",
        piece="[… line {line}]",
        result="result of {tool} left out: {what}",
        tokens="about {tokens} tokens",
        picture="image left out: {what}",
        pictures="with {count} image(s)",
        unnamed="a tool",
        ref="; ref {ref}",
        recall='; {tool}("{ref}") returns it',
        comma=", ",
        rounds="{count} earlier question(s) and their answers do not fit and are not shown; the newest of them:",
    ),
    "zh": Words(
        lines="已省略 {left} 行，约 {tokens} tokens；共 {total} 行，显示 {shown} 行；从第 {next} 行继续",
        characters="已省略 {left} 字符，约 {tokens} tokens；共 {total} 字符，显示 {shown} 字符；"
        "截断处在第 {next} 行（共 {lines} 行）",
        message="已省略 {left} 字符，共 {total} 字符",
        gaps="此处及 […] 处共省略 {left} 字符，全文 {total} 字符",
        parts="摘录：共 {total} 行，显示 {shown} 行，约省略 {tokens} tokens",
        piece="[… 第 {line} 行]",
        result="工具 {tool} 的结果已省略：{what}",
        tokens="原始长度约 {tokens} tokens",
        picture="图片已省略：{what}",
        pictures="含 {count} 张图片",
        unnamed="（未知）",
        ref="；引用 {ref}",
        recall='；可用 {tool}("{ref}") 取回',
        comma="，",
        rounds="较早的 {count} 轮对话放不下，此处未显示；其中最近的提问：",
    ),
}

PLACEHOLDER = re.compile(r"\[(?:result of [^\n]+ left out: |工具 [^\n]+ 的结果已省略：)[^\n]*\]")


def gap_in_result(cut: Cut, tokens: int, ref: Ref, task: Task) -> str:
    """Return the marker between the head and the tail of a tool result; `tokens` are left out."""
    words = _words(task)
    shown, total = cut.lines_shown, cut.lines
    if cut.on_lines:
        what = words.lines.format(left=total - shown, tokens=tokens, shown=shown, total=total, next=cut.next_line)
    else:
        kept, whole = cut.characters, len(cut.text)
        what = words.characters.format(
            left=whole - kept, tokens=tokens, shown=kept, total=whole, next=cut.next_line, lines=total
        )
    return _marker(what, ref, task)


def gap_in_message(cut: Cut, ref: Ref, task: Task) -> str:
    """Return the marker between the head and the tail of a message."""
    total = len(cut.text)
    return _marker(_words(task).message.format(left=total - cut.characters, total=total), ref, task)


def gaps_in_message(kept: int, total: int, ref: Ref, task: Task) -> str:
    """Return the marker for the first gap in a message that keeps `kept` of its `total` characters."""
    return _marker(_words(task).gaps.format(left=total - kept, total=total), ref, task)


def parts_shown(shown: int, total: int, tokens: int, ref: Ref, task: Task) -> str:
    """Return the line above the excerpts that replace a text; `shown` of `total` lines, `tokens` are left out."""
    return _marker(_words(task).parts.format(shown=shown, total=total, tokens=tokens), ref, task)


def piece_at(line: int, task: Task) -> str:
    """Return the line before an excerpt that does not directly follow the previous one."""
    return _words(task).piece.format(line=line)


def result_placeholder(tool: str, path: str, tokens: int, pictures: int, ref: Ref, task: Task) -> str:
    """Return the line that replaces a tool result."""
    words = _words(task)
    facts = [_one_line(path)] if path else []
    facts.append(words.tokens.format(tokens=tokens))
    if pictures:
        facts.append(words.pictures.format(count=pictures))
    named = _one_line(tool) or words.unnamed
    return _marker(words.result.format(tool=named, what=words.comma.join(facts)), ref, task)


def is_placeholder(text: str) -> bool:
    """Return whether the text is only a placeholder for a tool result, in any language."""
    return len(text) <= LONGEST_PLACEHOLDER and PLACEHOLDER.fullmatch(text) is not None


def picture_stub(facts: tuple[str, ...], ref: Ref, task: Task) -> str:
    """Return the text that replaces an image; `facts` describe it. Example: ("image/png", "640x480", "12 kB")"""
    words = _words(task)
    return _marker(words.picture.format(what=words.comma.join(map(_one_line, facts))), ref, task)


def rounds_left_out(count: int, questions: Sequence[tuple[str, Ref]], task: Task) -> str:
    """Return the text that replaces whole rounds: how many, and the given questions with their references."""
    lines = (f"- {_one_line(text)[:LONGEST_QUESTION]} {_marker('', ref, task)}" for text, ref in questions)
    return "\n".join((f"[{_words(task).rounds.format(count=count)}]", *lines))


def _words(task: Task) -> Words:
    return in_language(WORDS, task.language)


def _marker(what: str, ref: Ref, task: Task) -> str:
    words = _words(task)
    recall = words.recall.format(tool=task.recall, ref=ref) if task.recall else ""
    return f"[{f'{what}{words.ref.format(ref=ref)}{recall}'.lstrip('；; ')}]"


def _one_line(text: str) -> str:
    """Return a name on one line, for a marker; a long one keeps its end, where paths differ."""
    flat = " ".join(text.encode("utf-8", "replace").decode().split())  # JSON escapes may leave a lone surrogate
    return flat if len(flat) <= LONGEST_NAME else "…" + flat[tail_start(flat, LONGEST_NAME) :]
