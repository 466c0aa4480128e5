"""Secrets that are known by the form around them: headers, addresses, commands and files of programs."""

import re

from everlong.summarize.secrets.shapes import LEAD, Shape

__all__ = ["FORMS"]

_NO_VARIABLE = r"(?![$<{*%\[])"
_QUOTE = r"\\{0,3}[\"']?"
_WORD = r"[^\s\"'\\]"

FORMS: tuple[Shape, ...] = (
    Shape(
        ("bearer", "basic", "authorization"),
        re.compile(
            rf"(?i)(?:bearer|basic|authorization[\"']?\s{{0,4}}[:=,]\s{{0,4}}{_QUOTE}(?:token|ssws))\s{{1,4}}"
            r"(?=[A-Za-z._~+/=-]{0,80}+\d|[A-Za-z0-9+/]{0,80}+=)(?P<secret>[A-Za-z0-9._~+/=-]{12,4096}+)"
        ),
    ),
    Shape(
        ("://",),
        re.compile(r"://(?P<secret>[^\s/@:'\"<>\\]{0,200}+:(?![$<{*%])[^\s/@'\"<>\\]{1,400}|[A-Za-z0-9_-]{20,200}+)@"),
    ),
    Shape(
        ("cookie",),
        re.compile(
            rf"(?i)cookie[\"']?\s{{0,4}}[:=]\s{{0,4}}{_QUOTE}(?=[\w.-]{{1,64}}=)(?P<secret>[^\r\n\"'\\]{{4,4096}}+)"
        ),
    ),
    Shape(
        ("-b ", "--cookie"),
        re.compile(
            rf"(?:-b(?<![A-Za-z0-9-]-b) |--cookie[ =]){_QUOTE}(?=[\w.-]{{1,64}}=)(?P<secret>[^\s\"'\\]{{4,4096}}+)"
        ),
    ),
    Shape(
        ("?", "&"),
        re.compile(
            r"[?&](?i:x-amz-)?(?i:sig|signature|key|auth|code|secret|sid|session)="
            r"(?=[A-Za-z_%-]{0,80}+\d)(?P<secret>[^\s&#\"'<>\\]{8,4096}+)"
        ),
    ),
    Shape(
        ("-u", "--user", "http -a", "https -a"),
        re.compile(
            rf"(?:-u(?<![A-Za-z0-9-]-u) ?|--user[ =]{{1,2}}|https? -a ){_QUOTE}[\w.@-]{{1,64}}:"
            rf"{_NO_VARIABLE}(?!\d{{1,6}}(?:\s|$))(?P<secret>{_WORD}{{3,200}}+)"
        ),
    ),
    Shape(  # the letter and the password in one word, as these programs want it
        ("mysql", "mariadb"),
        re.compile(
            rf"(?:mysql|mariadb)[a-z_-]{{0,20}}\s(?:[^\n|;]{{0,200}}\s)?-p(?!\s){_QUOTE}"
            rf"{_NO_VARIABLE}(?P<secret>{_WORD}{{3,200}}+)"
        ),
    ),
    Shape(  # .netrc
        ("login",),
        re.compile(
            rf"login{LEAD}{{1,24}}+[^\s\\]{{1,64}}{LEAD}{{1,24}}+password{LEAD}{{1,8}}+"
            rf"{_NO_VARIABLE}(?P<secret>{_WORD}{{4,200}}+)"
        ),
    ),
    Shape(
        ("password ",),
        re.compile(rf"\bconnect [^\s]{{1,60}} password {_NO_VARIABLE}(?P<secret>{_WORD}{{8,200}}+)"),
    ),
    Shape(  # .pgpass
        (":5432:", ":5433:", ":6432:"),
        re.compile(
            rf":(?:5432|5433|6432):[\w*.-]{{1,64}}:[\w*.@-]{{1,64}}:{_NO_VARIABLE}(?P<secret>{_WORD}{{4,200}}+)"
        ),
    ),
    Shape(("wifi:",), re.compile(r"WIFI:[^\n]{0,80}?P:(?P<secret>[^;\n]{4,100}+);")),
    Shape(  # .npmrc
        ("_auth", "_password"),
        re.compile(
            r"_(?:auth(?:Token)?|password)(?:\s{0,2}=\s{0,2}| )"
            rf"{_QUOTE}{_NO_VARIABLE}(?P<secret>[A-Za-z0-9+/=._~-]{{12,4096}}+)"
        ),
    ),
    Shape(  # a secret of Kubernetes: every value of it
        ("kind: secret",),
        re.compile(
            rf"kind: Secret(?:(?!kind:|---)[\s\S]){{0,2000}}?[\n\\n>|→+-]{LEAD}{{0,16}}+(?:data|stringData):"
            rf"(?P<secret>(?:{LEAD}{{1,24}}+[\w.-]{{1,80}}: [^\s\\]{{1,4096}}+){{1,40}})"
        ),
    ),
)
