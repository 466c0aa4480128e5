"""The script that checks a folder of conversations, run on small folders."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from everlong.core import Json
from tests.wire.payloads import ANTHROPIC_BODY, CHAT, CHATBOX_EXPORT, SESSIONS, lines, one

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_data.py"


def check(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPT), str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows: list[Json] = [{"id": "first", "messages": CHAT}, {"id": "second", "messages": CHAT * 3}]
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(lines(rows)))
    (tmp_path / "body.json").write_bytes(one(ANTHROPIC_BODY))
    (tmp_path / "chatbox.json").write_bytes(one(CHATBOX_EXPORT))
    (tmp_path / "sessions").mkdir()
    for number, payload in enumerate(SESSIONS):
        (tmp_path / "sessions" / f"{number}.jsonl").write_bytes(payload.data)
    (tmp_path / "package.json").write_text('{"name": "x"}')
    (tmp_path / "notes.txt").write_text("not looked at")
    return tmp_path


def test_a_good_folder_passes(folder: Path) -> None:
    done = check(folder, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["failures"]) == (0, [])
    assert report["conversations"] == 4 + len(SESSIONS)
    assert [file.split(":")[0] for file in report["other_files"]] == ["package.json"]


def test_the_laws_are_kept_in_every_format(folder: Path) -> None:
    done = check(folder, "--laws", "--formats", "all", "--sample", "4", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["failures"], report["laws"]) == (0, [], {})
    assert report["views"] > 100


def test_a_table_for_people(folder: Path) -> None:
    done = check(folder)
    assert done.returncode == 0
    assert "rows.jsonl.gz" in done.stdout
    assert "1 files are no conversations" in done.stdout


@pytest.mark.parametrize(
    ("name", "options"),
    [("nowhere", ()), (".", ("--presets", "fancy")), (".", ("--laws", "--formats", "telex"))],
    ids=["no such folder", "no such preset", "no such format"],
)
def test_bad_options_are_refused_in_one_line(folder: Path, name: str, options: tuple[str, ...]) -> None:
    done = check(folder / name, *options)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("check_data.py: error: ")


def test_a_folder_without_conversations_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "x"}')
    done = check(tmp_path)
    assert done.returncode == 1
    assert "no conversations in it" in done.stderr
