"""One bad row costs itself alone: the others are read, it is named by its place, and nothing of it is told or lost."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Protocol

import psycopg
import pytest

from everlong.core import Event, EventKind, Message, Point, Withdrawal
from everlong.store import PostgresThreads, exported, open_store
from everlong.store.damage import NOTE
from tests.core.build import assistant, system, user
from tests.store.contract.entries import point
from tests.store.engines import START
from tests.store.jsonl.session_files import path_of
from tests.store.postgres_server import database_url, drop_database

SECRET = "the number of the safe is 4711"
SAID = [system("Be brief."), user("one"), assistant("two"), user(SECRET), assistant("four"), user("five")]
BAD = 3  # the row that is damaged


class Place(Protocol):
    """A store, and how parts of it are damaged behind its back."""

    url: str
    #: How the damaged row is named.
    named: str
    #: Whether rows have numbers of their own, so that a note can stand where one was.
    numbered: bool

    def spoil_row(self, order: int, text: str) -> None: ...

    def spoil_first_event(self) -> None: ...

    def spoil_settings(self) -> None: ...

    def content(self) -> bytes: ...

    def close(self) -> None: ...


class SqlitePlace:
    named, numbered = f"thread 't', row {BAD} ", True

    def __init__(self, folder: Path) -> None:
        self._path = folder / "threads.db"
        self.url = str(self._path)

    def _do(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self._path)) as db, db:
            db.execute(statement, values)

    def spoil_row(self, order: int, text: str) -> None:
        one = "(SELECT body FROM log JOIN threads ON number = thread WHERE threads.name = 't' AND position = ?)"
        self._do(f"UPDATE bodies SET body = ? WHERE number = {one}", text, order)

    def spoil_first_event(self) -> None:
        self._do("UPDATE events SET body = '{' WHERE number = (SELECT min(number) FROM events)")

    def spoil_settings(self) -> None:
        self._do("UPDATE threads SET settings = ? WHERE name = 't'", SECRET)

    def content(self) -> bytes:
        return self._path.read_bytes()

    def close(self) -> None: ...


class PostgresPlace:
    named, numbered = f"thread 't', row {BAD} ", True

    def __init__(self, _folder: Path) -> None:
        self.url = database_url()
        PostgresThreads(self.url).close()

    def spoil_row(self, order: int, text: str) -> None:
        with psycopg.connect(self.url) as link:
            query = "(SELECT number FROM everlong.threads WHERE id = 't')"
            link.execute(f"UPDATE everlong.rows SET body = %s WHERE thread = {query} AND place = %s", (text, order))

    def spoil_first_event(self) -> None:
        with psycopg.connect(self.url) as link:
            link.execute("UPDATE everlong.events SET body = '{' WHERE place = 0")

    def spoil_settings(self) -> None:
        with psycopg.connect(self.url) as link:
            link.execute("UPDATE everlong.threads SET settings = %s WHERE id = 't'", (SECRET.encode(),))

    def content(self) -> bytes:
        with psycopg.connect(self.url) as link:
            return b"".join(body.encode() for (body,) in link.execute("SELECT body FROM everlong.rows"))

    def close(self) -> None:
        drop_database(self.url)


class JsonlPlace:
    named, numbered = f"line {BAD + 2}:", False

    def __init__(self, folder: Path) -> None:
        self._path = path_of(folder / "sessions", "t")
        self.url = f"jsonl:{self._path.parent}"

    def _change(self, path: Path, number: int, line: bytes) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        lines[number] = line + b"\n"
        path.write_bytes(b"".join(lines))

    def spoil_row(self, order: int, text: str) -> None:
        self._change(self._path, order + 1, text.encode())  # the first line has the metadata

    def spoil_first_event(self) -> None:
        self._change(self._path.with_suffix(".events.jsonl"), 0, b"{")

    def spoil_settings(self) -> None:
        header = json.loads(self._path.read_bytes().splitlines()[0])
        header["metadata"]["everlong"]["settings"] = SECRET
        self._change(self._path, 0, json.dumps(header).encode())

    def content(self) -> bytes:
        return b"".join(each.read_bytes() for each in self._path.parent.glob("*.jsonl*"))

    def close(self) -> None: ...


PLACES = {"sqlite": SqlitePlace, "jsonl": JsonlPlace, "postgres": PostgresPlace}


@pytest.fixture(params=PLACES.values(), ids=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made: Place = request.param(tmp_path)
    with open_store(made.url) as store:
        store.create("other")
        store.append("other", [user("elsewhere")])
        store.create("t", title="A talk")
        store.append("t", SAID)
    yield made
    made.close()


#: The body of a row that cannot be read, with what was said still in it.
DAMAGED = {
    "cut off": f'{{"role":"user","parts":[{{"type":"text","text":"{SECRET}',
    "not JSON": f"{{role: {SECRET}}}",
    "another kind of JSON": f'["{SECRET}"]',
    "an unknown role": f'{{"role":"{SECRET}","parts":[]}}',
    "a time that is none": f'{{"role":"user","parts":[],"time":"{SECRET}","_everlong":{{"id":1}}}}',
    "an unknown part": f'{{"role":"user","parts":[{{"type":"{SECRET}"}}],"_everlong":"{SECRET}"}}',
    "a text that is none": f'{{"role":"user","parts":[{{"type":"text","text":["{SECRET}"]}}],"_everlong":7}}',
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_one_bad_row_costs_itself_alone(place: Place, damaged: str, caplog: pytest.LogCaptureFixture) -> None:
    place.spoil_row(BAD, damaged)
    with open_store(place.url) as store:
        read = [row.entry for row in store.read("t")]
        if place.numbered:
            assert [row.order for row in store.read("t")] == list(range(len(SAID)))
            note = read.pop(BAD)
            assert isinstance(note, Message)
            assert note.text == NOTE
        assert read == [*SAID[:BAD], *SAID[BAD + 1 :]]
        assert [thread.id for thread in store.threads()] == ["t", "other"]
        assert [message.text for message in store.open("t").messages][-2:] == ["four", "five"]
        assert store.last("t", 1)[0].entry == SAID[-1]
        assert {hit.thread for hit in store.search("elsewhere")} == {"other"}
        told = " ".join((*store.warnings, *caplog.messages, exported(store, "t", "openai").decode()))
        assert place.named in told
        assert "five" in told
        assert SECRET not in told
        assert len([warning for warning in store.warnings if place.named in warning]) == 1
        store.append("t", [user("six")])
        assert store.last("t", 1)[0].entry == user("six")
    assert SECRET.encode() in place.content(), "the bytes stay"


def test_a_thread_with_a_bad_row_can_be_branched_and_removed(place: Place) -> None:
    place.spoil_row(BAD, "{" + SECRET)
    with open_store(place.url) as store:
        store.branch("t", 2, "b")
        store.remove("t")
        assert [row.entry for row in store.read("b")] == SAID[:2]
        assert {thread.id for thread in store.threads()} == {"b", "other"}
        assert [hit.thread for hit in store.search("elsewhere")] == ["other"]


def test_a_point_that_cannot_be_read_leaves_the_one_before_it_in_force(place: Place) -> None:
    with open_store(place.url) as store:
        store.append("t", [point(2), Point(boundary=5, summary=(user(SECRET),)), user("on")])
        before = store.open("t", before=7).messages
    place.spoil_row(7, "{broken")
    with open_store(place.url) as store:
        assert store.open("t").messages[: len(before)] == before
        assert [(row.order, stands) for row, stands in store.points("t") if stands] == [(6, True)]
        store.append("t", [Withdrawal(6)])
        assert [message for message in store.open("t").messages if message in SAID] == SAID
        assert not any(stands for _, stands in store.points("t"))


def test_an_event_that_cannot_be_read_costs_itself_alone(place: Place) -> None:
    first, second = (Event(id=name, kind=EventKind.RECALLED, time=START, reason=SECRET) for name in ("a", "b"))
    with open_store(place.url) as store:
        store.record("t", [first])
        store.record("t", [second])
    place.spoil_first_event()
    with open_store(place.url) as store:
        assert store.events("t") == [second]
        assert store.unfinished("t") == []
        (warning,) = store.warnings
        assert "event" in warning
        assert SECRET not in warning


def test_settings_that_are_none_are_told_and_everything_else_is_read(place: Place) -> None:
    place.spoil_settings()
    with open_store(place.url) as store:
        assert (store.thread("t").settings, store.thread("t").title) == ("{}", "A talk")
        assert [row.entry for row in store.read("t")] == SAID
        (warning,) = store.warnings
        assert "settings" in warning
        assert SECRET not in warning
