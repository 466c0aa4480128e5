"""G3, G4: kill -9 in the middle of a compaction. A restart finds no half state, and the summary is made once."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from everlong.core import OUTCOMES, EventKind, Message, Point
from everlong.engine import Author, Engine, Summaries, Threads, newest_summary
from everlong.llm import ScriptedModel
from everlong.store import open_store
from tests.core.build import assistant, calls, result, system, user
from tests.engine.authors import author
from tests.engine.dying import CALL
from tests.engine.talking import pages

ROOT = Path(__file__).parents[2]
SAID = [
    system("Work carefully."),
    *(
        message
        for at in range(8)
        for message in (
            user(f"Question {at}: what does function_{at} do?"),
            calls(f"c{at}", arguments=f'{{"path": "src/file_{at}.py"}}'),
            result(f"c{at}", pages(at, 20)),
            assistant(f"Answer {at}."),
        )
    ),
]
#: Around the start, in the answer, around the point, around the outcome; the whole of it in a soak.
MOMENTS = range(1, 41) if os.environ.get("EVERLONG_SOAK") else (2, 5, -4, -3, -1)


def run(file: Path, moment: int) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.engine.dying", str(file), str(moment)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many moments there are if nobody kills it."""
    file = tmp_path_factory.mktemp("whole") / "threads.db"
    filled(file)
    return int(run(file, 0).stdout)


def filled(file: Path) -> None:
    with open_store(f"sqlite:///{file}") as store:
        store.create("talk")
        store.append("talk", SAID)


@pytest.mark.parametrize("moment", MOMENTS)
def test_G4_killed_at_any_moment_a_restart_makes_it_once(moment: int, moments: int, tmp_path: Path) -> None:
    file = tmp_path / "threads.db"
    filled(file)
    at = moment if moment > 0 else moments + 1 + moment
    if at <= moments:
        assert run(file, at).returncode == -signal.SIGKILL
    with open_store(f"sqlite:///{file}") as store:
        assert [row.entry for row in store.read("talk") if isinstance(row.entry, Message)] == SAID
        made = summaries_in(store)
        assert len(made) <= 1
        assert all(point.account and point.summary for point in made)
        engine, writer = Engine(store), author()
        begun = bool(store.unfinished("talk"))
        asyncio.run(resumed(engine, writer.model))  # type: ignore[arg-type]
        assert len(summaries_in(store)) == (1 if begun or made else 0)
        assert len(writer.model.requests) == (1 if begun and not made else 0)  # type: ignore[attr-defined]
        assert not store.unfinished("talk")
        one_outcome_each(store)
        assert (newest_summary(store, "talk") is not None) == (begun or bool(made))
        store.append("talk", [user("And now?")])
        assert engine.blocking.prepare("talk", CALL).request.messages[-1].text == "And now?"


async def resumed(engine: Engine, model: ScriptedModel) -> None:
    summaries = Summaries(engine, [Author(model=model, name="gpt-4o-mini")], own_model=False)
    await summaries.resume("talk", CALL, model)
    await summaries.drain()
    assert not await summaries.resume("talk", CALL, model)  # and not again


def summaries_in(store: Threads) -> list[Point]:
    return [row.entry for row, stands in store.points("talk") if stands and isinstance(row.entry, Point)]


def one_outcome_each(store: Threads) -> None:
    events = store.events("talk")
    for start in (event for event in events if event.kind is EventKind.SUMMARY_STARTED):
        assert sum(e.parent == start.id and e.kind in OUTCOMES[start.kind] for e in events) == 1
