"""Secrets recognised by their own shape: vendors' prefixes and lengths, and keys between BEGIN and END lines.

A pattern is tried only if the text, in lower case, has one of its signs. Every repeat is bounded or possessive.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["LEAD", "SHAPES", "TOKENS", "Shape", "spans_of"]

_DIGIT = r"(?=[A-Za-z_+/=.~-]{0,80}+\d)"  # a digit must follow; names in kebab-case have none
_ALNUM, _URL, _HEX = "A-Za-z0-9", r"A-Za-z0-9_\-", "a-f0-9"
#: Prefixes of tokens, the characters after them, and the least number of these.
_PREFIXES: tuple[tuple[str, str, int], ...] = (
    # clouds
    (r"AKIA|ASIA|AKID|LTAI", _ALNUM, 12),
    (r"AIza", _URL, 30),
    (r"ya29\.", _URL, 20),
    (r"GOCSPX-", _URL, 20),
    (r"do[opr]_v1_", _HEX, 40),
    (r"HRKU-AA", _URL, 40),
    (r"fo1_|fm1[ar]_|fm2_", _URL + "+/=", 30),
    # code
    (r"gh[pousr]_", _ALNUM, 20),
    (r"github_pat_", r"A-Za-z0-9_", 20),
    (r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|oas|imt|agent)-", _URL, 16),
    (r"npm_", _ALNUM, 20),
    (rf"pypi-{_DIGIT}", _URL, 20),
    (r"ATATT3", _URL + "=", 40),
    (r"ATBB", _ALNUM, 28),
    (r"dckr_[po]at_", _URL, 20),
    (r"rubygems_", _HEX, 40),
    (r"cio", _ALNUM, 32),
    # messages
    (rf"(?:xox[abeprs]|xapp)-{_DIGIT}", r"A-Za-z0-9\-", 10),
    (r"SG\.[A-Za-z0-9_-]{16,64}+\.", _URL, 8),
    (r"key-", _HEX, 32),
    (r"[MNO][A-Za-z0-9]{23,27}\.[A-Za-z0-9_-]{6}\.", _URL, 5),
    # money
    (r"[spr]k_(?:live|test)_|whsec_", _ALNUM, 12),
    (rf"EAAA{_DIGIT}", _URL, 30),
    (r"sq0(?:atp|csp)-", _URL, 20),
    (r"access_token\$(?:production|sandbox)\$", r"a-z0-9$", 16),
    (r"shp(?:at|ss|ca|pa)_", _HEX, 32),
    # models
    (rf"[spr]k-{_DIGIT}", _URL, 16),
    (r"hf_", _ALNUM, 30),
    (r"gsk_|r8_", _ALNUM, 20),
    (rf"(?:xai|nvapi|pplx)-{_DIGIT}", _URL, 20),
    # infrastructure
    (r"hv[sbr]\.", _URL, 20),
    (r"dapi", r"a-f0-9\-", 32),
    (r"NRAK-", "A-Z0-9", 20),
    (r"sntry[su]_", _URL + "=+/", 30),
    (r"glsa_|glc_", _URL + "=+/", 20),
    (r"lin_(?:api|oauth)_", _ALNUM, 30),
    (r"pat[A-Za-z0-9]{14}\.", _HEX, 16),
    (r"PMAK-[a-f0-9]{24}-", _HEX, 8),
    (r"AGE-SECRET-KEY-1", "A-Z0-9", 20),
    (r"ntn_|secret_", _ALNUM, 30),
    (r"figd_|pscale_(?:tkn|pw|oauth)_", _URL, 20),
    (r"pul-|sbp_", _HEX, 40),
    (r"dp\.(?:pt|st|ct|sa|scim|audit)\.", _URL + ".", 30),
    # signed web tokens; a key file in base64
    (r"eyJ[A-Za-z0-9_-]{8,4096}+\.", _URL + ".", 8),
    (r"eyJhbGci|eyJ0eXAi|eyJraWQi", _URL, 24),
    (r"LS0tLS1CRUdJTi", _ALNUM + "+/=", 40),
)
LONGEST = 8_192  # characters of a token
#: No letter or digit may come before a token, except as the end of an escape.
_BEGINS = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-F]{2})|(?<=\\u[0-9a-f]{4}))"
#: Tokens of all vendors.
TOKENS = re.compile(
    f"{_BEGINS}(?:"
    + "|".join(rf"(?:{prefix})[{alphabet}]{{{least},{LONGEST}}}+" for prefix, alphabet, least in _PREFIXES)
    + ")"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Secrets of one shape. The group `secret` is redacted, or the whole match if there is no such group."""

    signs: tuple[str, ...]
    pattern: re.Pattern[str]


#: What may be at the beginning of a line in a diff, a quotation, a numbered listing, or a text inside JSON.
LEAD = r"(?:\s|\\{1,4}[nrt]|[+>|:→-]|\d{1,6}[\t→:])"
SHAPES: tuple[Shape, ...] = (
    Shape(
        ("private key",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:(?!-----)[\s\S]){0,16384}+-{5,7}END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            rf"|(?:{LEAD}{{0,16}}+[A-Za-z0-9+/=]{{16,200}}+){{0,2000}}"
            r"(?:[\s\\]{0,8}[A-Za-z0-9+/=]{1,200}+(?=\s{0,8}\Z))?)"
        ),
    ),
    Shape(
        ("private-lines",),
        re.compile(rf"Private-Lines: \d{{1,4}}(?P<secret>(?:{LEAD}{{1,16}}+[A-Za-z0-9+/=]{{4,80}}+(?![:-])){{1,400}})"),
    ),
    Shape(("hooks.slack.com",), re.compile(r"hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9/]{12,200}+)")),
    Shape(("/webhooks/",), re.compile(r"/webhooks/\d{6,20}/(?P<secret>[A-Za-z0-9_-]{24,200}+)")),
    Shape(("q~",), re.compile(r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{24,40}+")),  # Azure client secret
    Shape((".atlasv1.",), re.compile(r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{16,100}+")),  # Terraform
    Shape(("-us",), re.compile(r"[0-9a-f]{32}-us\d{1,2}(?!\d)")),  # Mailchimp
    Shape((":aa",), re.compile(r"\d{8,10}:AA[A-Za-z0-9_-]{30,64}+")),  # Telegram bot
)


def spans_of(shape: Shape, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Return the positions of the secrets of one shape."""
    group = "secret" if "secret" in shape.pattern.groupindex else 0
    return (match.span(group) for match in shape.pattern.finditer(text, start, end))
