"""`everlong sessions events` and `cost`: what happened, and what it cost."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from everlong.core import Event, EventKind
from everlong.store import open_store
from tests.cli.running import Ran, everlong

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
TURN = Event(id="t1", kind=EventKind.TURN_STARTED, time=NOON, model="gpt-4o")
CUT = Event(
    id="c1",
    kind=EventKind.CONTEXT_COMPRESSED,
    time=NOON,
    parent="t1",
    reason="high mark",
    messages_before=1_200,
    messages_after=80,
    tokens_before=120_000,
    tokens_after=42_000,
)
CALL = Event(
    id="u1",
    kind=EventKind.USAGE_RECORDED,
    time=NOON,
    parent="t1",
    model="gpt-4o",
    tokens_before=40_000,
    tokens_after=500,
    cost=0.0625,
    data='{"cached":30000}',
)
LOCAL = replace(CALL, id="u2", model="local[bold]", cost=None, tokens_before=7, tokens_after=3, data="")


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Two sessions of two owners, one of them archived, one turn unfinished."""
    url = str(tmp_path / "threads.db")
    with open_store(url) as threads:
        threads.create("boats", owner="ann", title="Boats")
        threads.record("boats", [TURN, CUT, CALL, LOCAL])
        threads.create("harbour", owner="bob")
        threads.record("harbour", [replace(CALL, cost=2.5)])
        threads.change("harbour", archived=True)
        threads.create("silent")
    return url


def ran(*arguments: str, store: str, lang: str = "en") -> Ran:
    return everlong("sessions", *arguments, "--store", store, "--lang", lang)


def said(*arguments: str, store: str, lang: str = "en") -> str:
    done = ran(*arguments, store=store, lang=lang)
    assert done.code == 0, done.err
    return done.out


def test_events_are_a_line_each_oldest_first(store: str) -> None:
    lines = said("events", "boats", store=store).splitlines()
    assert len(lines) == 4
    assert lines[0].endswith("turn.started          gpt-4o · not finished")
    assert "1,200 → 80 messages · 120,000 → 42,000 tokens · high mark" in lines[1]
    assert "gpt-4o · 40,000 in, 500 out · $0.0625" in lines[2]
    assert "local[bold] · 7 in, 3 out" in lines[3]


def test_the_last_events_and_some_kinds(store: str) -> None:
    first, *rest = said("events", "boats", "--last", "1", store=store).splitlines()
    assert first == "… 3 earlier events; --last 0 shows all"
    assert len(rest) == 1
    some = said("events", "boats", "--kind", "turn.started", "--kind", "context.compressed", store=store)
    assert [line.split()[2] for line in some.splitlines()] == ["turn.started", "context.compressed"]
    assert said("events", "silent", store=store) == "No events are recorded.\n"
    assert ran("events", "boats", "--kind", "turn", store=store).code == 2


def test_events_as_json_say_all(store: str) -> None:
    turn, cut, call, local = json.loads(said("events", "boats", "--json", store=store))
    assert (turn["kind"], turn["finished"], turn["time"]) == ("turn.started", False, NOON.isoformat())
    assert (cut["messages_before"], cut["tokens_after"], cut["reason"]) == (1_200, 42_000, "high mark")
    assert "finished" not in cut
    assert (call["cost"], call["data"], call["parent"]) == (0.0625, {"cached": 30_000}, "t1")
    assert (local["cost"], local["data"]) == (None, None)


def test_cost_of_all_sessions_by_model(store: str) -> None:
    shown = [line.split() for line in said("cost", store=store).splitlines() if line.strip()]
    assert shown[0][0] == "model"
    assert ["gpt-4o", "2", "80,000", "60,000", "1,000", "2.56"] in shown
    assert ["local[bold]", "1", "7", "0", "3", "–"] in shown
    last = [" ".join(line) for line in shown].index("1 call has no known price")
    assert shown[last - 1][0] == "total"
    assert " ".join(shown[last + 1]).startswith("Compaction saved ")


def test_cost_tells_what_summaries_took(tmp_path: Path) -> None:
    url = str(tmp_path / "summaries.db")
    with open_store(url) as threads:
        threads.create("boats")
        two = replace(CALL, id="u3", cost=0.5, reason="summary", data='{"cached":0,"calls":2}')
        threads.record("boats", [TURN, CALL, two])
    assert "2 of these calls wrote summaries, for 0.5000 dollars" in said("cost", store=url)
    assert "其中 2 次调用用于写摘要" in said("cost", store=url, lang="zh")
    total = json.loads(said("cost", "--json", store=url))["total"]
    assert (total["calls"], total["summary_calls"], total["summary_cost"]) == (3, 2, 0.5)


WHOSE = {
    "one session": (("boats",), 1, 2, 0.0625),
    "one owner, archived too": (("--owner", "bob"), 1, 1, 2.5),
    "all": ((), 3, 3, 2.5625),
    "nobody": (("--owner", "eve"), 0, 0, 0.0),
}


@pytest.mark.parametrize(("arguments", "sessions", "calls", "cost"), WHOSE.values(), ids=WHOSE)
def test_cost_as_json(store: str, arguments: tuple[str, ...], sessions: int, calls: int, cost: float) -> None:
    told = json.loads(said("cost", *arguments, "--json", store=store))
    assert (told["sessions"], told["total"]["calls"], told["total"]["cost"]) == (sessions, calls, cost)
    assert sum(one["calls"] for one in told["models"]) == calls


def test_cost_of_nothing_and_of_both(store: str) -> None:
    assert said("cost", "silent", store=store).startswith("Everlong called no model here. ")
    assert "未结束" in said("events", "boats", store=store, lang="zh")
    assert "美元" in said("cost", store=store, lang="zh")
    assert said("cost", "silent", store=store, lang="zh").startswith("Everlong 在这里没有调用过模型。")
    assert ran("cost", "boats", "--owner", "ann", store=store).code == 2
    assert "no session 'none'" in ran("cost", "none", store=store).err
