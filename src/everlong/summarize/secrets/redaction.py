"""Remove keys and passwords from texts that another model reads. Never raises; the store keeps the original.

A long text is searched in pieces, so that no single search blocks other threads for long. Pieces overlap, and a secret
that reaches the end of a piece is searched again from its beginning. Line ends stay, so lines keep their numbers.
"""

import re
from collections.abc import Iterator

from everlong.summarize.secrets.forms import FORMS
from everlong.summarize.secrets.names import named_secrets
from everlong.summarize.secrets.runs import secret_runs
from everlong.summarize.secrets.shapes import SHAPES, spans_of
from everlong.summarize.text import PIECE, UNSEEN, end_of_piece, in_pieces

__all__ = ["REDACTED", "redacted"]

REDACTED = "[redacted]"
OVERLAP = 1_024  # characters that two pieces share: enough for a name and the beginning of its value
ROUNDS = 4  # text next to a secret may be recognised only after the first one is gone
SHORTEST_WRAPPED = 32  # characters of a line that continues on the next

#: Colour codes as JSON and code escape them.
_COLOUR = re.compile(r"\\{1,4}(?:u001[bB]|x1[bB]|033|e)\[[0-9;]{0,20}m")
_NEXT_LINE = re.compile(
    r"(?:\\{0,2}\n|\\{1,4}n)[+>|-]?[ \t]{0,12}(?P<run>[A-Za-z0-9_+/=.~$-]{1,512}+)(?=\s|\\|[\"'`]|\Z)"
)
_WORD = re.compile(r"[A-Z]?[a-z]*+[.,:;!?]*+\Z")
PATTERNS = (_COLOUR, _NEXT_LINE, _WORD, UNSEEN)

Span = tuple[int, int]


def redacted(text: str) -> str:
    """Return the text without the secrets in it.

    Example: "api_key=abcd1234" -> "api_key=[redacted]"
    """
    cleaned = seen = in_pieces(_seen, text)
    for _ in range(ROUNDS):
        spans = _spans(cleaned)
        if not spans:
            break
        cleaned = _without(cleaned, spans)
    return text if cleaned == seen else cleaned


def _seen(text: str) -> str:
    return _COLOUR.sub("", UNSEEN.sub("", text))


def _spans(text: str) -> list[Span]:
    """Return the positions of secrets, in order, without overlaps."""
    found: list[Span] = []
    start = 0
    while start < len(text):
        end = end_of_piece(text, start)
        here = list(_spans_between(text, start, end))
        found += here
        if end == len(text):
            break
        over = min((first for first, last in here if last >= end), default=end)
        start = max(over - OVERLAP, start + PIECE // 4)  # search again a secret that reaches the end
    return _merged(text, found)


def _spans_between(text: str, start: int, end: int) -> Iterator[Span]:
    lower = text[start:end].lower()
    for shape in (*SHAPES, *FORMS):
        if any(sign in lower for sign in shape.signs):
            yield from spans_of(shape, text, start, end)
    yield from named_secrets(text, start, end)
    yield from secret_runs(text, start, end)


def _merged(text: str, spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for first, last in sorted(spans):
        reached = merged[-1][1] if merged else 0
        if last <= reached or first == last:
            continue
        last = _end_of_lines(text, first, last)
        if merged and first <= reached:
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return merged


def _end_of_lines(text: str, first: int, last: int) -> int:
    """Return the end of a secret that continues on the next lines: each is a single run, the last one shorter."""
    size = last - max(first, text.rfind("\n", first, last) + 1)
    while size >= SHORTEST_WRAPPED and (line := _NEXT_LINE.match(text, last)) is not None:
        run = line["run"]
        if len(run) > size or (len(run) < size and _WORD.match(run)):
            break
        last = line.end()
        if len(run) < size:
            break
    return last


def _without(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    at = 0
    for first, last in spans:
        hidden = text[first:last]
        pieces += (text[at:first], hidden if hidden == REDACTED else REDACTED + "\n" * hidden.count("\n"))
        at = last
    return "".join((*pieces, text[at:]))
