"""Terminals that cannot say everything: no traceback, and nothing is lost where a program reads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ENCODINGS = ["ascii", "cp1252", "gbk", "utf-8"]
SAID = "Boats 船, café, 😀"
TALK = [{"role": "user", "content": SAID, "name": "café船"}, {"role": "assistant", "content": f"→ {SAID}"}]
ASK = [{"role": "user", "content": "→ 船 " * 400}, {"role": "assistant", "content": "é"}] * 4 + TALK


def ran(*arguments: str, encoding: str, folder: Path) -> tuple[bytes, bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "everlong", *arguments],
        capture_output=True,
        cwd=folder,
        env=os.environ | {"PYTHONIOENCODING": encoding, "EVERLONG_STORE": str(folder / "threads.db"), "COLUMNS": "80"},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("船")
    (made / "talk.json").write_text(json.dumps(ASK), encoding="utf-8")
    ran("sessions", "import", "talk.json", encoding="utf-8", folder=made)
    return made


TEXT = {
    "inspect": ("inspect", "talk.json", "--lang", "zh"),
    "fit": ("fit", "talk.json", "--budget", "1500", "--model", "gpt-4o"),
    "list": ("sessions", "list", "--lang", "zh"),
}


@pytest.mark.parametrize("arguments", TEXT.values(), ids=TEXT)
def test_text_is_shown_as_far_as_the_terminal_can(arguments: tuple[str, ...], folder: Path) -> None:
    out, err = ran(*arguments, encoding="ascii", folder=folder)
    assert out.isascii()
    assert b"?" in out
    assert err == b""


def test_what_the_terminal_can_say_is_said(folder: Path) -> None:
    out, _ = ran("sessions", "search", "café", encoding="cp1252", folder=folder)
    assert "Boats ?, café, ?" in out.decode("cp1252")
    out, _ = ran("sessions", "search", "nowhere at all", "--lang", "zh", encoding="cp1252", folder=folder)
    assert out.strip() == b"?????"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_JSON_loses_nothing_in_any_encoding(encoding: str, folder: Path) -> None:
    out, _ = ran("sessions", "search", "Boats", "--json", encoding=encoding, folder=folder)
    assert SAID in [hit["excerpt"] for hit in json.loads(out.decode("utf-8"))]


def test_JSON_says_half_a_surrogate_pair_as_its_escape(folder: Path) -> None:
    out, _ = ran("models", "my-\udce9-\udcff", "--json", encoding="utf-8", folder=folder)
    assert json.loads(out)["model"] == "my-\udce9-\udcff"


def test_a_conversation_on_standard_output_is_whole(folder: Path) -> None:
    out, err = ran("fit", "talk.json", "--preset", "off", "-o", "-", encoding="ascii", folder=folder)
    assert json.loads(out) == ASK
    assert err.isascii()
    out, err = ran("fit", "talk.json", "-b", "1500", "-o", "-", "--json", encoding="cp1252", folder=folder)
    assert SAID in [message["content"] for message in json.loads(out)]
    assert json.loads(err)["tokens"] <= 1500


def test_a_page_on_standard_output_is_UTF_8(folder: Path) -> None:
    out, _ = ran("inspect", "talk.json", "--html", "-", "--lang", "zh", encoding="ascii", folder=folder)
    assert SAID in out.decode("utf-8")
