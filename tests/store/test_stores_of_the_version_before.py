"""Stores that the version before wrote still say the same, by every call of the contract.

`fixtures/` was written by that version and is never written again. `expected.json` has what it said then: under "all"
what the three engines say alike, under "own" what each of them says otherwise (scores, what a format cannot hold).
"""

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest

from everlong.core import Entry, Hit, Message, Point, Recalled, Row, Withdrawal, encode
from everlong.engine import Threads
from everlong.store import open_store
from tests.store.postgres_server import session_server

FIXTURES = Path(__file__).parent / "fixtures"
QUERIES = ("How many boats are at the pier", "灯塔管理员的电话号码")
FACT_KINDS = ("window", "calibration", "todo", "app")
LONGEST = 160  # characters; longer texts stand in expected.json as their beginning and a hash


@pytest.fixture(autouse=True)
def local_time_is_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """nanobot's files have times without a zone."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A copy of the store that the engine named by the parameter wrote."""
    match request.param:
        case "sqlite":
            return shutil.copy(FIXTURES / "sqlite" / "chat.db", tmp_path / "chat.db").as_posix()
        case "jsonl":
            return f"jsonl:{shutil.copytree(FIXTURES / 'jsonl', tmp_path / 'jsonl')}"
        case _:
            url = session_server().new_database()
            with psycopg.connect(url, autocommit=True) as link:
                link.execute((FIXTURES / "postgres.sql").read_bytes())
            return url


@pytest.mark.parametrize(
    ("engine", "url"), [(name, name) for name in ("sqlite", "jsonl", "postgres")], indirect=["url"]
)
def test_a_store_of_the_version_before_says_what_it_said(engine: str, url: str) -> None:
    recorded = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))
    expected = {
        key: value
        for key, value in (recorded["all"] | recorded["own"][engine]).items()
        if not key.startswith("app_settings")  # how the app reads the facts of kind "app", which are compared here
    }
    for _ in range(2):  # the second time with what was derived at the first
        with open_store(url) as store:
            assert json.loads(json.dumps(dict(_leaves(_content(store))))) == expected


def test_a_store_of_the_version_before_grows_and_keeps_what_it_had(tmp_path: Path) -> None:
    path = shutil.copy(FIXTURES / "sqlite" / "chat.db", tmp_path / "chat.db")
    with open_store(str(path)) as store:
        rows = list(store.read("harbour"))
        message = next(row.entry for row in rows if isinstance(row.entry, Message))
        store.append("harbour", [message, Recalled(len(rows), message)])
        assert list(store.read("harbour", 0, len(rows))) == rows
        assert [row.entry for row in store.read("harbour", len(rows))] == [message, Recalled(len(rows), message)]


def _content(store: Threads) -> dict[str, Any]:
    threads = store.threads(archived=None)
    return {
        "threads": {thread.id: _said_before(_plain(thread)) for thread in threads},
        "order": [thread.id for thread in threads],
        "listed": [thread.id for thread in store.threads()],
        "by_thread": {thread.id: _thread_content(store, thread.id) for thread in threads},
        "search": {query: [_hit(hit) for hit in store.search(query)] for query in QUERIES},
        "search_of_ann": {query: [_hit(hit) for hit in store.search(query, owner="ann")] for query in QUERIES},
        "facts": {kind: store.facts(kind) for kind in FACT_KINDS},
        "counts": store.counts("o200k_base", ["0" * 16, "f" * 16, "a" * 16]),
        "warnings": list(getattr(store, "warnings", ())),
    }


def _said_before(thread: dict[str, Any]) -> dict[str, Any]:
    """A thread without what that version did not tell."""
    return {name: value for name, value in thread.items() if name != "standing"}


def _thread_content(store: Threads, thread: str) -> dict[str, Any]:
    opened = store.open(thread)
    edits = opened.point.entry.edits if opened.point and isinstance(opened.point.entry, Point) else ()
    original = None
    if edits and edits[0].ref:
        original = (store.original(thread, edits[0].ref) or b"").decode("utf-8", "surrogatepass")[:200]
    return {
        "rows": [_row(row) for row in store.read(thread)],
        "view": [_digest(encode(message)) for message in opened.messages],
        "points": [[row.order, stands] for row, stands in store.points(thread)],
        "pins": [_plain(pin) for pin in store.pins(thread)],
        "last": [row.order for row in store.last(thread, 3)],
        "events": [_plain(event) for event in store.events(thread)],
        "unfinished": [event.id for event in store.unfinished(thread)],
        "search": {query: [_hit(hit) for hit in store.search(query, thread=thread)] for query in QUERIES},
        "original": original,
    }


def _row(row: Row) -> dict[str, Any]:
    told = {"order": row.order, "id": row.id, "time": row.time.isoformat(), **_entry(row.entry)}
    if row.id.startswith("nanobot-"):  # its summaries are values since, so that every preset can send them
        told["account"] = ""
    return told


def _entry(entry: Entry) -> dict[str, Any]:
    match entry:
        case Message():
            return {"kind": "message", "message": json.loads(encode(entry))}
        case Point(summary=summary):
            plain = {field.name: _plain(getattr(entry, field.name)) for field in fields(entry)}
            return {"kind": "point", **plain, "summary": [json.loads(encode(message)) for message in summary]}
        case Withdrawal(point):
            return {"kind": "withdrawal", "point": point}
        case Recalled(before, message):
            return {"kind": "recalled", "before": before, "message": json.loads(encode(message))}


def _hit(hit: Hit) -> dict[str, Any]:
    around = [row.order for row in hit.around]
    return {"thread": hit.thread, "order": hit.row.order, "score": round(hit.score, 9), "around": around}


def _plain(value: Any) -> Any:
    """The value as JSON: enums by value, times in ISO form."""
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.isoformat()
        case list() | tuple():
            return [_plain(item) for item in value]
        case _ if is_dataclass(value):
            return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Leaf by leaf; a row, an event and a hit are leaves."""
    if isinstance(value, dict) and value and not {"kind", "score"} & value.keys():
        for key in value:
            yield from _leaves(value[key], (*path, str(key)))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, str(number)))
    else:
        yield ".".join(path), _shortened(value)


def _shortened(value: Any) -> Any:
    match value:
        case str() if len(value) > LONGEST:
            return _digest(value)
        case dict():
            return {key: _shortened(item) for key, item in value.items() if item not in (None, "")}
        case list():
            return [_shortened(item) for item in value]
        case _:
            return value


def _digest(text: str) -> str:
    return text[:60] + " " + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
