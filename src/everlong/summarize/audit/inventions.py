"""Find names and figures in a summary that the conversation does not have.

Case, underscores, thousands separators and rounding may differ. Small counts may be the summary's own; so may the names
of things that everybody knows.
"""

import re
from collections.abc import Iterator

from everlong.relevance import names_in
from everlong.summarize.audit.evidence import TIMES, Evidence, squashed

__all__ = ["invented_in", "named_in"]

#: Names that anyone may use for what the conversation calls by another, squashed.
COMMON_NAMES_LISTED = (
    " github gitlab javascript typescript postgresql mysql sqlite mongodb graphql openai chatgpt deepseek macos"
    " ios ipados iphone ipad youtube linkedin wordpress fastapi numpy pytorch tensorflow latex wechat"
    " powerpoint nodejs nextjs vuejs devops cicd tcpip readme utf8 sha256 base64 http2 ipv4 ipv6 oauth2 restapi"
    " websocket websockets webassembly stackoverflow dockerfile makefile python3 es6 i18n html5 css3 mp3 mp4"
    " b2b a11y"
)
COMMON_NAMES = frozenset(COMMON_NAMES_LISTED.split())
_WORDS_WITH_SLASH = re.compile(r"[A-Za-z]+/[A-Za-z]+")
_FIGURE = re.compile(r"(?<![A-Za-z0-9_.])(\d[\d,]*+(?:[.:/-]\d++)*+)\s?([kKmM万亿千%])?(?![A-Za-z0-9_]*[A-Za-z_])")
_SEPARATORS = re.compile(r"[.:/-]")
_LONGEST_SCALED = 12  # characters of a figure with a unit
_DIGITS_TOLD = 3  # shorter figures may be counted by the summary itself


def named_in(sentence: str) -> list[str]:
    """The names and figures in a sentence that have to come from the conversation."""
    names = [name for name in names_in(sentence) if not _WORDS_WITH_SLASH.fullmatch(name)]
    return [name for name in names if squashed(name) not in COMMON_NAMES] + [figure for figure, _ in _figures(sentence)]


def invented_in(sentence: str, evidence: Evidence) -> list[str]:
    """The names and figures in a sentence that the conversation does not have.

    Example: "fixed in ghost.py", where nobody mentioned ghost.py -> ["ghost.py"]
    """
    figures = dict(_figures(sentence))
    return [
        name
        for name in named_in(sentence)
        if (
            not _figure_known(name, figures[name], evidence)
            if name in figures
            else squashed(name) not in evidence.known
        )
    ]


def _figures(sentence: str) -> Iterator[tuple[str, str]]:
    for match in _FIGURE.finditer(sentence):
        figure = match[1].replace(",", "").rstrip(".")
        if len(figure) - figure.count(".") >= _DIGITS_TOLD:
            yield figure, (match[2] or "").lower()


def _figure_known(figure: str, unit: str, evidence: Evidence) -> bool:
    if figure in evidence.figures:
        return True
    pieces = [piece.lstrip("0") for piece in _SEPARATORS.split(figure)]
    if len(pieces) > 2 or ":" in figure or "-" in figure or "/" in figure:  # a date, a time, a version
        return all(piece in evidence.figures or piece.zfill(2) in evidence.figures or not piece for piece in pieces)
    if any(known.startswith(figure) for known in evidence.figures if "." in known):
        return True
    return (
        unit in TIMES and len(figure) <= _LONGEST_SCALED and str(round(float(figure) * TIMES[unit])) in evidence.figures
    )
