"""Take keys and passwords out of texts that another model reads. Never raises; the store keeps the original.

A secret is recognised by its own shape (`KEYS`) or by the name before it (`NAME`): names stay, values go. Code that
only mentions secrets stays. Every pattern is bounded where it could otherwise read the same text again and again.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from everlong.relevance import STOP_WORDS

__all__ = ["REDACTED", "redacted"]

REDACTED = "[redacted]"


@dataclass(frozen=True, slots=True)
class Key:
    """Secrets of one shape. Without one of the `signs` in the lower-case text the pattern is not tried."""

    signs: tuple[str, ...]
    pattern: re.Pattern[str]
    instead: str = REDACTED


_DIGIT = r"(?=[A-Za-z_-]{0,80}\d)"  # a name in kebab-case has none
KEYS: tuple[Key, ...] = (
    Key(
        ("private key",),
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:(?!-----)[\s\S]){0,16384}-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:[\s\\]{0,8}[A-Za-z0-9+/=]{16,})*(?:[\s\\]{0,8}[A-Za-z0-9+/=]+(?=\s*\Z))?)"
        ),
    ),
    Key(("sk-", "pk-", "rk-"), re.compile(rf"\b(?:sk|pk|rk)-{_DIGIT}[A-Za-z0-9_-]{{16,}}")),
    Key(("_live_", "_test_"), re.compile(r"\b(?:sk|pk|rk|whsec)_(?:live|test)_[A-Za-z0-9]{12,}")),
    Key(
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
        re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"),
    ),
    Key(("xox", "xapp-"), re.compile(r"\b(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{10,}")),
    Key(("hooks.slack.com",), re.compile(r"(hooks\.slack\.com/services/)[A-Za-z0-9/]{12,}"), rf"\1{REDACTED}"),
    Key(("akia", "asia", "akid", "ltai"), re.compile(r"\b(?:AKIA|ASIA|AKID|LTAI)(?=[A-Za-z]{0,80}\d)[A-Za-z0-9]{12,}")),
    Key(("aiza", "ya29."), re.compile(r"\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}")),
    Key(
        ("hf_", "npm_", "gsk_", "r8_", "pypi-", "xai-", "nvapi-", "sg.", "shpat_", "dop_v1_"),
        re.compile(
            rf"\b(?:hf_|npm_|gsk_|r8_|shpat_|dop_v1_)(?=[A-Za-z]{{0,80}}\d)[A-Za-z0-9]{{20,}}"
            rf"|\b(?:pypi|xai|nvapi)-{_DIGIT}[A-Za-z0-9_-]{{20,}}|\bSG\.[A-Za-z0-9_-]{{16,}}\.[A-Za-z0-9_-]{{16,}}"
        ),
    ),
    Key(("eyj",), re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?")),  # a signed web token
    Key((":aa",), re.compile(r"\b\d{8,10}:AA[A-Za-z0-9_-]{30,}")),  # a bot of Telegram
    Key(
        ("bearer", "basic", "authorization"),
        re.compile(
            r"(?i)\b((?:bearer|basic|authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?token)\s{1,4})"
            r"(?=[A-Za-z._~+/=-]{0,80}\d|[A-Za-z0-9+/]{0,80}=)[A-Za-z0-9._~+/=-]{12,}"
        ),
        rf"\1{REDACTED}",
    ),
    Key(
        ("://",),
        re.compile(r"(://)(?:[^\s/@:'\"<>]{0,200}:(?![$<{*%])[^\s/@'\"<>]{1,400}|[A-Za-z0-9_-]{20,200})@"),
        rf"\1{REDACTED}@",
    ),
    Key(
        ("cookie",),
        re.compile(r"(?i)(cookie[\"']?\s{0,4}:\s{0,4}[\"']?)(?=[\w.-]{1,64}=)[^\r\n\"']{4,}"),
        rf"\1{REDACTED}",
    ),
    Key(
        ("sig=", "signature=", "key=", "auth=", "code="),
        re.compile(r"(?i)([?&](?:x-amz-)?(?:sig|signature|key|auth|code)=)(?=[A-Za-z_%-]{0,80}\d)[^\s&#\"'<>]{8,}"),
        rf"\1{REDACTED}",
    ),
    Key(
        ("-u ", "--user "),
        re.compile(r"(\s(?:-u|--user) +[\"']?[\w.@-]{1,64}:)(?![$<{])[^\s\"']{3,}"),
        rf"\1{REDACTED}",
    ),
)

#: By the end of the name alone: `client_secret` is a `secret`. The first look is for speed only.
_NAMED = (
    r"(?=[acekpst密口令])(?:(?:api|access|account|private|encryption|signing)[_-]?key(?:[_-]?id)?"
    r"|secret(?:[_-]?access)?(?:[_-]?(?:key|id))?|token|passw(?:or)?d|passwd|pwd|pass[_-]?phrase|credentials?"
    r"|密码|口令|密钥|令牌)"
)
_AFTER = r"(?:_?\d{1,3}|_(?:prod|production|dev|test|staging|live|old|new))?"
#: A name and what stands between it and its value.
NAME = re.compile(
    rf"(?i)(?P<name>{_NAMED}){_AFTER}"
    r"(?P<between>\\{0,3}[\"'`]?[*_]{0,2}\s{0,8}(?::=|=>|={1,3}|[:：])[*_]{0,2}\s{0,8}"
    r"|\s{1,4}(?:is|was)\s{0,4}[:：]?\s{1,4}|\s{0,2}(?:是|为|改为|改成|设为)[:：]?\s{0,4}|(?P<space>[ \t]{1,4}))"
    r"(?:[brf]?\\{0,3}(?P<quote>[\"'`]))?"
)
_FLAG = re.compile(r"--[a-z-]{0,30}$")
LONGEST_FLAG = 32
NAME_SIGNS = ("key", "secret", "token", "passw", "pwd", "phrase", "credential", "密码", "口令", "密钥", "令牌")
PASSWORDS = re.compile(r"(?i)pass|pwd|密码|口令")

LOOKED_AT = 256  # characters of a value until it is known for one
_BARE = re.compile(rf"[^\s\"'`,;&<>|\\，。；、）】」]{{4,{LOOKED_AT}}}")
_BARE_REST = re.compile(r"[^\s\"'`,;&<>|\\，。；、）】」]*")
_QUOTED = {quote: re.compile(rf"[^{quote}\n\\]{{4,{LOOKED_AT}}}") for quote in "\"'`"}
_QUOTED_REST = {quote: re.compile(rf"[^{quote}\n\\]*") for quote in "\"'`"}

_PLACEHOLDER = re.compile(
    r"(?i)[x*•.…_-]{3,}\W*$|[$%<{\[(*#]|(?:your|my|the|some|test|fake|dummy|sample|new|old)[-_ ]"
    r"|(?:example|placeholder|change-?me|redacted|required|optional|undefined|null|none|true|false|string|bytes|text"
    r"|number|integer|boolean|object|bearer|basic|hidden|masked|empty|missing|unset)\b"
)
_TYPE = re.compile(r"(?:u?int|float|bytes|[uif]|utf|sha|md|base|(?:var)?char|str|oauth|hs|rs|es|v)[-_]?\d{1,4}\b", re.I)
_EXPRESSION = re.compile(
    r"[A-Za-z_][\w.]{0,200}[(\[{]|[A-Za-z_]\w{0,80}(?:(?:\?\.|\.|::|->|/)[A-Za-z_]\w{0,80})+[)\]}:?]*$"
)
_PATH = re.compile(r"(?:~|\.{1,2}|/[a-z]{2,12}|[a-z][a-z0-9+.-]{1,12}:/)/")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\W*$")
_WORD = re.compile(r"[A-Za-z_-]+[)\]}:.!?]*$")
_OWN_NAME = re.compile(r"(?i)\w{0,40}(?:token|passw|key|secret|pwd|credential)\w{0,40}[)\]}:.?]*$")
_FIGURE = re.compile(r"[\d_.,:/+-]+[A-Za-z%]?[)\]}]*$")
_DIGIT_IN = re.compile(r"\d")
_MIXED = re.compile(r"[!@#$%^*+=~]")
FEWEST_WORDS, MOST_WORDS = 3, 24  # of a phrase that is a password
LONG = 8  # characters from which quoted letters after a name are no word of a language any more


def redacted(text: str) -> str:
    """The text without the secrets in it. Example: "api_key=abcd1234" -> "api_key=[redacted]" """
    lower = text.lower()
    for key in KEYS:
        if any(sign in lower for sign in key.signs):
            text = key.pattern.sub(key.instead, text)
    return _without_named(text) if any(sign in lower for sign in NAME_SIGNS) else text


def _without_named(text: str) -> str:
    """The text without values that follow the name of a secret. A value that is code is searched again."""
    pieces: list[str] = []
    at = 0
    for name in NAME.finditer(text):
        if name.start() < at:
            continue
        end = _end_of_secret(text, name)
        if end is not None:
            pieces += (text[at : name.end()], REDACTED)
            at = end
    return "".join((*pieces, text[at:])) if pieces else text


def _end_of_secret(text: str, name: re.Match[str]) -> int | None:
    flag = _FLAG.search(text, max(0, name.start() - LONGEST_FLAG), name.start()) is not None
    if name["space"] and not flag:
        return None
    quote = name["quote"]
    value = (_QUOTED[quote] if quote else _BARE).match(text, name.end())
    if value is None or value[0].startswith(REDACTED):
        return None
    password = PASSWORDS.search(name["name"]) is not None
    if quote:
        secret = _is_quoted_secret(value[0], password)
    else:
        given = flag or (name["between"] == "=" and name["name"].isupper())
        secret = _is_bare_secret(value[0], password, given)
    if not secret:
        return None
    rest = (_QUOTED_REST[quote] if quote else _BARE_REST).match(text, value.end())
    return value.end() if rest is None else rest.end()


def _fits(value: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    return any(pattern.match(value) for pattern in patterns)


def _is_quoted_secret(value: str, password: bool) -> bool:
    if _fits(value, (_PLACEHOLDER, _VARIABLE, _PATH)):
        return False
    words = value.split()
    if len(words) > 1:
        prose = len(words) < FEWEST_WORDS or len(words) > MOST_WORDS or not STOP_WORDS.isdisjoint(map(str.lower, words))
        return password and not prose and all(word.isalnum() and word.isascii() for word in words)
    if password:
        return value.isascii()
    if _fits(value, (_TYPE, _OWN_NAME, _FIGURE)):
        return False
    return (
        _DIGIT_IN.search(value) is not None or (len(value) >= LONG and not _WORD.match(value)) or len(value) >= 3 * LONG
    )


def _is_bare_secret(value: str, password: bool, given: bool) -> bool:
    """Whether an unquoted value is a secret. `given`: as shells give values, where a plain word counts too."""
    if not value.isascii() or _fits(value, (_PLACEHOLDER, _VARIABLE, _TYPE, _EXPRESSION, _PATH)):
        return False
    if _FIGURE.match(value):
        return password
    if _WORD.match(value):
        return given and not value.isupper() and not _OWN_NAME.match(value) and not value.startswith("-")
    if _OWN_NAME.match(value) and not given:
        return False
    return _DIGIT_IN.search(value) is not None or _MIXED.search(value) is not None
