"""How well hiding works: the share of secrets that are removed, and the share of ordinary lines that are changed.

A secret is found if no run of eight of its characters is left. A changed line is a false alarm; in real conversations
some of these lines have real secrets, so the figure is an upper bound.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from everlong.core import Message, Text, ToolCall, ToolResult
from everlong.lab.data import Conversation
from everlong.lab.secrets.corpus import HELD_OUT, KINDS, SECRETS_SEED, Sample, samples
from everlong.lab.secrets.ordinary import ordinary_lines
from everlong.summarize import redacted

__all__ = ["KIND_SETS", "Alarms", "Found", "alarms_in", "find_secrets", "lines_written", "texts_in", "texts_of"]

KIND_SETS = ("development", "held-out", "all")
RUN = 8  # characters in a row that must not be left
SHORTEST = 6  # characters; a shorter rest, as at the end of a wrapped line, reveals nothing
LARGEST_FILE = 4_000_000  # bytes

Hide = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found of one kind; `missed` names the surroundings in which something was left."""

    kind: str
    held_out: bool
    total: int
    found: int
    missed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """Lines of one source, how many of them were changed, and the CPU time per million characters."""

    data: str
    lines: int
    changed: int
    characters: int
    milliseconds: float


def find_secrets(kinds: str, each: int, seed: int = SECRETS_SEED, hide: Hide = redacted) -> Iterator[Found]:
    """Yield what is found of each kind, in the order of the corpus. `kinds` is one of `KIND_SETS`."""
    for kind in KINDS:
        held_out = kind.name in HELD_OUT
        if kinds != "all" and held_out != (kinds == "held-out"):
            continue
        drawn = list(samples(kind, each, seed))
        missed = [sample.surrounding for sample in drawn if is_left_over(sample, hide(sample.made.text))]
        yield Found(
            kind=kind.name,
            held_out=held_out,
            total=len(drawn),
            found=len(drawn) - len(missed),
            missed=tuple(dict.fromkeys(missed)),
        )


def is_left_over(sample: Sample, cleaned: str) -> bool:
    """Return whether a piece of the secret is still in the text."""
    return any(
        piece[at : at + RUN] in cleaned
        for piece in sample.made.hidden
        if len(piece) >= SHORTEST
        for at in range(max(1, len(piece) - RUN + 1))
    )


def alarms_in(data: str, texts: Iterable[str], hide: Hide = redacted) -> Alarms:
    """Return how many lines of these texts are changed."""
    lines = changed = characters = 0
    seconds = 0.0
    for text in texts:
        start = time.process_time()
        cleaned = hide(text)
        seconds += time.process_time() - start
        before, after = text.split("\n"), cleaned.split("\n")
        lines += len(before)
        characters += len(text)
        changed += _changed(before, after) if cleaned != text else 0
    speed = 1e9 * seconds / characters if characters else 0.0
    return Alarms(data=data, lines=lines, changed=changed, characters=characters, milliseconds=speed)


def _changed(before: list[str], after: list[str]) -> int:
    """How many lines differ; if lines are missing afterwards, those that no longer occur."""
    if len(before) == len(after):
        return sum(one != other for one, other in zip(before, after, strict=True))
    left = set(after)
    return sum(line not in left for line in before)


def lines_written(times: int, seed: int = SECRETS_SEED) -> Iterator[str]:
    """Yield our own ordinary lines, each as a separate text."""
    return ordinary_lines(seed, times)


def texts_of(conversations: Iterable[Conversation]) -> Iterator[str]:
    """Yield every text of conversations that another model might get: words, arguments, results."""
    for conversation in conversations:
        for message in conversation.messages:
            yield from _texts(message)


def _texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        match part:
            case Text(text):
                yield text
            case ToolCall(arguments=arguments):
                yield arguments
            case ToolResult(content=content):
                yield from (inner.text for inner in content if isinstance(inner, Text))
            case _:
                continue


def texts_in(path: Path) -> Iterator[str]:
    """Yield the text of a file, or of every text file below a folder that is not huge."""
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file() and file.stat().st_size <= LARGEST_FILE:
            raw = file.read_bytes()
            if b"\0" not in raw:
                yield raw.decode("utf-8", "replace")
