"""Secrets recognised by what surrounds them: headers, addresses, commands and configuration files."""

import re

from everlong.summarize.secrets.shapes import LEAD, Shape

__all__ = ["FORMS"]

_NO_VARIABLE = r"(?![$<{*%\[])"
_QUOTE = r"\\{0,3}[\"']?"
_WORD = r"[^\s\"'\\]"

FORMS: tuple[Shape, ...] = (
    Shape(
        ("bearer", "basic"),
        re.compile(
            r"(?i)(?:bearer|basic)\s{1,4}(?=[A-Za-z._~+/=-]{0,80}+\d|[A-Za-z0-9+/]{0,80}+=)"
            r"(?P<secret>[A-Za-z0-9._~+/=-]{12,4096}+)"
        ),
    ),
    Shape(
        ("authorization",),
        re.compile(
            rf"(?i)authorization\\{{0,3}}[\"']?\s{{0,4}}[:=,]\s{{0,4}}{_QUOTE}(?:bearer|basic|token|ssws|digest|apikey|key)"
            r"\s{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{12,4096}+)"
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
    Shape(  # these programs take the option letter and the password as one word
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
    Shape(("jdbc:",), re.compile(r"jdbc:[a-z]{2,20}:[a-z]{2,12}:[\w.-]{1,64}/(?P<secret>[^\s/@\"'\\]{3,200}+)@")),
    Shape(  # commands with a one-letter option for the password
        ("sshpass", " login -", "mongo", "redis-cli", "ldap", "twine", "sqlcmd", "mosquitto", "7z ", "zip -", "rar "),
        re.compile(
            r"(?:sshpass|(?:docker|podman|az|skopeo|oc|helm registry) login|mongo[a-z]{0,10}|redis-cli|ldap[a-z]{2,12}"
            r"|twine upload|sqlcmd|mosquitto_[a-z]{3}|7za?|zip|unzip|rar|unrar)\s(?:[^\n|;]{0,200}?\s)?"
            rf"-(?:p|P|a|w|pw)[ =]?{_QUOTE}(?!-){_NO_VARIABLE}"
            rf"(?=[^\s\"'\\]{{0,80}}?[\d!@#%^&*+=~])(?P<secret>{_WORD}{{4,200}}+)"
        ),
    ),
    Shape(
        ("storepass", "keypass", "passin", "passout", "pass:"),
        re.compile(
            rf"-(?:(?:store|key|srcstore|deststore)pass |pass(?:in|out)? pass:){_QUOTE}{_NO_VARIABLE}"
            rf"(?P<secret>{_WORD}{{4,200}}+)"
        ),
    ),
    Shape(
        ("identified", "password"),
        re.compile(
            r"(?i:identified\s{1,4}(?:with\s{1,4}[\w\"']{1,40}\s{1,4})?(?:by|as)(?:\s{1,4}password)?|(?<![\w.])password)"
            rf"\s{{0,4}}\(?\s{{0,4}}\\{{0,3}}'{_NO_VARIABLE}(?P<secret>[^'\n\\]{{4,200}}+)'?"
        ),
    ),
    Shape(  # password hashes: .htpasswd, shadow, Django
        ("$",),
        re.compile(
            r"(?:\$(?:apr1|[1567y]|2[abxy]?|argon2(?:id|i|d)|scrypt|pbkdf2[a-z0-9-]{0,12})|pbkdf2_sha\d{1,3}|bcrypt_sha256)"
            r"(?P<secret>\$[A-Za-z0-9./+=,$-]{20,400}+)"
        ),
    ),
    Shape(
        ("sha}", "sha256}", "sha512}"), re.compile(r"\{S?SHA(?:256|512)?\}(?P<secret>[A-Za-z0-9+/]{20,200}+={0,2}+)")
    ),
    Shape(("wifi:",), re.compile(r"WIFI:[^\n]{0,80}?P:(?P<secret>[^;\n]{4,100}+);")),
    Shape(  # .npmrc
        ("_auth", "_password"),
        re.compile(
            r"_(?:auth(?:Token)?|password)(?:\s{0,2}=\s{0,2}| )"
            rf"{_QUOTE}{_NO_VARIABLE}(?P<secret>[A-Za-z0-9+/=._~-]{{12,4096}}+)"
        ),
    ),
    Shape(  # a Kubernetes Secret: all its values
        ("kind: secret",),
        re.compile(
            rf"kind: Secret(?:(?!kind:|---)[\s\S]){{0,2000}}?[\n\\n>|→+-]{LEAD}{{0,16}}+(?:data|stringData):"
            rf"(?P<secret>(?:{LEAD}{{1,24}}+[\w.-]{{1,80}}: [^\s\\]{{1,4096}}+){{1,40}})"
        ),
    ),
)
