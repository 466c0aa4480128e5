"""Attack on the app's API over HTTP: every route of its table, with wrong names, numbers, queries and bodies.

A finding is an answer of 500 or more, or an error that is not JSON with one line. The app and the model it talks to run
on this machine; no value that is tried is the address of anything else.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from random import Random
from typing import Any

from tests.attack.fuzz_formats import REFUSED, VALID
from tests.attack.mutations import JSON_JUNK
from tests.web.running import PAGE, Page, RunningApp, an_app

from everlong.web import Guard, web_routes

__all__ = ["AppFinding", "attack_app"]

#: In the place of a name in a path; already written as a path is.
ODD_NAMES = (
    "%20",
    "..",
    "%2e%2e",
    "%00",
    "%ff",
    "%ED%A0%BD",
    "%F0%9F%98%80",
    "a" * 300,
    "a%2Fb",
    "None",
    "0",
    "-1",
    "%0d%0a",
    "main",
    "x%20y",
    "%25",
    "*",
    "%3F",
    "%22%27",
    "1e9",
)
ODD_NUMBERS = ("0", "1", "2", "7", "99999999999999999999999", "00", "2147483648", "9223372036854775808")
QUERIES = (
    "limit",
    "before",
    "after",
    "start",
    "q",
    "query",
    "archived",
    "skip",
    "from",
    "days",
    "at",
    "around",
    "order",
    "language",
)
VALUES = (
    "",
    "0",
    "-1",
    "99999999999999999999",
    "x",
    "%ff",
    "%00",
    "true",
    "null",
    "1e999",
    "NaN",
    "%F0%9F%98%80",
    "a" * 500,
    "1&limit=2",
)
FIELDS = (
    "text",
    "title",
    "archived",
    "settings",
    "metadata",
    "model",
    "images",
    "files",
    "focus",
    "order",
    "preset",
    "name",
    "key",
    "what",
    "limit",
    "answer",
    "id",
    "call",
    "password",
    "max_tokens",
    "context",
    "budget",
    "pins",
    "row",
    "at",
    "source",
    "thread",
    "language",
    "tools",
    "workspace",
    "approve",
    "allow",
    "provider",
    "window",
    "temperature",
)
PAGES = ("/", "/diagrams.html", "/index.html")  # 503 until the page is built, and nothing that is sent changes them
STREAMS = ("/everlong/api/events", "/everlong/api/live", "/everlong/api/threads/{thread}/events")


@dataclass(frozen=True)
class AppFinding:
    """What should not have happened, and the request with which it did."""

    number: int
    said: str
    body: Any


def attack_app(numbers: Iterable[int]) -> Iterator[str | AppFinding]:
    """What became of the request of each number, at one app."""
    with an_app() as (app, _):
        routes = _routes(app)
        page, known = app.page(), ["none"]
        for count, number in enumerate(numbers):
            if count % 100 == 0:
                known = _threads(page)
            dice = Random(f"app/{number}")
            method, template = dice.choice(routes)
            path, data = _path(template, known, dice), _body(dice) if method != "GET" else None
            said = _judged(app.port, method, path, data, streams=template in STREAMS)
            shown = f"{method} {path} {(data or b'')[:2_000].decode(errors='replace')}"
            yield said if said in (VALID, REFUSED) else AppFinding(number, f"{method} {template}: {said}", shown)


def _routes(app: RunningApp) -> list[tuple[str, str]]:
    table = [route for route in web_routes(app.state, Guard()) if route.path not in PAGES]
    return [(method, route.path) for route in table for method in sorted(route.methods or ()) if method != "HEAD"]


def _threads(page: Page) -> list[str]:
    """Threads to aim at: an empty one, and one in which something was said."""
    empty, full = page.thread(), page.thread()
    page.say(full, "hello")
    return [empty, full, full]


def _path(template: str, known: list[str], dice: Random) -> str:
    def filled(found: re.Match[str]) -> str:
        if found[1] == "thread" and dice.random() < 0.8:
            return dice.choice(known)
        return dice.choice(ODD_NUMBERS if "int" in found[0] else ODD_NAMES)

    path = re.sub(r"\{(\w+)(?::\w+)?\}", filled, template)
    if dice.random() < 0.5:
        asked = (f"{dice.choice(QUERIES)}={dice.choice(VALUES)}" for _ in range(dice.randint(1, 3)))
        path += "?" + "&".join(asked)
    return path.replace("?", "%3F", path.count("?") - 1) if path.count("?") > 1 else path


def _body(dice: Random) -> bytes:
    if dice.random() < 0.15:
        whole = (
            b"",
            b"{",
            b"[]",
            b"null",
            b"\xff",
            b'"x"',
            b"7",
            b"{}",
            b"[" * 50_000,
            b'{"text": "\\ud83d"}',
            b'{"a":1,"a":2}',
        )
        return dice.choice(whole)
    fields = {dice.choice(FIELDS): dice.choice(JSON_JUNK)() for _ in range(dice.randint(1, 4))}
    if dice.random() < 0.4:
        fields["text"] = "hello"
    if dice.random() < 0.3:
        fields["settings"] = {dice.choice(FIELDS): dice.choice(JSON_JUNK)() for _ in range(2)}
    return json.dumps(fields).encode()


def _judged(port: int, method: str, path: str, data: bytes | None, *, streams: bool) -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, data, PAGE)
        answer = connection.getresponse()
        if answer.status >= 500:
            return f"status {answer.status}: {answer.read()[:120]!r}"
        if streams and answer.status == 200:
            return VALID
        told = answer.read()
    except (HTTPException, OSError) as error:
        return f"no answer: {type(error).__name__} {error}"
    finally:
        connection.close()
    if answer.status < 400:
        return VALID
    return REFUSED if answer.status in (404, 405) or _is_clear(told) else f"no clear line: {told[:120]!r}"


def _is_clear(told: bytes) -> bool:
    try:
        value = json.loads(told)
    except ValueError:
        return False
    line = value.get("error") if isinstance(value, dict) else None
    line = line.get("message") if isinstance(line, dict) else line
    return isinstance(line, str) and 0 < len(line) < 500 and "\n" not in line and "Traceback" not in line
