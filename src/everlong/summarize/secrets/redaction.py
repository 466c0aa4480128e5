"""Take keys and passwords out of texts that another model reads. Never raises; the store keeps the original.

A long text is read in pieces, so that no single search holds up other threads; pieces overlap, and a secret that
reaches the end of one is read again from its beginning. Line ends stay, so that lines keep their numbers.
"""

import re
from collections.abc import Iterator

from everlong.summarize.secrets.forms import FORMS
from everlong.summarize.secrets.names import named_secrets
from everlong.summarize.secrets.runs import secret_runs
from everlong.summarize.secrets.shapes import SHAPES, spans_of

__all__ = ["PIECE", "REDACTED", "pieces_of", "redacted"]

REDACTED = "[redacted]"
PIECE = 32_768  # characters of a text that are searched at once
OVERLAP = 1_024  # characters that two pieces share: a name, and the beginning of its value
ROUNDS = 4  # what stands beside a secret may be one too, once the first is gone
SHORTEST_WRAPPED = 32  # characters of a line that goes on in the next

#: Colours and titles of terminals, also as they are written in JSON and code, and characters without a form.
_UNSEEN = re.compile(
    r"\x1b\[[0-?]{0,40}[ -/]{0,8}[@-~]|\\{1,4}(?:u001[bB]|x1[bB]|033|e)\[[0-9;]{0,20}m"
    r"|[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
_UNSEEN_SIGN = re.compile(
    r"[\x1b\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]|\\(?:u001|x1|033|e\[)"
)
_NEXT_LINE = re.compile(
    r"(?:\\{0,2}\n|\\{1,4}n)[+>|-]?[ \t]{0,12}(?P<run>[A-Za-z0-9_+/=.~$-]{1,512}+)(?=\s|\\|[\"'`]|\Z)"
)
_WORD = re.compile(r"[A-Z]?[a-z]*\W*\Z")

Span = tuple[int, int]


def redacted(text: str) -> str:
    """The text without the secrets in it; the same text if there are none.

    Example: "api_key=abcd1234" -> "api_key=[redacted]"
    """
    cleaned = _UNSEEN.sub("", text) if _UNSEEN_SIGN.search(text) else text
    seen = cleaned
    for _ in range(ROUNDS):
        spans = _spans(cleaned)
        if not spans:
            break
        cleaned = _without(cleaned, spans)
    return text if cleaned == seen else cleaned


def pieces_of(text: str) -> Iterator[Span]:
    """Yield the pieces that are searched, for texts in which no secret reaches over the end of one."""
    start = 0
    while start < len(text):
        end = _end_of_piece(text, start)
        yield start, end
        start = end if end == len(text) else end - OVERLAP


def _end_of_piece(text: str, start: int) -> int:
    """The end of a piece: at the end of a line if there is one in its second half."""
    end = start + PIECE
    if end >= len(text):
        return len(text)
    return max(text.rfind("\n", start + PIECE // 2, end) + 1, 0) or end


def _spans(text: str) -> list[Span]:
    """Where secrets stand, in order, none inside another."""
    found: list[Span] = []
    start = 0
    again = False
    while start < len(text):
        end = _end_of_piece(text, start)
        here = list(_spans_between(text, start, end))
        over = min((first for first, last in here if last >= end), default=end) if end < len(text) else end
        if start < over < end and not again:  # the secret is read again from where it begins, once
            found += [span for span in here if span[1] <= over]
            start, again = max(over - OVERLAP, start + 1), True
            continue
        found += here
        start, again = (end if end == len(text) else max(end - OVERLAP, start + 1)), False
    return _merged(_to_its_end(text, span) for span in found)


def _spans_between(text: str, start: int, end: int) -> Iterator[Span]:
    lower = text[start:end].lower()
    for shape in (*SHAPES, *FORMS):
        if any(sign in lower for sign in shape.signs):
            yield from spans_of(shape, text, start, end)
    yield from named_secrets(text, start, end)
    yield from secret_runs(text, start, end)


def _to_its_end(text: str, span: Span) -> Span:
    """The secret with the lines it goes on in: each a run of its own, the last one shorter."""
    first, last = span
    size = last - max(first, text.rfind("\n", first, last) + 1)
    while size >= SHORTEST_WRAPPED and (line := _NEXT_LINE.match(text, last)) is not None:
        run = line["run"]
        if len(run) > size or (len(run) < size and _WORD.match(run)):
            break
        last = line.end()
        if len(run) < size:
            break
    return first, last


def _merged(spans: Iterator[Span]) -> list[Span]:
    merged: list[Span] = []
    for first, last in sorted(spans):
        if first == last:
            continue
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _without(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    at = 0
    for first, last in spans:
        hidden = text[first:last]
        pieces += (text[at:first], hidden if hidden == REDACTED else REDACTED + "\n" * hidden.count("\n"))
        at = last
    return "".join((*pieces, text[at:]))
