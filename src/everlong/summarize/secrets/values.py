"""Decide whether the value after a secret's name is a secret: not a placeholder, type, path, expression or prose."""

import re
from collections.abc import Iterable
from typing import Literal

from everlong.relevance import STOP_WORDS
from everlong.summarize.secrets.randomness import CERTAIN, LIKELY, is_hex, is_mixed, is_random

__all__ = ["PATTERNS", "Sort", "is_bare_secret", "is_quoted_secret"]

#: What a name says about its value. "password": almost any value is secret; "pass": not figures or code; "token": not
#: plain words; "key": only random strings.
Sort = Literal["password", "pass", "token", "key"]

FEWEST_WORDS, MOST_WORDS = 3, 24  # words of a phrase that may be a password
LONG = 8  # characters; quoted values this long may be secrets without digits
SHORTEST_DRAWN = 16  # characters of a random value
SHORTEST_HEX = 20
LOOKED_AT = 64  # characters that decide whether a value is random

_PLACEHOLDER = re.compile(
    r"(?i)[x*•.…_-]{3,80}+\W{0,8}$|[$<{\[(*#]|%(?![0-9A-F]{2})|.{0,20}(?:\.{3}|…)\W{0,4}$"
    r"|(?:your|my|the|some|test|fake|dummy|sample|new|old)[-_ ]"
    r"|(?:example|placeholder|change-?me|redacted|required|optional|undefined|null|none|nil|true|false|string|bytes|text"
    r"|number|integer|boolean|object|bearer|basic|hidden|masked|empty|missing|unset)\b"
)
_TYPE = re.compile(r"(?:u?int|float|bytes|[uif]|utf|sha|md|base|(?:var)?char|str|oauth|hs|rs|es|v)[-_]?\d{1,4}\b", re.I)
_EXPRESSION = re.compile(
    r"[A-Za-z_][\w.]{0,200}+[(\[{]|[A-Za-z_]\w{0,80}+(?:(?:\?\.|\.|::|->|/)[A-Za-z_]\w{0,80}+){1,20}+[)\]}:?]{0,8}$"
)
#: Beginnings of expressions that could otherwise be passwords with a dot.
_CODE = re.compile(
    r"(?i)(?:self|this|cls|config|conf|cfg|settings|options|opts|args|argv|process|env|os|req|request|res|ctx|context|data"
    r"|props|state|user|auth|vault|secrets?|var|vars|local|module|params?|input|form|body|event|app|client|credentials?"
    r"|creds|session|db|str|string|null|Values)\W"
)
_PATH = re.compile(r"(?:~|\.{1,2}|/[a-z]{2,12}|[a-z][a-z0-9+.-]{1,12}:/)/")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,20}\W{0,8}$")
_WORD = re.compile(r"[A-Za-z_-]{1,256}+[)\]}:.!?]{0,8}$")
_OWN_NAME = re.compile(r"(?i)\w{0,40}(?:token|passw|key|secret|pwd|credential)\w{0,40}[)\]}:.?]{0,8}$")
_FIGURE = re.compile(r"[\d_.,:/+-]{1,256}[A-Za-z%]?[)\]}]{0,8}$")
_BRACKET = re.compile(r"[(\[{]")
_DIGIT = re.compile(r"\d")
_MIXED = re.compile(r"[!@#$%^*+=~]")
_DRAWN = re.compile(r"[A-Za-z0-9_+/=.~$%-]{1,256}+\Z")
_UUID = re.compile(r"(?:\d{4}-\d\d-\d\d-)?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-")
PATTERNS = (
    *(_PLACEHOLDER, _TYPE, _EXPRESSION, _CODE, _PATH, _VARIABLE, _WORD, _OWN_NAME, _FIGURE, _DIGIT, _MIXED, _DRAWN),
    *(_UUID, _BRACKET),
)


def is_quoted_secret(value: str, sort: Sort) -> bool:
    """Return whether a value between quotes is a secret."""
    if _fits(value, (_PLACEHOLDER, _VARIABLE, _PATH)):
        return False
    if sort == "key":
        return _is_drawn(value)
    words = value.split()
    if len(words) > 1:
        prose = len(words) < FEWEST_WORDS or len(words) > MOST_WORDS or not STOP_WORDS.isdisjoint(map(str.lower, words))
        return sort == "password" and not prose and all(word.isalnum() and word.isascii() for word in words)
    if sort != "token":
        return value.isascii() and not (sort == "pass" and (_FIGURE.match(value) or _is_expression(value, sort, False)))
    if _fits(value, (_TYPE, _OWN_NAME, _FIGURE)):
        return False
    return _DIGIT.search(value) is not None or (len(value) >= LONG and not _WORD.match(value)) or len(value) >= 3 * LONG


def is_bare_secret(value: str, sort: Sort, given: bool) -> bool:
    """Return whether an unquoted value is a secret. `given` values (a shell variable or flag) may be plain words."""
    if sort == "key" and not _is_drawn(value):
        return False
    if not value.isascii() or _fits(value, (_PLACEHOLDER, _VARIABLE, _TYPE, _PATH)):
        return False
    if _is_drawn(value):
        return True
    if _is_expression(value, sort, given):
        return False
    if _FIGURE.match(value):
        return sort == "password" or (sort == "pass" and given)
    if _WORD.match(value):
        if given:
            return not value.isupper() and not _OWN_NAME.match(value) and not value.startswith("-")
        return sort == "password" and not value.islower() and is_random(value)
    if _OWN_NAME.match(value) and not given:
        return False
    if given and sort in ("password", "pass"):
        return True
    return _DIGIT.search(value) is not None or _MIXED.search(value) is not None


def _is_drawn(value: str) -> bool:
    """Return whether a value is a random string: long, and hex digits or uncommon pairs of characters."""
    value = value[:LOOKED_AT].rstrip(").,:;]}")
    if len(value) < SHORTEST_DRAWN or not _DRAWN.match(value) or _UUID.match(value):
        return False
    if is_hex(value):
        return len(value) >= SHORTEST_HEX and _DIGIT.search(value) is not None
    if value.islower() and _DIGIT.search(value) is None:
        return False
    return is_random(value, LIKELY if is_mixed(value) else CERTAIN)


def _is_expression(value: str, sort: Sort, given: bool) -> bool:
    """Whether a value is code, not a password with a dot. Example: "lantern.Copper77" is not code."""
    if not _EXPRESSION.match(value):
        return False
    if sort not in ("password", "pass") or _BRACKET.search(value) or _CODE.match(value):
        return True
    return not given and _DIGIT.search(value) is None


def _fits(value: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    return any(pattern.match(value) for pattern in patterns)
