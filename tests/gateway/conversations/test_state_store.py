"""What outlives a request: what is kept under each setting, for how long, and what a broken store costs."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from everlong.core import Point, Recalled
from everlong.errors import StoreError
from everlong.gateway.config import Keep
from everlong.gateway.conversations.marks import Mark, counting, encoded_mark, listed
from everlong.gateway.conversations.state_store import StateStore
from everlong.llm import ScriptedServer, Window, reads_files
from everlong.store import MemoryThreads, open_store
from tests.core.build import user
from tests.gateway.conversations.test_conversations import planted, said
from tests.gateway.resending import Resending
from tests.gateway.running import RunningGateway

START = datetime(2026, 1, 1, tzinfo=UTC)
POINT = Mark(4, 2, Point(boundary=2, summary=(user("in short"),)))


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def keeping(clock: Callable[[], datetime] = lambda: START, keep: Keep = "edits", days: float = 7) -> StateStore:
    return StateStore(MemoryThreads(clock=clock), keep=keep, retention=timedelta(days=days), clock=clock)


def put(kept: StateStore, root: str, digest: str, mark: Mark = POINT, *, fits: bool = True) -> str | None:
    """Add one mark; the newest name in the list."""
    return kept.add_marks("scope", root, [(listed(mark, digest, kept.time()), mark)], lambda _: fits)


def all_marks(kept: StateStore, root: str) -> list[tuple[str, Mark]]:
    names = counting(kept.list_of_marks("scope", root) or ())
    return list(zip([one.digest for one in names], kept.marks("scope", root, names) or (), strict=True))


def test_marks_come_back_in_the_order_of_their_making() -> None:
    kept = keeping()
    later = Mark(9, 3, Recalled(2, user("x")))
    put(kept, "root", "d1")
    put(kept, "root", "d2", later)
    assert all_marks(kept, "root") == [("d1", POINT), ("d2", later)]
    assert kept.list_of_marks("scope", "another root") == kept.list_of_marks("another scope", "root") == ()


def test_others_see_that_there_is_a_new_mark() -> None:
    store = MemoryThreads()
    one, other = StateStore(store), StateStore(store)
    assert other.list_of_marks("scope", "root") == ()
    name = put(one, "root", "d1")
    assert name is not None
    assert other.list_of_marks("scope", "root") == (name,)


def test_a_mark_that_does_not_fit_leaves_nothing() -> None:
    kept = keeping()
    first = put(kept, "root", "d1")
    assert put(kept, "root", "d2", fits=False) is None
    assert kept.list_of_marks("scope", "root") == (first,)
    assert len(kept.store.facts("gateway/marks/scope/root")) == 1


def test_the_same_mark_is_added_once() -> None:
    kept = keeping()
    named = listed(POINT, "d1", kept.time())
    for _ in range(2):
        assert kept.add_marks("scope", "root", [(named, POINT)], lambda _: True) == named.name
    assert kept.list_of_marks("scope", "root") == (named.name,)


def test_marks_of_versions_before_are_read_and_continued() -> None:
    """They had one fact for each mark and the name of the newest, and no list."""
    kept = keeping()
    old = "000000000004-01767225600.000000/d1"
    kept.store.keep_fact("gateway/marks/scope/root", old, encoded_mark(POINT))
    kept.store.keep_fact("gateway/newest", "gateway/marks/scope/root", json.dumps(old))
    assert kept.list_of_marks("scope", "root") == (old,)
    name = put(kept, "root", "d2")
    assert kept.list_of_marks("scope", "root") == (old, name)
    assert all_marks(kept, "root") == [("d1", POINT), ("d2", POINT)]


def test_what_is_taken_back_counts_no_longer() -> None:
    kept = keeping()
    named = listed(POINT, "d1", kept.time())
    kept.add_marks("scope", "root", [(named, POINT)], lambda _: True)
    kept.add_marks("scope", "root", [(named.withdrawn, None)], lambda _: True)
    assert all_marks(kept, "root") == []


def test_work_is_claimed_by_one_process_for_a_stage_and_a_time() -> None:
    clock, store = Clock(), MemoryThreads()
    one, other = (StateStore(store, clock=clock) for _ in range(2))
    assert one.claim("summaries", "a", "first", 60.0)
    assert one.claim("summaries", "a", "first", 60.0), "again by the same"
    assert not other.claim("summaries", "a", "first", 60.0)
    assert other.claim("summaries", "b", "first", 60.0)
    assert other.claim("summaries", "a", "second", 60.0), "a compaction came between"
    assert not one.claim("summaries", "a", "second", 60.0)
    clock.now += timedelta(minutes=2)
    assert one.claim("summaries", "a", "second", 60.0), "the other one is gone"


def test_nothing_keeps_nothing_but_what_is_learned_of_models() -> None:
    kept = keeping(keep="nothing")
    kept.keep_note("opaque", "scope", "call", '"x"')
    kept.keep_fact("window", "model", "16000")
    kept.flush()
    assert kept.list_of_marks("scope", "root") == ()
    assert kept.note("opaque", "scope", "call") is None
    assert kept.fact("window", "model") == "16000"


def test_what_is_older_than_it_may_get_goes_and_the_rest_stays() -> None:
    clock = Clock()
    kept = keeping(clock)
    for root in ("old", "both"):
        put(kept, root, "d1")
    kept.keep_note("opaque", "scope", "call", '"x"')
    kept.keep_fact("window", "model", "16000")
    kept.store.create("of the gateway", owner="gateway/scope")
    kept.store.create("of a user", owner="ann")
    kept.flush()
    clock.now += timedelta(days=5)
    put(kept, "both", "d2")
    clock.now += timedelta(days=5)
    kept.sweep()
    kept.flush()
    assert kept.list_of_marks("scope", "old") == ()
    assert len(kept.store.facts("gateway/marks/scope/both")) == 1
    assert kept.note("opaque", "scope", "call") is None
    assert kept.fact("window", "model") == "16000", "what is learned of models is no conversation's"
    assert [thread.id for thread in kept.store.threads()] == ["of a user"]
    clock.now += timedelta(days=30)
    kept.sweep()
    kept.flush()
    assert kept.list_of_marks("scope", "both") == ()
    assert kept.store.facts("gateway/kinds") == kept.store.facts("gateway/newest") == {}


def test_sweeping_while_something_is_kept_often_loses_nothing_new() -> None:
    clock = Clock()
    kept = keeping(clock, days=1)
    for hour in range(72):
        clock.now = START + timedelta(hours=hour)
        kept.keep_note("opaque", "scope", f"call {hour}", '"x"')
        kept.sweep()
        kept.flush()
    assert set(kept.notes("opaque", "scope")) == {f"call {hour}" for hour in range(47, 72)}


def test_a_store_that_fails_is_told_in_the_log_and_costs_nobody_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryThreads()
    kept = StateStore(store)
    store.close()
    kept.keep_note("opaque", "scope", "call", '"x"')
    kept.sweep()
    kept.flush()
    assert kept.list_of_marks("scope", "root") is None
    assert kept.marks("scope", "root", [listed(POINT, "d1", 0.0)]) is None
    assert kept.claim("summaries", "a", "first", 60.0)
    assert kept.note("opaque", "scope", "call") is None
    assert "the gateway's store" in caplog.text
    with pytest.raises(StoreError):
        store.facts("gateway/kinds")


def test_what_a_write_leads_to_is_written_before_the_end() -> None:
    kept = keeping()

    def write(left: int) -> None:
        kept.later(lambda: write(left - 1)) if left else kept.keep_note("opaque", "scope", "call", '"x"')

    kept.later(lambda: write(1_000))
    kept.flush()
    assert kept.note("opaque", "scope", "call") == '"x"'


def test_who_comes_after_the_end_is_told_in_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    kept = keeping()
    kept.close()
    kept.keep_note("opaque", "scope", "call", '"x"')
    assert "the gateway's store" in caplog.text


# --- through the gateway -----------------------------------------------------------------------------


def bytes_kept(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def talked(folder: Path, keep: Keep, turns: int) -> list[str]:
    """A conversation through a gateway that is closed then; the planted words of each question."""
    words = []
    with (
        ScriptedServer(reads_files(1), window=Window(16_000, told=True)) as server,
        RunningGateway(upstream=server.url, store=str(folder / "kept.db"), keep=keep, summaries="off") as gateway,
    ):
        client = Resending("openai-chat", system="planted9x", lines=5)
        for turn in range(turns):
            text = said(100 + turn, 0)["content"]
            words += planted(text)
            client.ask(gateway, text)
    return words


def test_keep_nothing_stores_nothing_that_anybody_said(tmp_path: Path) -> None:
    talked(tmp_path, "nothing", 60)
    stored = bytes_kept(tmp_path)
    assert planted(stored.decode("latin-1")) == set()
    assert b"function_" not in stored
    assert b"gateway/" not in stored


def test_keep_edits_stores_no_message_while_there_is_no_cut(tmp_path: Path) -> None:
    talked(tmp_path, "edits", 10)
    stored = bytes_kept(tmp_path)
    assert planted(stored.decode("latin-1")) == set()
    assert b"function_" not in stored


def test_keep_edits_stores_what_cuts_say_and_nothing_of_what_is_sent_as_it_is(tmp_path: Path) -> None:
    words = talked(tmp_path, "edits", 60)
    stored = planted(bytes_kept(tmp_path).decode("latin-1"))
    assert stored
    assert "planted9x" not in stored, "system text is never in a cut"
    assert stored.isdisjoint(words[-8:])
    with open_store(str(tmp_path / "kept.db")) as store:
        assert store.threads(archived=None) == []


def test_keep_text_stores_all_of_it(tmp_path: Path) -> None:
    words = talked(tmp_path, "text", 10)
    assert planted(bytes_kept(tmp_path).decode("latin-1")) == {*words, "planted9x"}


@pytest.mark.parametrize("keep", ["edits", "text"])
def test_retention_removes_what_was_kept(tmp_path: Path, keep: Keep) -> None:
    talked(tmp_path, keep, 60)
    with open_store(str(tmp_path / "kept.db")) as store:
        assert store.facts("gateway/kinds")
    with (
        ScriptedServer() as server,
        RunningGateway(upstream=server.url, store=str(tmp_path / "kept.db"), keep=keep, retention_days=0) as gateway,
    ):
        gateway.services.state_store.sweep()
        gateway.services.state_store.flush()
    with open_store(str(tmp_path / "kept.db")) as store:
        kinds = store.facts("gateway/kinds")
        assert all(store.facts(kind) == {} for kind in kinds)
        assert store.threads(archived=None) == []
