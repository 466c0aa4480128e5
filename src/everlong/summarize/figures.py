"""Figures worth keeping, with the words around them: amounts, dates, shares, times, versions.

From people everything that is a figure; from the model only what has a unit. Code, line numbers, identifiers and
pasted data are no figures.
"""

import re
from collections.abc import Iterable, Iterator

from everlong.core import Message, Role
from everlong.summarize.secrets import redacted
from everlong.summarize.typed import typed_by_user

__all__ = ["figures_in"]

LOOKED_AT = 20_000  # characters of one text
LONGEST_LINE = 400  # characters; longer ones are data
MOST_OF_USER, MOST_OF_MODEL = 6, 2  # of one message
AROUND = 60  # characters before and after
FENCE = re.compile(r"^[ \t]{0,8}(```|~~~)")
DATA = re.compile(r"^\s{0,40}(?:---|===|at |File |\d{4}-\d\d-\d\dT)|^\s{0,40}[{}\[\]<>|\"'/#$@]|[;{}]\s*$|\":|\\n")

_UNITS = (
    r"%|％|‰|(?:ms|s|sec|min|hours?|days?|weeks?|months?|years?|h|[kKMGT]i?B|[kKMG]?Hz|km|kg|cm|mm|°C|px|USD|EUR|CNY|RMB|GBP"
    r"|dollars?|euros?|percent|tokens?|million|billion|[kMx])(?![A-Za-z0-9_])"
    r"|元|万|亿|美元|个|次|天|小时|分钟|秒|年|月|日|号|点|周|岁|人|公里|公斤|斤|米|条|页|台|件|折|倍|块"
)
_EDGE = r"(?<![A-Za-z0-9_.,:/#@+=-])(?<!line )(?<!lines )(?<!line ~)(?<!行 )"
_END = r"(?![A-Za-z0-9_/:-]|\.\d)"
_DATE = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d{2})?|\d{4}年\d{1,2}月(?:\d{1,2}日)?|\d{1,2}月\d{1,2}[日号]"
_AMOUNT = r"(?:[$€£¥￥]|USD |EUR |RMB )\s?\d[\d,]{0,20}(?:\.\d{1,6})?[kKmMbB万亿]?"
_VERSION = r"v?\d{1,4}\.\d{1,4}\.\d{1,6}"
_SIZED = rf"\d[\d,]{{0,20}}(?:\.\d{{1,6}})?[ -]?(?:{_UNITS})"
WITH_UNIT = re.compile(rf"{_EDGE}(?:(?:{_DATE}|{_AMOUNT}|{_VERSION}){_END}|{_SIZED})")
ANY = re.compile(rf"{_EDGE}(?:(?:{_DATE}|{_AMOUNT}|{_VERSION}|\d{{1,3}}(?:,\d{{3}}){{1,6}}|\d{{3,20}}){_END}|{_SIZED})")


def figures_in(messages: Iterable[Message]) -> Iterator[str]:
    """Each line with a figure, clipped around it, oldest first. Example: "the limit is 4 MB" -> "the limit is 4 MB" """
    for message in messages:
        if message.role is Role.ASSISTANT:
            yield from _figures(message.text, WITH_UNIT, MOST_OF_MODEL)
        else:
            yield from _figures(typed_by_user(message), ANY, MOST_OF_USER)


def _figures(text: str, pattern: re.Pattern[str], most: int) -> Iterator[str]:
    found = 0
    fenced = False
    for line in redacted(text)[:LOOKED_AT].split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        if fenced or len(line) > LONGEST_LINE or DATA.search(line):
            continue
        figure = pattern.search(line)
        if figure is not None and found < most:
            found += 1
            yield _around(line, figure)


def _around(line: str, figure: re.Match[str]) -> str:
    """The line, or whole words about its first figure."""
    start, end = max(0, figure.start() - AROUND), min(len(line), figure.end() + 2 * AROUND)
    if start > 0:
        start = line.find(" ", start, figure.start()) + 1 or start
    if end < len(line):
        space = line.rfind(" ", figure.end(), end)
        end = space if space > 0 else end
    return line[start:end].strip(" \t\r-*>•")
