"""`everlong lab probes`, `edits` and `dialogs`: tables, JSON, pages, and one clear line for wrong input."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from everlong.cli.lab.survival import print_results
from everlong.cli.words.chinese import CHINESE
from everlong.cli.words.english import ENGLISH
from everlong.lab import Result, Row
from tests.cli.running import everlong
from tests.lab.folders import DATA

COMMANDS = {
    "probes": ("probes", "--files", "office", "--budgets", "400,700"),
    "edits": ("edits", "--files", "office", "--budgets", "400,700"),
    "dialogs": ("dialogs", "--budgets", "150"),
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_table_has_a_row_for_each_strategy(arguments: tuple[str, ...]) -> None:
    ran = everlong("lab", *arguments, "--data", str(DATA), "--lang", "en")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    assert "newest" in ran.out
    assert "auto" in ran.out
    assert "strategy" in ran.out


def test_one_conversation_is_no_conversations(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (Row(budget=8_000, hits=0, strict=0, total=1, milliseconds=1.0, tokens=9_000.0, over=1),)
    one = Result(
        measure="probes",
        data="mine",
        strategy="newest",
        half="all",
        conversations=1,
        total=1,
        uncut=1,
        rows=rows,
    )
    several = replace(one, data="others", conversations=1_200, total=16_000, uncut=16_000)
    print_results([one, several], ENGLISH)
    print_results([one], CHINESE)
    told = capsys.readouterr().out
    assert "mine, all: 1 case in 1 conversation\n" in told
    assert "others, all: 16,000 cases in 1,200 conversations\n" in told
    assert "newest: 1 of 1 selections exceeded the budget of 8,000" in told
    assert "mine，全部：1 个对话中的 1 个用例\n" in told


def test_tables_speak_chinese() -> None:
    ran = everlong("lab", "dialogs", "--files", "tea", "--data", str(DATA), "--lang", "zh", "--strategy", "newest")
    assert "策略" in ran.out
    assert "召回" in ran.out


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_json_has_every_figure(arguments: tuple[str, ...]) -> None:
    ran = everlong("lab", *arguments, "--data", str(DATA), "--json", "--strategy", "newest", "--strategy", "whole")
    results = json.loads(ran.out)
    assert {one["strategy"] for one in results} == {"newest", "whole"}
    for one in results:
        assert one["rows"][0].keys() >= {"budget", "hits", "strict", "total", "recall", "milliseconds", "groups"}


def test_a_page_is_written(tmp_path: Path) -> None:
    page = tmp_path / "lab.html"
    ran = everlong("lab", *COMMANDS["dialogs"], "--data", str(DATA), "--strategy", "bm25", "--html", str(page))
    assert ran.code == 0, ran.err
    assert "bm25" in page.read_text(encoding="utf-8")


def test_budgets_that_nothing_must_be_cut_for_are_left_out() -> None:
    ran = everlong("lab", "dialogs", "--files", "harbour", "--data", str(DATA), "--json", "--strategy", "newest")
    assert [row["budget"] for row in json.loads(ran.out)[0]["rows"]] == [500]


def test_probes_are_made_from_a_transcript_and_saved(tmp_path: Path) -> None:
    quiet = "a quiet line of output that says nothing at all\n" * 400
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": '{"command": "close HB72QX"}'}}
    talk = [{"role": "user", "content": f"ticket HB72QX\n{quiet}"}, {"role": "user", "content": quiet}]
    talk += [{"role": "assistant", "content": "", "tool_calls": [call]}]  # type: ignore[dict-item]
    (tmp_path / "talk.json").write_text(json.dumps(talk))
    home = tmp_path / "data"
    options = ("--strategy", "newest", "--budgets", "100,100000", "--json")
    made = everlong("lab", "probes", str(tmp_path / "talk.json"), "--save", str(home), *options)
    assert made.code == 0, made.err
    rows = json.loads(made.out)[0]["rows"]
    assert [(row["hits"], row["total"]) for row in rows] == [(0, 1), (1, 1)]
    again = everlong("lab", "probes", "--data", str(home), "--files", "talk", *options)
    assert [row["hits"] for row in json.loads(again.out)[0]["rows"]] == [0, 1]


def test_a_project_of_sessions_becomes_a_data_set_of_one_half(tmp_path: Path) -> None:
    quiet = "a quiet line of output that says nothing at all\n" * 400
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": '{"command": "close HB72QX"}'}}
    for name, ticket in (("one", "HB72QX"), ("two", "ZK81PD")):
        talk = [{"role": "user", "content": f"{ticket} of {name}\n{quiet}"}, {"role": "user", "content": quiet}]
        talk += [{"role": "assistant", "content": "", "tool_calls": [call]}]  # type: ignore[dict-item]
        path = tmp_path / "work" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(talk))
    home = str(tmp_path / "data")
    options = ("--strategy", "newest", "--budgets", "100,100000", "--lang", "en", "--by", "source")
    saved = ("--source", "harbour/ferries", "--save", home, "--as-half", "confirming")
    made = everlong("lab", "probes", str(tmp_path / "work"), *saved, *options)
    assert made.code == 0, made.err
    assert "work, all: 1 case in 1 conversation" in made.out
    assert made.out.split("\n")[-3].split() == [
        "harbour/ferries",
        "1",
        "newest",
        "0.0",
        "/",
        "0.0",
        "100.0",
        "/",
        "100.0",
    ]
    again = everlong("lab", "probes", "--data", home, "--files", "ferries", *options)
    assert again.out.split("\n")[-8:] == made.out.split("\n")[-8:]


def test_parts_of_a_set_stand_in_a_second_table() -> None:
    chosen = ("--data", str(DATA), "--strategy", "whole", "--strategy", "newest")
    kinds = everlong("lab", *COMMANDS["probes"], *chosen, "--by", "kind", "--lang", "zh")
    for word in ("种类", "用例", "斜线后为严格口径", "edit_line", "identifier"):
        assert word in kinds.out
    edits = everlong("lab", *COMMANDS["edits"], *chosen, "--by", "source", "--lang", "en")
    assert "everlong/tea" in edits.out
    assert "project" in edits.out
    assert "strict" not in edits.out
    nothing = everlong("lab", *COMMANDS["edits"], *chosen, "--by", "category", "--lang", "en")
    assert "category" not in nothing.out


WRONG = {
    "half without a folder": (("probes", "talk.json", "--as-half", "tuning"), 2, "--as-half needs --save DIR"),
    "source without a file": (("probes", "--data", str(DATA), "--source", "x"), 2, "--as-half need a PATH"),
    "no folder": (("probes", "--data", "nowhere"), 1, "nowhere: no such folder"),
    "no such file": (
        ("probes", "--data", str(DATA), "--files", "none"),
        1,
        "none.jsonl: no such file; --files may name office;",
    ),
    "no such strategy": (("probes", "--data", str(DATA), "--strategy", "best"), 1, "unknown strategy 'best'"),
    "budget": (("edits", "--data", str(DATA), "--budgets", "8x"), 2, "'8x' is not a number of tokens"),
    "budget of nothing": (("edits", "--data", str(DATA), "--budgets", "0"), 2, "0 is less than 1"),
    "save without a file": (("probes", "--data", str(DATA), "--save", "x"), 2, "--save"),
    "nothing to do": (("probes", "--data", str(DATA), "--files", ""), 1, "no files: no cases to measure"),
}


@pytest.mark.parametrize(("arguments", "code", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_in_one_line(arguments: tuple[str, ...], code: int, told: str) -> None:
    ran = everlong("lab", *arguments)
    assert ran.code == code
    assert told in ran.err
    assert "Traceback" not in ran.err


def test_the_folder_may_come_from_the_environment_and_a_strategy_from_where_one_stands(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def last(messages, budget):\n    return messages[-1:]\n")
    arguments = ["lab", "dialogs", "--files", "tea", "--strategy", "mine:last", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "everlong", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"EVERLONG_DATA": str(DATA)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["rows"][0]["hits"] == 0
