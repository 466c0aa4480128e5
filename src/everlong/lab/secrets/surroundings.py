"""Where secrets occur in real work: sentences, commands, code, logs, JSON inside JSON, diffs, colours, wrapped lines.

A token may be alone; a value has a name before it; a snippet is inserted whole. The surroundings may change how a
secret is written, so each says again what must be removed.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from urllib.parse import quote

from everlong.lab.secrets.kind import Kind, Made, Place

__all__ = ["SURROUNDINGS", "Surrounding", "placed"]

RED, PLAIN = "\x1b[31m", "\x1b[0m"
SHORTEST_WRAPPED = 60  # characters; nobody wraps a shorter one


@dataclass(frozen=True, slots=True)
class Surrounding:
    """A place for secrets: its name, which secrets it accepts, and how the text around one is written."""

    name: str
    takes: frozenset[Place]
    put: Callable[[Random, Made, str], Made | None]


def placed(random: Random, kind: Kind, number: int) -> tuple[str, Made]:
    """Return one secret of a kind in the surroundings with that number, modulo their count, and their name."""
    fitting = [surrounding for surrounding in SURROUNDINGS if kind.place in surrounding.takes]
    made = kind.made(random)
    name = random.choice(kind.names)
    for turn in range(len(fitting)):
        surrounding = fitting[(number + turn) % len(fitting)]
        put = surrounding.put(random, made, name)
        if put is not None:
            return surrounding.name, put
    raise AssertionError(f"{kind.name}: no surrounding accepts it")


def _upper(name: str) -> str:
    return name.upper().replace(" ", "_")


def _snake(name: str) -> str:
    return name.replace(" ", "_")


def _camel(name: str) -> str:
    first, *others = name.split()
    return first + "".join(map(str.capitalize, others))


def _around(*forms: str) -> Callable[[Random, Made, str], Made]:
    """Fill in one of the forms: SECRET, UPPER_NAME, snake_name, camelName, kebab-name, dotted.name, plain name."""

    def put(random: Random, made: Made, name: str) -> Made:
        text = random.choice(forms)
        for mark, written in (
            ("UPPER_NAME", _upper(name)),
            ("snake_name", _snake(name)),
            ("camelName", _camel(name)),
            ("kebab-name", name.replace(" ", "-")),
            ("dotted.name", name.replace(" ", ".")),
            ("plain name", name),
        ):
            text = text.replace(mark, written)
        return Made(text.replace("SECRET", made.text), made.hidden)

    return put


def _as_json(text: str, hidden: tuple[str, ...], times: int) -> Made:
    """A text inside a JSON string, nested this many times."""
    for _ in range(times):
        text = json.dumps({"command": text, "timeout": 30}, ensure_ascii=times == 1)
        hidden = tuple(json.dumps(piece)[1:-1] for piece in hidden)
    return Made(text, hidden)


def _in_json(random: Random, made: Made, _: str) -> Made:
    inner = f"run --now\n{made.text}\necho done" if random.random() < 0.5 else f"cat <<X\n\t{made.text}\nX"
    return _as_json(inner, made.hidden, random.choice((1, 1, 2)))


def _named_in_json(random: Random, made: Made, name: str) -> Made:
    form = random.choice((f"export {_upper(name)}={made.text}", json.dumps({_snake(name): made.text, "a": 1})))
    return _as_json(form, made.hidden, random.choice((1, 1, 2)))


def _in_colours(_: Random, made: Made, __: str) -> Made:
    lines = made.text.split("\n")
    return Made("\n".join(f"{RED}{line}{PLAIN}" for line in lines) + "\n\x1b[2mready\x1b[0m", made.hidden)


def _named_in_colours(random: Random, made: Made, name: str) -> Made:
    if random.random() < 0.5:
        return Made(f"\x1b[1;36m{_snake(name)}{PLAIN}: \x1b[32m{made.text}{PLAIN}", made.hidden)
    return Made(json.dumps({"out": f"{RED}{_upper(name)}{PLAIN}={RED}{made.text}{PLAIN}"}), made.hidden)


def _in_diff(random: Random, made: Made, _: str) -> Made:
    sign = random.choice("+-")
    lines = "\n".join(f"{sign}{line}" for line in made.text.split("\n"))
    return Made(f"@@ -1,3 +1,4 @@ settings\n context = 1\n{lines}\n more = 2", made.hidden)


def _named_in_diff(_: Random, made: Made, name: str) -> Made:
    text = f"@@ -1,3 +1,4 @@\n-{_upper(name)}=\n+{_upper(name)}={made.text}\n PORT=8080"
    return Made(text, made.hidden)


def _numbered(random: Random, made: Made, _: str) -> Made:
    between = random.choice(("\t", "→", ": "))
    first = random.randrange(1, 400)
    lines = made.text.split("\n")
    return Made("\n".join(f"{first + at:6}{between}{line}" for at, line in enumerate(lines)), made.hidden)


def _wrapped(random: Random, made: Made, name: str) -> Made | None:
    if len(made.text) < SHORTEST_WRAPPED or made.hidden != (made.text,):
        return None
    columns = random.choice((40, 48, 64))
    pieces = tuple(made.text[at : at + columns] for at in range(0, len(made.text), columns))
    lead, end = random.choice((("", "\n"), (f"{_upper(name)}=", "\\\n"), (f"{_snake(name)}: ", "\n  ")))
    return Made(f"The value:\n{lead}{end.join(pieces)}\n\nThat was all of it.", pieces)


def _in_query(_: Random, made: Made, name: str) -> Made:
    value = quote(made.text, safe="-_.~")
    hidden = tuple(quote(piece, safe="-_.~") for piece in made.hidden)
    return Made(f"https://example.org/v1/items?page=2&{_snake(name)}={value}&sort=up", hidden)


TOKEN, NAMED, ANY, WHOLE = (
    frozenset[Place]({"token"}),
    frozenset[Place]({"token", "value"}),
    frozenset[Place]({"token", "snippet"}),
    frozenset[Place]({"snippet"}),
)
SURROUNDINGS: tuple[Surrounding, ...] = (
    Surrounding("bare", ANY, _around("SECRET")),
    Surrounding(
        "prose",
        TOKEN,
        _around(
            "Please use SECRET for the deploy.",
            "It worked with SECRET, so keep it.",
            "请用 SECRET 登录，谢谢。",
            "Nimm bitte SECRET dafür (nur heute).",
            "Use this one (SECRET) and not the old one.",
            'He wrote "SECRET" on the board.',
        ),
    ),
    Surrounding("block", WHOLE, _around("Here it is:\n\nSECRET\n\nThanks!", "```\nSECRET\n```", "> SECRET\n\nok")),
    Surrounding(
        "named prose",
        NAMED,
        _around(
            "The plain name is SECRET, keep it.",
            "plain name: SECRET",
            "Here is the plain name:\nSECRET\n",
            "- **plain name**: `SECRET`",
        ),
    ),
    Surrounding(
        "shell",
        NAMED,
        _around(
            "export UPPER_NAME=SECRET",
            "UPPER_NAME='SECRET' ./run.sh --fast",
            'export UPPER_NAME="SECRET" && make',
            "./tool --kebab-name SECRET --verbose",
            "./tool --kebab-name=SECRET",
            "set UPPER_NAME=SECRET",
            '$env:UPPER_NAME = "SECRET"',
        ),
    ),
    Surrounding(
        "code",
        NAMED,
        _around(
            'snake_name = "SECRET"',
            "const camelName = 'SECRET';",
            'camelName := "SECRET"',
            'let snake_name: &str = "SECRET";',
            'private static final String UPPER_NAME = "SECRET";',
            'client = Client(snake_name="SECRET", timeout=3)',
            "os.environ['UPPER_NAME'] = 'SECRET'",
            'ENV["UPPER_NAME"] ||= "SECRET"',
            "define('UPPER_NAME', 'SECRET');",
            '#define UPPER_NAME "SECRET"',
        ),
    ),
    Surrounding(
        "code without a name",
        TOKEN,
        _around('client = Client("SECRET")', "await login('SECRET')", 'x := connect("SECRET", 3)', "args = [`SECRET`]"),
    ),
    Surrounding(
        "log",
        NAMED,
        _around(
            "2024-05-01T12:00:00Z INFO worker[312] start snake_name=SECRET region=eu",
            'time=12:00:01 level=debug msg="loaded" snake_name="SECRET" n=3',
            "[12:00:02] DEBUG config {camelName: 'SECRET', port: 80}",
            "May  1 12:00:03 host app[7]: plain name: SECRET",
        ),
    ),
    Surrounding(
        "settings",
        NAMED,
        _around(
            '{"snake_name": "SECRET", "port": 80}',
            '{\n  "camelName": "SECRET"\n}',
            "app:\n  snake_name: SECRET\n  port: 80",
            "app:\n  camelName: 'SECRET'",
            '[app]\nsnake_name = "SECRET"',
            "[app]\nkebab-name = SECRET\nport = 80",
            "app.dotted.name=SECRET",
            "UPPER_NAME=SECRET\nPORT=80",
            "services:\n  web:\n    environment:\n      - UPPER_NAME=SECRET\n",
            "services:\n  web:\n    environment:\n      UPPER_NAME: SECRET\n",
            'variable "snake_name" {\n  default = "SECRET"\n}',
            "ENV UPPER_NAME=SECRET",
            "- name: UPPER_NAME\n  value: SECRET",
            "<camelName>SECRET</camelName>",
            "| plain name | SECRET |",
        ),
    ),
    Surrounding("JSON in a call", ANY, _in_json),
    Surrounding("named JSON in a call", NAMED, _named_in_json),
    Surrounding("colours", ANY, _in_colours),
    Surrounding("named colours", NAMED, _named_in_colours),
    Surrounding("diff", ANY, _in_diff),
    Surrounding("named diff", NAMED, _named_in_diff),
    Surrounding("numbered lines", ANY, _numbered),
    Surrounding("wrapped", TOKEN, _wrapped),
    Surrounding("query", NAMED, _in_query),
)
