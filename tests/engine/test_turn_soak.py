"""A long conversation with tools over HTTP, kept in SQLite: the laws on every request as the server recorded it.

Sixty turns; two thousand in `make soak`. Work is counted, not timed: rows that the store hands out.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from everlong.core import History, Hit, Opened, Protection, Row, protected
from everlong.engine.contracts import Finished
from everlong.llm import HttpModel, ReceivedRequest, ScriptedServer, Window, reads_files
from everlong.store.sqlite.threads import SqliteThreads
from everlong.wire import valid
from tests.engine.talking import SYSTEM, Talk, over_http

TURNS = 2_000 if os.environ.get("EVERLONG_SOAK") else 60
WINDOW, REPLY = 16_000, 500
MOST_ROWS = 120  # of a turn without a cut: its own few, what a search finds, and their neighbours


class Metered(SqliteThreads):
    """A store that counts the rows it hands out."""

    rows = 0

    def read(self, thread: str, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        for row in super().read(thread, start, stop):
            self.rows += 1
            yield row

    def last(self, thread: str, messages: int) -> list[Row]:
        return self._counted(super().last(thread, messages))

    def points(self, thread: str) -> list[tuple[Row, bool]]:
        found = super().points(thread)
        self.rows += len(found)
        return found

    def open(self, thread: str, before: int | None = None) -> Opened:
        opened = super().open(thread, before)
        self.rows += len(opened.rows)
        return opened

    def search(
        self, query: str, *, thread: str | None = None, owner: str | None = None, limit: int = 10, around: int = 1
    ) -> list[Hit]:
        hits = super().search(query, thread=thread, owner=owner, limit=limit, around=around)
        self.rows += sum(len(hit.around) for hit in hits)
        return hits

    def _counted(self, rows: list[Row]) -> list[Row]:
        self.rows += len(rows)
        return rows


@dataclass
class Course:
    """What each turn cost in rows, and whether a cut was made in it."""

    rows: list[int] = field(default_factory=list)
    cut: list[bool] = field(default_factory=list)


def test_a_long_conversation_stays_inside_its_window_and_a_turn_costs_its_news(tmp_path: Path) -> None:
    course = Course()

    async def run(model: HttpModel) -> tuple[History, list[str]]:
        talk = Talk(model, threads=store)
        for turn in range(TURNS):
            rows, points = store.rows, store.thread(talk.thread).points
            replies = await talk.say(f"Question {turn}: what does function_{turn} do?")
            assert isinstance(replies[-1], Finished), "no overflow reaches the user"
            course.rows.append(store.rows - rows)
            course.cut.append(store.thread(talk.thread).points > points)
        assert not store.unfinished(talk.thread)
        return talk.stored, talk.kinds()

    with Metered(tmp_path / "threads.db") as store, ScriptedServer(reads_files(2), window=_window()) as server:
        stored, kinds = over_http(server, run)
    assert "overflow.detected" not in kinds
    _laws(server.requests, stored, kinds.count("context.compressed"))
    quiet = [rows for rows, cut in zip(course.rows, course.cut, strict=True) if not cut]
    assert sum(course.cut) > 2
    assert max(quiet) <= MOST_ROWS
    late, early = quiet[len(quiet) // 2 :], quiet[: len(quiet) // 2]
    assert max(late) <= max(early) + 12


def _window() -> Window:
    return Window(WINDOW, told=True)


def _laws(requests: list[ReceivedRequest], stored: History, cuts: int) -> None:
    texts = {message.text for message in stored}
    results = {part.text for message in stored for part in message.results}
    for asked in requests:
        assert asked.tokens + REPLY <= WINDOW, "law 2"
        assert valid("openai-chat", asked.messages), "law 3"
        assert asked.messages[0].text == SYSTEM, "law 4"
        for at, why in protected(asked.messages).items():
            if why is Protection.ASKED:
                assert asked.messages[at].text in texts, "law 4"
            if why is Protection.UNREAD:
                assert asked.messages[at].results[0].text in results, "law 4"
    kept = sum(two.messages[: len(one.messages)] == one.messages for one, two in pairwise(requests))
    assert kept == len(requests) - 1 - cuts, "law 6"
