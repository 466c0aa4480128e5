"""The lab of adapters runs a real framework in a process of its own: a short form of `everlong lab adapters`."""

import json
from dataclasses import replace
from pathlib import Path

from everlong.lab.adapters.errand import Errand
from everlong.lab.adapters.results import ADAPTER_PAGES, write_adapter_runs
from everlong.lab.adapters.runner import AdapterRunner
from everlong.lab.adapters.table import ADAPTERS
from everlong.lab.adapters.verdict import AdapterVerdict
from everlong.lab.clients.script import Tasks
from everlong.lab.environments import Environment, Environments
from everlong.lab.pages import CLOSE
from tests.cli.running import everlong

ROW = ADAPTERS["openai-agents"]
SHORT = Errand(Tasks(count=2, files=6, lines=30))
WINDOW = 5_000


def runner(tmp_path: Path) -> AdapterRunner:
    return AdapterRunner(
        Environments(tmp_path / "lab"), SHORT, WINDOW, here=True, records=tmp_path / "records", patience=300
    )


def test_with_our_adapter_it_finishes_and_without_it_does_not(tmp_path: Path) -> None:
    ours = runner(tmp_path).run(ROW, "responses stream", "everlong")
    assert ours.faults == ()
    assert (ours.finished, ours.kept, ours.version != "") == (3, 5, True)
    assert ours.compactions == ours.breaks
    kept = json.loads((tmp_path / "records" / "openai-agents-responses-stream-everlong.json").read_text("utf-8"))
    assert len(kept["requests"]) == ours.steps
    bare = runner(tmp_path).run(ROW, "chat", "nothing")
    assert bare.faults[0].startswith("the run failed: ")
    assert (bare.refused, bare.compactions) == (1, None)
    assert bare.finished < 3


def test_what_cannot_be_installed_is_left_out_with_its_reason(tmp_path: Path) -> None:
    row = replace(ROW, home=Environment("none", ("no-such-package-of-anyone-here==0",)))
    where = Environments(tmp_path / "lab", lambda _: None)
    object.__setattr__(where, "_known", {"none": False})
    (verdict,) = AdapterRunner(where).all_runs(row)
    assert verdict.left_out == "pip cannot install it here"


def test_runs_stand_on_the_page_of_the_framework_and_among_all(tmp_path: Path) -> None:
    for name in ("README", *ADAPTERS):
        (tmp_path / f"{name}.md").write_text(f"# Title\n\n{ADAPTER_PAGES.open}\n{CLOSE}\n", encoding="utf-8")
    run = AdapterVerdict(framework="openai-agents", mode="chat", how="own", finished=2, tasks=7, faults=("one", "two"))
    write_adapter_runs(tmp_path, (run,), "2026-01-02")
    overview = (tmp_path / "README.md").read_text(encoding="utf-8")
    page = (tmp_path / "openai-agents.md").read_text(encoding="utf-8")
    assert "- openai-agents chat, own: one" in overview
    assert "- openai-agents chat, own: one" in page
    (row,) = [line for line in page.splitlines() if "2026-01-02" in line]
    assert "2/7" in row
    write_adapter_runs(tmp_path, (), "2026-01-03")
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == overview


def test_the_command_wants_pages_before_it_runs_anything(tmp_path: Path) -> None:
    done = everlong("lab", "adapters", "openai-agents", "--here", "--write", str(tmp_path))
    assert done.code == 1
    assert "there is no page" in done.err
