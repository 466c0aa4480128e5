"""Secrets recognised by the name before them. Names stay, values go; code that only mentions secrets stays.

A name is recognised by its last word: `client_secret` is a `secret`. Between name and value there may be anything that
languages, shells, settings and people put there.
"""

import json
import re
from collections.abc import Iterator, Sequence

from everlong.summarize.secrets.values import Sort, is_bare_secret, is_quoted_secret

__all__ = ["PATTERNS", "named_secrets"]

#: Words for passwords, keys and tokens in many languages.
PASSWORD_WORDS = (
    *(
        "密码",
        "密碼",
        "口令",
        "パスワード",
        "暗証番号",
        "비밀번호",
        "암호",
        "passwort",
        "kennwort",
        "mot de passe",
        "contraseña",
    ),
    *(
        "clave de acceso",
        "palavra-passe",
        "senha",
        "parola",
        "пароль",
        "hasło",
        "heslo",
        "jelszó",
        "wachtwoord",
        "lösenord",
    ),
    *("passord", "adgangskode", "salasana", "şifre", "κωδικός", "mật khẩu", "kata sandi", "รหัสผ่าน", "पासवर्ड", "סיסמה"),
    *("كلمة المرور", "كلمة السر", "رمز عبور"),
)
TOKEN_WORDS = (
    "密钥",
    "密鑰",
    "令牌",
    "トークン",
    "토큰",
    "токен",
    "jeton",
    "schlüssel",
    "zugriffsschlüssel",
    "clé api",
)
#: The last words of names of secrets, what may follow them in the name, and what they say about the value.
_ENDINGS: tuple[tuple[str, str, Sort], ...] = (
    ("password", "s?", "password"),
    ("passwd", "", "password"),
    ("passphrase", "", "password"),
    ("passcode", "", "password"),
    ("pass", r"[ _-]?(?:w(?:or)?d|phrase|code)", "password"),
    ("pass", "", "pass"),
    ("pwd", "", "password"),
    ("psk", "", "password"),
    ("pw", "", "pass"),
    ("secret", r"(?:[ _-]?access)?(?:[ _-]?(?:key|id))?", "token"),
    ("token", "", "token"),
    ("credential", "s?", "token"),
    ("key", "(?:[ _-]?id)?", "key"),
    ("auth", "", "key"),
    ("session", "[ _-]?(?:id)?", "key"),
    ("sessid", "", "key"),
    ("sid", "", "key"),
    ("dsn", "", "key"),
    ("jwt", "", "key"),
    ("cookie", "", "key"),
    ("webhook", "(?:[ _-]?url)?", "key"),
    ("signature", "", "key"),
    *((word, "", "password") for word in PASSWORD_WORDS),
    *((word, "", "token") for word in TOKEN_WORDS),
)
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
#: Keys that are as secret as tokens, and keys that are not secret; by the word before "key".
_SECRET_KEY = re.compile(
    r"(?i)(?:api|access|account|private|encryption|signing|auth|app|master|storage|client|license|deploy|service|admin"
    r"|write|read|host)[ _-]?\Z"
)
_PUBLIC_KEY = re.compile(r"(?i)(?:public|primary|foreign|sort|cache|partition|unique|index)[ _-]?\Z")
LONGEST_WORD = 16

_SPACE = r"(?:\s|\\{1,4}[nrt])"
_AFTER = r"(?:_?\d{1,3}|_(?:prod|production|dev|test|staging|live|old|new|b64|base64|value))?"
#: What may be between a name and its value.
_BETWEEN = (
    r"(?:"
    r"(?P<typed>[ \t]{0,2}:[ \t]{0,2}[&A-Za-z_][\w<>\[\]|?&'. ]{0,24}=\s{0,4}(?=[brf]?\\{0,3}[\"'`]))"
    rf"|(?P<plain>\\{{0,3}}[\"'`]?[*_]{{0,2}}{_SPACE}{{0,8}}(?::=|=>|={{1,3}}|\|\|=|\?=|[:：]|\\{{1,2}}uff1a)[*_]{{0,2}}{_SPACE}{{0,8}})"
    r"|(?P<says>\s{1,4}(?:is|was|ist|war|lautet|est|es|é|è|är|er|jest|on|это|adalah|là|[-–—])\s{0,4}[:：]?\s{1,4}"
    r"|\s{0,2}(?:是|为|為|改为|改成|设为|設為|は|が|은|는)[:：]?\s{0,4})"
    rf"|(?P<field>\\{{0,3}}[\"'`]?,?{_SPACE}{{1,12}}[+-]?\s{{0,12}}\\{{0,3}}[\"']?value\\{{0,3}}[\"']?\s{{0,4}}[:=]\s{{0,4}}"
    rf"|\\{{0,3}}[\"'`]\s{{0,4}}\{{{_SPACE}{{0,12}}[+-]?\s{{0,12}}default\s{{0,4}}=\s{{0,4}})"
    r"|(?P<index>\\{0,3}[\"'`]\]\s{0,4}(?:\|\|)?=\s{0,4}(?=[brf]?\\{0,3}[\"'`]))"
    r"|(?P<listed>\\{0,3}[\"'`],\s{0,4}(?=[brf]?\\{0,3}[\"'`])|\s{0,20}\|\s{0,20})"
    r"|(?P<tag>(?:\\{0,3}[\"'])?(?:\s[^<>\n]{0,80}+)?>)"
    r"|(?P<space>[ \t]{1,4})"
    r")"
    r"(?:[brf]?\\{0,3}(?P<quote>[\"'`]))?"
)


def _written(word: str) -> set[str]:
    """Return the spellings of a word: its cases, and how JSON escapes it."""
    forms = {word, word.upper(), word.capitalize()}
    escaped = {json.dumps(form)[1:-1] for form in forms}
    return forms | escaped | {form.replace("\\", "\\\\") for form in escaped}


_WORD_OF = {form: word for word, _, _ in _ENDINGS for form in _written(word)}
_FORMS = sorted(_WORD_OF, key=lambda form: (-len(form), form))


def _any_of(forms: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for any of the words, grouped by first letter, so that most positions fail at once."""
    by_letter: dict[str, list[str]] = {}
    for form in forms:
        by_letter.setdefault(form[0], []).append(re.escape(form[1:]))
    return re.compile("|".join(f"{re.escape(letter)}(?:{'|'.join(rest)})" for letter, rest in by_letter.items()))


_ANY_WORD = _any_of(_FORMS)
_FOREIGN = tuple(form for form in _FORMS if not _WORD_OF[form].isascii())
_PLAIN_WORD = _any_of([form for form in _FORMS if _WORD_OF[form].isascii()])
_TAILS: dict[str, list[tuple[re.Pattern[str], Sort]]] = {}
for _word, _rest, _sort in _ENDINGS:
    _TAILS.setdefault(_word, []).append((re.compile(rf"(?i:{_rest}{_AFTER}){_BETWEEN}"), _sort))
_FLAG = re.compile(r"--[a-z-]{0,30}\Z")
LONGEST_FLAG = 32
#: What is before the name in markup: `<password>`, or `<property name="password">`.
_ELEMENT = re.compile(
    r"<(?:[\w:.-]{0,60}|(?:property|entry|add|param|setting|string|option|env)\s[^<>\n]{0,80})\Z", re.IGNORECASE
)
LONGEST_ELEMENT = 100

LOOKED_AT = 128  # characters of a value that decide whether it is a secret
LONGEST_VALUE = 16_384
_IN_BARE = r"[^\s\"'`,;&<>|\\，。；、）】」]"
_BARE = re.compile(rf"{_IN_BARE}{{4,{LOOKED_AT}}}+")
_BARE_REST = re.compile(rf"{_IN_BARE}{{0,{LONGEST_VALUE}}}+")
_QUOTED = {quote: re.compile(rf"[^{quote}\n\\]{{4,{LOOKED_AT}}}+") for quote in "\"'`"}
_QUOTED_REST = {quote: re.compile(rf"[^{quote}\n\\]{{0,{LONGEST_VALUE}}}+") for quote in "\"'`"}
PATTERNS = (
    _SECRET_KEY,
    _PUBLIC_KEY,
    _ANY_WORD,
    _PLAIN_WORD,
    _FLAG,
    _ELEMENT,
    _BARE,
    _BARE_REST,
    *_QUOTED.values(),
    *_QUOTED_REST.values(),
    *(tail for tails in _TAILS.values() for tail, _ in tails),
)
HIDDEN = "[redacted]"
_IN_ADDRESS = frozenset("?&;")  # before the name of a URL parameter
_BREAK = re.compile(r"\n|\\n")
_ENDS = ".:)]}"  # end a sentence or brackets, not a value


def named_secrets(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the positions of values after the name of a secret. A value that is not a secret is searched for names."""
    at = start
    piece = text[start:end]
    words = _ANY_WORD if any(form in piece for form in _FOREIGN) else _PLAIN_WORD
    while (word := words.search(text, at, end)) is not None:
        at = word.end()
        found = _value_after(text, word, end)
        if found is not None:
            yield found
            at = found[1]


def _value_after(text: str, word: re.Match[str], end: int) -> tuple[int, int] | None:
    for tail, usual in _TAILS[_WORD_OF[word[0]]]:
        between = tail.match(text, word.end(), end)
        sort = _sort_at(text, word, usual) if between is not None else None
        if between is not None and sort is not None:
            return _secret_at(text, word, between, sort, end)
    return None


def _sort_at(text: str, word: re.Match[str], usual: Sort) -> Sort | None:
    """Return what the name says about its value; None if the word is only the end of another, as in `monkey`."""
    before = text[max(0, word.start() - LONGEST_WORD) : word.start()]
    if usual == "key" and word[0].lower() == "key":
        if _SECRET_KEY.search(before):
            return "token"
        if _PUBLIC_KEY.search(before):
            return None
    if usual in ("key", "pass") and before[-1:] in _LETTERS and word[0][0] in _LETTERS:
        return None
    return usual


def _secret_at(text: str, word: re.Match[str], between: re.Match[str], sort: Sort, end: int) -> tuple[int, int] | None:
    quote = between["quote"]
    flag = _FLAG.search(text, max(0, word.start() - LONGEST_FLAG), word.start()) is not None
    if between["space"] and not flag and not (quote and word[0].isupper()):
        return None
    value = (_QUOTED[quote] if quote else _BARE).match(text, between.end(), end)
    if value is None or value[0].startswith(HIDDEN) or not _is_secret(text, word, between, sort, value[0]):
        return None
    rest = (_QUOTED_REST[quote] if quote else _BARE_REST).match(text, value.end())
    last = value.end() if rest is None else rest.end()
    while not quote and text[last - 1] in _ENDS and last - 1 > between.end():
        last -= 1
    return between.end(), last


def _is_secret(text: str, word: re.Match[str], between: re.Match[str], sort: Sort, value: str) -> bool:
    if between["tag"]:
        follows = between.end() + len(value)
        element = _ELEMENT.search(text, max(0, word.start() - LONGEST_ELEMENT), word.start()) is not None
        given = element and sort in ("password", "pass")
        return text[follows : follows + 1] == "<" and is_bare_secret(value, sort, given)
    if between["listed"]:
        return " " not in value and is_bare_secret(value, sort, given=False)
    if between["quote"]:
        after = between.end() + len(value)
        return text[after + 1 : after + 2] != ":" and is_quoted_secret(value, sort)
    if _BREAK.search(between[0]) and not _is_alone(text, between.end(), value):
        return False
    alone = word.start() == 0 or not (text[word.start() - 1].isalnum() or text[word.start() - 1] in "_-.")
    if sort == "pass" and alone and not word[0].islower():  # test runners print PASS
        return False
    in_address = sort in ("password", "pass") and text[word.start() - 1 : word.start()] in _IN_ADDRESS
    given = between["plain"] == "=" and (word[0].isupper() or in_address)
    flag = _FLAG.search(text, max(0, word.start() - LONGEST_FLAG), word.start()) is not None
    return is_bare_secret(value, sort, given or flag)


def _is_alone(text: str, at: int, value: str) -> bool:
    """Whether a value on the line after its name is the whole line, and not another name."""
    follows = text[at + len(value) : at + len(value) + 1]
    return (not follows or follows in "\r\n\\") and "=" not in value.rstrip("=") and value[-1] != ":"
