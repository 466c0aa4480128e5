"""`everlong lab continuity`: what it prints, writes and says when something is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ran, everlong
from tests.lab.folders import DATA

STEPS = 40
GRID = ("--window", "8000,16000", "--overhead", "500,2000", "--reply", "1000")
ROW = 10  # cells


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a session of many steps, and one of an agent that acts in words."""
    called: list[dict[str, Any]] = [{"role": "user", "content": "Look after every boat in the harbour."}]
    spoken: list[dict[str, Any]] = [{"role": "user", "content": "Count the lamps of the harbour, one by one."}]
    for number in range(STEPS):
        seen = "\n".join(f"boat {number}, plank {plank}: {plank * 7_919 + number}" for plank in range(40))
        call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": f'{{"n": {number}}}'}}
        called += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": seen},
        ]
        spoken += [
            {"role": "assistant", "content": f"Thought: the next.\n```\nlook({number})\n```"},
            {"role": "user", "content": f"Observation:\n{seen}"},
        ]
    agents = tmp_path_factory.mktemp("data") / "agents"
    agents.mkdir()
    rows = ({"id": name, "source": "ours", "messages": talk} for name, talk in (("called", called), ("spoken", spoken)))
    (agents / "harbour.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (agents / "probes.jsonl").write_text("")
    return agents.parent


def continuity(folder: Path, *arguments: str) -> Ran:
    return everlong("lab", "continuity", "--data", str(folder), "--files", "harbour", *arguments)


def found(folder: Path, *arguments: str) -> Any:
    ran = continuity(folder, *arguments, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_a_table_has_a_row_for_each_window_and_overhead(folder: Path) -> None:
    ran = continuity(folder, *GRID, "--lang", "en")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    assert "2 sessions, 1 with results as user messages" in ran.out
    rows = [cells for line in ran.out.splitlines() if len(cells := line.split()) == ROW]
    assert [cells[:2] for cells in rows] == [["8k", "500"], ["8k", "2k"], ["16k", "500"], ["16k", "2k"]]
    for _, _, task, steps, words, compactions, *_ in rows:
        assert int(compactions) > 0
        assert all(0 <= float(share) <= 100 for share in (task, steps, words))


def test_json_has_every_figure(folder: Path) -> None:
    said = found(folder, *GRID)
    assert (said["sessions"], said["observed"], said["overhead_as"], said["reply"]) == (2, 1, "both", 1_000)
    assert [(one["window"], one["overhead"]) for one in said["results"]] == [
        (8_000, 500),
        (8_000, 2_000),
        (16_000, 500),
        (16_000, 2_000),
    ]
    for one in said["results"]:
        assert one["requests"] == 2 * STEPS
        assert 0 < one["compactions"] <= one["requests"]
        assert one["new_least"] <= one["new_median"]
        assert one["between_least"] <= one["between_median"]
        assert (one["refused"], one["broken"], one["invalid"]) == (0, 0, 0)


def test_a_policy_that_forgets_the_task_has_none_of_it(folder: Path) -> None:
    (dropped,) = found(folder, "--window", "16000", "--overhead", "500", "--preset", "drop@.9/.5")["results"]
    assert dropped["compactions"] > 0
    assert (dropped["task"], dropped["words"]) == (0, 0)
    assert dropped["steps"] > 0
    assert dropped["missing"]["task"] == dropped["compactions"]
    assert dropped["examples"][0][0] in ("called", "spoken")


def test_presets_of_documents_are_reported_and_not_judged(folder: Path) -> None:
    ran = continuity(folder, "--window", "8000", "--overhead", "500", "--preset", "simple", "--preset", "auto")
    assert "preset simple" in ran.out
    assert "preset auto" in ran.out
    assert ran.out.count("follows its document") == 1


def test_results_may_come_as_user_messages(folder: Path) -> None:
    said = found(folder, "--window", "8000", "--overhead", "500", "--observations")
    assert (said["sessions"], said["observed"]) == (2, 2)
    assert said["results"][0]["compactions"] > 0


def test_only_some_sessions_if_so_asked(folder: Path) -> None:
    for options in (("--every", "2"), ("--quick",)):
        assert found(folder, "--window", "8000", "--overhead", "500", *options)["sessions"] == 1


def test_several_processes_find_what_one_finds(folder: Path) -> None:
    options = ("--window", "8000", "--overhead", "500")
    assert found(folder, *options, "--jobs", "2") == found(folder, *options)


def test_a_page_and_the_words_are_in_chinese_where_that_is_asked_for(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    options = ("--window", "8000", "--overhead", "500", "--lang", "zh")
    ran = continuity(folder, *options, "--html", str(page))
    assert "2 个会话，其中 1 个以用户消息返回工具结果" in ran.out
    assert "窗口" in ran.out
    assert "压缩之后还在的内容" in page.read_text(encoding="utf-8")
    english = continuity(folder, *options[:-2], "--lang", "en", "--html", "-").out
    assert english.startswith("<!doctype html>")
    assert "What stands after a compaction" in english


WRONG = {
    "no room": (("--window", "4000", "--overhead", "3000"), "takes more than 70 % of every --window"),
    "no window": (("--window", "many"), "'many' is not a number of tokens"),
    "a preset that nobody knows": (("--preset", "everything"), "everything"),
    "a file that is not there": (("--files", "nowhere"), "nowhere"),
    "an overhead below nothing": (("--overhead", "-5"), "-5 is less than 0"),
}


@pytest.mark.parametrize(("options", "told"), WRONG.values(), ids=WRONG)
def test_wrong_input_is_one_clear_line(folder: Path, options: tuple[str, ...], told: str) -> None:
    ran = continuity(folder, *options)
    assert ran.code != 0
    assert told in ran.err
    assert "Traceback" not in ran.err


def test_what_fits_every_window_is_never_compacted() -> None:
    ran = everlong("lab", "continuity", "--data", str(DATA), "--files", "office", "--window", "64000", "--json")
    assert ran.code == 0, ran.err
    for one in json.loads(ran.out)["results"]:
        assert (one["compactions"], one["storms"], one["new_least"], one["examples"]) == (0, 0, None, [])
