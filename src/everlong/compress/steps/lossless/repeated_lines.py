"""Write repeated lines once, with a count.

Identical lines (or blocks of up to five lines) are written once with the number of repeats, and `expand` restores the
text. Of log lines that differ only in numbers, times and hashes, the first and the last of a run stay; the marker
between them has the reference of the whole. Numbers that distinguish success from failure matter: a line with another
status, exit code or number of errors ends a run. A line with a number or a name that the user asks for stays.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from everlong.compress.draft import Draft, Task
from everlong.compress.text.substitutes import Shorter, each_text, open_results, original, shorten
from everlong.core import Ref, Role, bytes_of
from everlong.relevance import in_language

__all__ = ["USUAL", "Repeats", "collapse", "expand", "repeated_lines"]

STEP = "repeated_lines"

LEAST_LEFT_OUT = 48  # characters; the marker costs about as much
LONGEST_LOG_LINE = 2_000  # characters; anything longer is data
LONGEST_QUESTION = 2_000  # characters at its end that count; a longer one is a paste
MOST_ASKED = 8  # lines of a run that stay because of the user's question


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """How long a run must be to be shortened; 0 switches that kind off."""

    #: Repeats of identical lines or blocks.
    exact: int = 4
    #: Log lines in a row that differ only in numbers.
    similar: int = 8
    #: The most lines of a repeated block.
    block: int = 5


USUAL = Repeats()


@dataclass(frozen=True, slots=True)
class _Words:
    line: str
    block: str
    similar: str


WORDS = {
    "en": _Words(
        line="[the line above {times} more times]",
        block="[the {lines} lines above {times} more times]",
        similar="[{lines} similar lines left out, only numbers differ; ref {ref}]",
    ),
    "zh": _Words(
        line="[上一行再重复 {times} 次]",
        block="[以上 {lines} 行再重复 {times} 次]",
        similar="[省略 {lines} 行相似内容，仅数字不同；引用 {ref}]",
    ),
}

REPEAT = re.compile(
    r"\[the (?:line|(\d+) lines) above (\d+) more times\]|\[(?:上一行|以上 (\d+) 行)再重复 (\d+) 次\]",
)
MARKER = re.compile(
    rf"^(?:{REPEAT.pattern}"
    r"|\[\d+ similar lines left out, only numbers differ; ref \w*\]|\[省略 \d+ 行相似内容，仅数字不同；引用 \w*\])$",
    re.MULTILINE,
)

#: Meaningful numbers stay, and the first digit of what may be an HTTP error; ids, hashes, other numbers and times are
#: masked.
NUMBERS = re.compile(
    r"(?P<telling>\b(?:HTTP/[\d.]+\"?|status|code|exit|returned|rc|errors?|fail(?:ed|ures?)?)[\"']?[ :=]{1,3}\d+"
    r"|(?:状态码?|退出码|错误|失败)[ :=：]{0,3}\d+"
    r"|\b\d+ (?:errors?|warnings?|fail(?:ed|ures?)?)\b)"
    r"|(?<![^\s\"])(?P<kind>[45])\d\d(?![^\s,;])"
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"
    r"|\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{6,}\b"
    r"|\d+(?:[.,:]\d+)*+",
    re.IGNORECASE,
)
#: The characters of numbers, times and hashes. Lines that differ without them are not similar.
OF_NUMBERS = b"0123456789abcdefABCDEFxX.,:-"
DIGIT = re.compile(r"\d")
#: What can identify a line in a question: a number of at least three digits, or a word with a digit.
ASKED = re.compile(r"\d{3,}|\b(?=\w*\d)(?=\w*[^\W\d])[\w-]{3,}\b")
WORD = re.compile(r"[^\W\d_]{3}")
CHINESE = re.compile(r"[\u3400-\u9fff]{2}")


class _Run(NamedTuple):
    """A run of lines from `start`: a block of `size` lines, `times` in a row, or `size` `similar` lines."""

    start: int
    size: int
    times: int = 1
    similar: bool = False


def repeated_lines(draft: Draft, task: Task, *, repeats: Repeats = USUAL, always: bool = False) -> Draft:
    """Write the repeated lines of every open tool result once."""
    if draft.total <= task.target and not always:
        return draft
    wanted = []
    # A message keeps its arrival form forever, but the question changes.
    asked = frozenset() if always else _asked_for(draft)
    for position, index, result in open_results(draft):
        _, ref = original(draft, position, index)
        said = each_text(result, partial(collapse, ref=ref, repeats=repeats, language=task.language, asked=asked))
        if said is not None:
            before, after = result.text.count("\n") + 1, said.text.count("\n") + 1
            reason = f"repeated lines kept once: {before:,} lines in {after:,}"
            wanted.append(Shorter(position, index, said, reason))
    return shorten(draft, task, STEP, wanted)


def _asked_for(draft: Draft) -> frozenset[str]:
    """Return the numbers, and names with digits, in the user's last message."""
    spoken = (message for message in reversed(draft.history) if message.role is Role.USER and message.text)
    last = next(spoken, None)
    return frozenset(ASKED.findall(last.text[-LONGEST_QUESTION:])) if last is not None else frozenset()


def collapse(
    text: str, *, ref: Ref, repeats: Repeats = USUAL, language: str = "en", asked: frozenset[str] = frozenset()
) -> str | None:
    """Return the text with its runs shortened; None if it has no runs, or already has such markers.

    Similar lines with something that is `asked` for stay.

    Example: "a line\\n" * 50 + "end" -> "a line\\n[the line above 49 more times]\\nend"
    """
    if MARKER.search(text):
        return None
    lines = text.split("\n")
    words = in_language(WORDS, language)
    said: list[str] = []
    shapes = bytes_of(text).translate(None, OF_NUMBERS).split(b"\n")
    for run in _with_similar(lines, shapes, _exact_runs(lines, repeats), repeats.similar):
        said += _said(run, lines, words, ref, asked)
    return "\n".join(said) if len(said) < len(lines) else None


def expand(text: str) -> str:
    """Undo `collapse`, except for runs of similar lines."""
    lines: list[str] = []
    for line in text.split("\n"):
        marker = REPEAT.fullmatch(line)
        if marker is None:
            lines.append(line)
        else:
            size, times = marker[1] or marker[3] or 1, marker[2] or marker[4]
            lines += lines[-int(size) :] * int(times)
    return "\n".join(lines)


def _said(run: _Run, lines: Sequence[str], words: _Words, ref: Ref, asked: frozenset[str]) -> list[str]:
    block = list(lines[run.start : run.start + run.size])
    if run.similar:
        kept = [line for line in block[1:-1] if asked and not asked.isdisjoint(ASKED.findall(line))][:MOST_ASKED]
        left_out = run.size - 2 - len(kept)
        return [block[0], words.similar.format(lines=left_out, ref=ref), *kept, block[-1]] if left_out > 0 else block
    if run.times > 1:
        form = words.line if run.size == 1 else words.block
        return [*block, form.format(lines=run.size, times=run.times - 1)]
    return block


def _exact_runs(lines: Sequence[str], repeats: Repeats) -> Iterator[_Run]:
    """Yield the lines as runs, most of them of one line."""
    at = 0
    while at < len(lines):
        run = _exact_run(lines, at, repeats) or _Run(at, 1)
        yield run
        at += run.size * run.times


def _exact_run(lines: Sequence[str], at: int, repeats: Repeats) -> _Run | None:
    """Return the run of repeats that begins here, or None. A run that is too short ends soon, so this is cheap."""
    if not repeats.exact or lines[at] not in lines[at + 1 : at + 1 + repeats.block]:
        return None
    for size in range(1, repeats.block + 1):
        stop = at + size
        while stop < len(lines) and lines[stop] == lines[stop - size]:
            stop += 1
        times = (stop - at) // size
        if times >= max(3, repeats.exact):
            left_out = (times - 1) * sum(len(line) + 1 for line in lines[at : at + size])
            if left_out > LEAST_LEFT_OUT:
                return _Run(at, size, times)
    return None


def _with_similar(lines: Sequence[str], shapes: Sequence[bytes], runs: Iterator[_Run], least: int) -> Iterator[_Run]:
    """Yield the runs with similar single lines joined. Only lines with the same shape as a neighbour are compared."""
    held: _Run | None = None
    mask: str | None = None
    for run in runs:
        at = run.start
        alone = shapes[at] not in shapes[max(0, at - 1) : at] and shapes[at] not in shapes[at + 1 : at + 2]
        found = None if not least or alone or run.times > 1 else _masked(lines[at])
        if held is not None and found is not None and found == mask:
            held = _Run(held.start, held.size + 1)
            continue
        if held is not None:
            yield _judged(held, lines, least)
        held, mask = run, found
    if held is not None:
        yield _judged(held, lines, least)


def _judged(run: _Run, lines: Sequence[str], least: int) -> _Run:
    """Return the run, marked as similar lines if there are enough."""
    if run.times > 1 or not least or run.size < max(4, least):
        return run
    left_out = sum(len(line) + 1 for line in lines[run.start + 1 : run.start + run.size - 1])
    return _Run(run.start, run.size, similar=left_out > LEAST_LEFT_OUT)


def _masked(line: str) -> str | None:
    """Return a log line with masked numbers; None if it is not a log line: no numbers, no words, or columns of data."""
    if len(line) > LONGEST_LOG_LINE or "\t" in line or DIGIT.search(line) is None:
        return None
    mask = NUMBERS.sub(_mask, line)
    worded = CHINESE.search(mask) or (" " in mask.strip() and WORD.search(mask))
    return mask if worded else None


def _mask(number: re.Match[str]) -> str:
    return number["telling"] or number["kind"] or "#"
