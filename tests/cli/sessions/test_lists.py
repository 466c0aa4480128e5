"""What `everlong sessions list` says is so: compactions that stand, the sessions' own dates, ids that can be typed."""

import json
import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from everlong.cli.sessions.lists import short_ids
from everlong.cli.sessions.options import find_thread
from everlong.core import Withdrawal
from everlong.store import MemoryThreads, open_store
from tests.cli.running import Ran, everlong
from tests.core.build import user
from tests.store.contract.entries import point, talk
from tests.wire.sessions.samples import CLAUDE_COMPACTED, CODEX, NANOBOT_NEWER, PI_3

OLD = 1_700_000_000  # seconds; 2023-11-14


@pytest.fixture(params=["sqlite:///{}/threads.db", "jsonl:{}/sessions"], ids=["sqlite", "jsonl"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param).format(tmp_path)


def sessions(*arguments: str, store: str) -> Ran:
    return everlong("sessions", *arguments, "--store", store, "--lang", "en")


def listed(store: str, *options: str) -> list[dict[str, object]]:
    ran = sessions("list", "--json", *options, store=store)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)  # type: ignore[no-any-return]


# --- compactions -----------------------------------------------------------------------------------------


def test_a_compaction_that_was_undone_is_not_counted(store: str) -> None:
    with open_store(store) as threads:
        threads.create("t", title="Boats")
        threads.append("t", [*talk(3), point(2), point(4)])
    assert [one["points"] for one in listed(store)] == [2]
    for left in (1, 0):
        assert sessions("undo", "t", store=store).code == 0
        assert [one["points"] for one in listed(store)] == [left]
    assert "compaction" not in sessions("show", "t", store=store).out.splitlines()[1]
    with open_store(store) as threads:
        assert (threads.thread("t").points, threads.thread("t").standing) == (2, 0)
        assert threads.branch("t", 8, "b").standing == 2, "as it was then"
        threads.append("b", [Withdrawal(7)])
        assert threads.thread("b").standing == 1


# --- dates -----------------------------------------------------------------------------------------------

SAMPLES: dict[str, Sequence[object]] = {
    "claude-code": CLAUDE_COMPACTED,
    "codex": CODEX,
    "nanobot": NANOBOT_NEWER,
    "pi": PI_3,
}


def moments(value: object) -> list[datetime]:
    """Every time that a file names, whatever its name there."""
    found = re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z?", json.dumps(value))
    return [datetime.fromisoformat(each).astimezone(UTC) for each in found]


@pytest.mark.parametrize("name", SAMPLES)
def test_an_imported_session_keeps_its_dates(name: str, store: str, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in SAMPLES[name]), encoding="utf-8")
    os.utime(file, (OLD, OLD))
    assert sessions("import", str(file), store=store).code == 0
    (one,) = listed(store)
    created, updated = (datetime.fromisoformat(str(one[key])) for key in ("created", "updated"))
    told = moments(SAMPLES[name])
    if told:
        assert min(told) <= created <= updated
        assert (updated - max(told)).total_seconds() < 0.01
    else:
        assert created.timestamp() == OLD
    assert sessions("import", str(file), store=store).code == 0
    assert listed(store) == [one], "the same file again changes nothing"


def test_a_session_without_times_is_as_old_as_its_file(store: str, tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"role": "user", "content": "hello"}]), encoding="utf-8")
    os.utime(file, (OLD, OLD))
    sessions("import", str(file), store=store)
    (one,) = listed(store)
    assert [datetime.fromisoformat(str(one[key])).timestamp() // 1 for key in ("created", "updated")] == [OLD, OLD]
    assert "2023-11-1" in sessions("show", "chat", store=store).out
    rows = json.loads(sessions("show", "chat", "--json", store=store).out)["rows"]
    assert rows[0]["appended"].startswith("2023-11-1")
    other = json.dumps([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "yes"}])
    file.write_text(other, encoding="utf-8")
    os.utime(file, (OLD + 86_400, OLD + 86_400))
    sessions("import", str(file), store=store)
    (one,) = listed(store)
    assert datetime.fromisoformat(str(one["updated"])).timestamp() == OLD + 86_400


def test_sessions_of_several_batches_stay_in_their_order(store: str, tmp_path: Path) -> None:
    file = tmp_path / "long.json"
    said = [{"role": "assistant" if at % 2 else "user", "content": str(at)} for at in range(450)]
    file.write_text(json.dumps(said), encoding="utf-8")
    os.utime(file, (OLD, OLD))
    sessions("import", str(file), store=store)
    with open_store(store) as threads:
        rows = list(threads.read("long"))
        assert [row.time for row in rows] == sorted(row.time for row in rows)
        assert {int(row.time.timestamp()) for row in rows} == {OLD}


# --- ids -------------------------------------------------------------------------------------------------

LONG = "2f4c1a90-7f1e-4b1e-9d5e-0a8f3c5d7e21"


def test_a_branch_leaves_the_short_id_of_its_parent_alone(store: str) -> None:
    with open_store(store) as threads:
        threads.create(LONG, title="Boats")
        threads.append(LONG, talk(2))
    shown = LONG[:8]
    assert shown in sessions("list", store=store).out
    made = json.loads(sessions("branch", shown, "1", "--json", store=store).out)["id"]
    assert not made.startswith(LONG)
    out = sessions("list", store=store).out
    assert re.search(rf"\b{shown}\b", out), out
    assert sessions("show", shown, store=store).out == sessions("show", LONG, store=store).out


def test_a_branch_of_an_older_version_leaves_it_alone_too(store: str) -> None:
    with open_store(store) as threads:
        threads.create(LONG, title="Boats")
        threads.append(LONG, talk(2))
        threads.branch(LONG, 2, f"{LONG}~2", title="Branch")
    assert json.loads(sessions("show", LONG[:8], "--json", store=store).out)["id"] == LONG
    assert json.loads(sessions("show", f"{LONG}~", "--json", store=store).out)["id"] == f"{LONG}~2"
    out = sessions("list", store=store).out
    assert re.search(rf"{LONG[:8]}\s*\n", out), out
    assert f"{LONG}~" in "".join(out.split())


def test_ids_that_may_be_several_sessions_are_listed_with_titles_and_days(store: str) -> None:
    with open_store(store) as threads:
        for name in ("talk-a", "talk-b"):
            threads.create(name, title=f"Title of {name}", at=datetime(2026, 3, 1, 12, tzinfo=UTC))
    ran = sessions("show", "talk", store=store)
    assert (ran.code, ran.out) == (1, "")
    assert "'talk' matches 2 sessions: " in ran.err
    for name in ("talk-a", "talk-b"):
        assert f"{name} (Title of {name}, 2026-03-01)" in ran.err


def test_an_archived_session_makes_the_ids_on_the_list_no_less_unique(store: str) -> None:
    names = [f"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{end}" for end in ("b", "c")]
    with open_store(store) as threads:
        for name in names:
            threads.create(name)
        threads.change(names[0], archived=True)
    assert names[1] in "".join(sessions("list", store=store).out.split())


names = st.text(alphabet="ab~-", min_size=1, max_size=24) | st.text(alphabet="ab", min_size=19, max_size=23)


@given(st.sets(names, min_size=1, max_size=12))
def test_every_id_that_is_shown_finds_its_session(ids: set[str]) -> None:
    store = MemoryThreads()
    for name in ids:
        store.create(name)
    for name, shown in short_ids(sorted(ids)).items():
        assert find_thread(store, shown).id == name


# --- what cannot be read -----------------------------------------------------------------------------------


def test_a_row_that_cannot_be_read_is_told_by_every_command_that_meets_it(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with open_store(str(path)) as threads:
        threads.create("t", title="Boats")
        threads.append("t", [user("one"), user("the safe is 4711"), user("three")])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE bodies SET body = CAST(? AS TEXT) WHERE number = 2", (b"the safe is 4711 \xff",))
        db.execute("UPDATE threads SET metadata = '4711'")
    place = "everlong: thread 't', row 1 cannot be read; the stored data is unchanged\n"
    for command in (["show", "t"], ["show", "t", "--json"], ["export", "t"], ["export", "t", "--format", "nanobot"]):
        ran = sessions(*command, store=str(path))
        assert ran.code == 0, ran.err
        assert place in ran.err
        assert "one" in ran.out
        assert "three" in ran.out
        assert "cannot be read" in ran.out, "the gap is visible where it stands"
        assert "4711" not in ran.out + ran.err
    ran = sessions("list", store=str(path))
    assert (ran.code, ran.err.count("\n")) == (0, 1)
    assert "its metadata cannot be read" in ran.err
    assert "Boats" in ran.out


# --- ids that can be copied --------------------------------------------------------------------------------

ALIKE = ("0f8fad5b-d9cb-469f-a165-708677289500", "0f8fad5b-d9cb-469f-a165-708677289501", "chat-20261116-0825-f1bf")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_id_is_cut_or_broken_on_any_terminal(columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    url = str(tmp_path / "threads.db")
    with open_store(url) as threads:
        for name in ALIKE:
            threads.create(name, title=f"A rather long title 很长的标题 about blue kettles and more of {name}")
            threads.append(name, [user("hello")])
    shown = sessions("list", store=url).out
    for name in ALIKE:
        assert name in shown.split()
    assert all(name in sessions("search", "hello", store=url).out.split() for name in ALIKE)
    for line in shown.splitlines():
        assert len(line) <= max(columns, 2 + max(map(len, ALIKE)))


def test_the_beginning_of_a_messages_id_is_enough(store: str) -> None:
    with open_store(store) as threads:
        threads.create("t")
        rows = threads.append("t", [user("first"), user("second"), user("third")])
        beginnings = (rows[1].id[:n] for n in range(1, 40))
        # Digits alone are the place of a message.
        alone = (
            each for each in beginnings if not each.isdigit() and sum(row.id.startswith(each) for row in rows) == 1
        )
    assert "second" in sessions("pin", "t", next(alone), store=store).out
    wrong = sessions("pin", "t", "no-such-id", store=store)
    assert (wrong.code, wrong.err.count("\n")) == (1, 1)
    assert "has no row" in sessions("pin", "t", "9" * 5_000, store=store).err
