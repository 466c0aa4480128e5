"""Secrets among the long runs of a text: vendors' tokens, and random strings that do not look harmless.

Hashes, ids, certificates and encoded images are random too. They are recognised by their prefix, their length and the
text before them, and stay.
"""

import re
from collections.abc import Iterator

from everlong.summarize.secrets.randomness import is_mixed, is_random
from everlong.summarize.secrets.shapes import TOKENS

__all__ = ["PATTERNS", "secret_runs"]

SHORTEST = 24  # characters of a random string that counts as a secret without any other sign
LONGEST = 400  # longer ones are data
LONGEST_BEFORE = 24  # characters before a run that are checked
SHORTEST_BLOB_LINE = 60  # characters of a line among equally long lines: an image, a certificate
PUBLIC = "AAAA"  # the beginning of public ssh keys

_RUN = re.compile(r"[A-Za-z0-9_+/=.~$-]{16,}+")
_PART = re.compile(r"[A-Za-z0-9_+/-]{20,}+={0,2}+")
_SEGMENT = re.compile(r"[A-Za-z0-9_+-]{20,}+={0,2}+")
_LINE = re.compile(r"[A-Za-z0-9+/]++={0,2}")
_DIGIT = re.compile(r"\d")
_PREFIXED_HEX = re.compile(
    r"[A-Za-z][A-Za-z0-9]{1,11}(?:[_-][A-Za-z0-9]{1,6})?[_-](?:[0-9a-f]{20,40}-)?[0-9a-f]{32,128}\Z"
)
#: Names of hashes and of things with ids, at the beginning of a run.
_HARMLESS = re.compile(
    r"(?i)(?:sha-?\d{1,3}|md5|blake\w{0,3}|h1|crc\w{0,3}|commit|rev|ref|tree|blob|pack|hash|digest|checksum|etag|integrity"
    r"|id|uuid|toolu|srvtoolu|call|msg|req|request|resp|chatcmpl|cmpl|run|thread|asst|file|fc|rs|evt|event|item|gen|session"
    r"|trace|span|cus|pi|price|prod|sub|acct|txn|image|img|asset|chunk|index|main|vendor|build|cache|tmp|temp|snapshot|pkg"
    r"|layer|container|node|pod|task|job|step|message|conversation|user|org|team|project|env|w)[_-]"
    r"|[a-z]{2,12}_01[A-Za-z0-9]{22}\Z|0x[0-9A-Fa-f]{1,400}\Z|\d{4}-\d\d-\d\d"
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z"
)
#: The text before hashes, public keys, encoded data and ids.
_BEFORE = re.compile(
    r"(?i)(?:sha-?\d{1,3}[-:]|h1:|base64,|integrity[\"']?[:= ]{1,2}\"?|public[_ -]?key[\"']?[:= ]{1,3}[\"']?"
    r"|pubkey[\"']?[:= ]{1,3}|W/\"|etag[\"']?: ?[\"']?|mappings\":\"|fingerprint[\"']?[:= ]{1,3}|/d/|/store/)\Z"
)
PATTERNS = (_RUN, _PART, _SEGMENT, _LINE, _PREFIXED_HEX, _HARMLESS, _BEFORE, TOKENS)

Span = tuple[int, int]


def secret_runs(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the positions of tokens and random strings."""
    for run in _RUN.finditer(text, start, end):
        first, last = run.span()
        yield from (token.span() for token in TOKENS.finditer(text, first, last))
        if _DIGIT.search(run[0]) is not None:
            yield from _random_parts(text, first, last)


def _random_parts(text: str, start: int, end: int) -> Iterator[Span]:
    for part in _PART.finditer(text, start, end):
        first, last = part.span()
        if last - first > LONGEST or part[0].startswith(PUBLIC) or _is_file(text, last):
            continue
        if _BEFORE.search(text, max(0, first - LONGEST_BEFORE), first) or _is_blob_line(text, first, last):
            continue
        yield from ((first + at, first + to) for at, to in _pieces(part[0]))


def _pieces(part: str) -> Iterator[Span]:
    """Yield the part, without a leading diff sign, if it is random; otherwise the random pieces between its slashes."""
    lead = len(part) - len(part.lstrip("+-"))
    if _is_secret(part[lead:]):
        yield lead, len(part)
    elif "/" in part:
        yield from (piece.span() for piece in _SEGMENT.finditer(part) if _is_secret(piece[0]))


def _is_secret(run: str) -> bool:
    if len(run) < SHORTEST or _HARMLESS.match(run):
        return False
    return _PREFIXED_HEX.match(run) is not None or (is_mixed(run) and is_random(run))


def _is_file(text: str, at: int) -> bool:
    """Whether a file extension follows here. Example: "pack-1ce69b60.idx" """
    return text[at : at + 1] == "." and text[at + 1 : at + 2].isalpha()


def _is_blob_line(text: str, first: int, last: int) -> bool:
    """Whether the run is a line of encoded data: the line before or after it has the same length and kind."""
    size = last - first
    if size < SHORTEST_BLOB_LINE:
        return False
    after = text[last + 1 : last + 1 + size] if text[last : last + 1] in ("\n", "\\") else ""
    before = text[first - 1 - size : first - 1] if first > size and text[first - 1] in ("\n", "\\") else ""
    return any(len(line) == size and _LINE.fullmatch(line) is not None for line in (after, before))
