"""The data folder is found, read, and what is wrong with it is told in one line."""

import gzip
import json
import zlib
from datetime import datetime
from pathlib import Path

import pytest

from everlong.core import Role
from everlong.errors import InputError
from everlong.lab.data import agents, data_folder, dialogue_names, dialogues, half_of, in_half, rows
from everlong.lab.measures.dialogs import question_cases
from everlong.lab.measures.probes import probe_cases
from tests.lab.folders import DATA


def test_without_a_folder_one_line_says_where_data_comes_from() -> None:
    with pytest.raises(InputError, match=r"nowhere.*entireio/cli.*LoCoMo.*docs/lab/data\.md") as told:
        data_folder("nowhere")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["ferry-office", "tea-shop", "张曼婷"])
def test_a_half_depends_on_the_id_alone(name: str) -> None:
    expected = "tuning" if zlib.crc32(name.encode()) % 2 == 0 else "confirming"
    other = "confirming" if expected == "tuning" else "tuning"
    assert half_of({"id": name}) == expected
    assert in_half({"id": name}, "all")
    assert in_half({"id": name}, expected)
    assert not in_half({"id": name}, other)
    assert half_of({"id": name, "half": other}) == other


def test_a_half_that_a_conversation_states_wins_in_every_measure(tmp_path: Path) -> None:
    for name in ("harbour", "agents"):
        (tmp_path / name).mkdir()
        for path in (DATA / name).glob("*.jsonl"):
            stated = [{**row, "half": "confirming"} if "messages" in row else row for row in rows(path)]
            (tmp_path / name / path.name).write_text("\n".join(map(json.dumps, stated)))
    assert not list(dialogues(tmp_path, "harbour", "tuning"))
    assert not question_cases(tmp_path, "harbour", "tuning")
    assert question_cases(tmp_path, "harbour", "confirming") == question_cases(tmp_path, "harbour")
    assert not probe_cases(tmp_path, ["office"], "tuning")
    assert probe_cases(tmp_path, ["office"], "confirming") == probe_cases(tmp_path, ["office"])


def test_a_half_that_does_not_exist_is_named() -> None:
    with pytest.raises(InputError, match="the half of tea-shop is tuning or confirming, not 'both'"):
        half_of({"id": "tea-shop", "half": "both"})


def test_the_halves_share_nothing_and_leave_out_nothing() -> None:
    halves = [{one.id for one in agents(DATA, "office", half)} for half in ("tuning", "confirming")]
    assert halves[0] | halves[1] == {one.id for one in agents(DATA, "office")}
    assert not halves[0] & halves[1]


def test_packed_files_read_as_unpacked_ones(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "office.jsonl.gz").write_bytes(gzip.compress((DATA / "agents/office.jsonl").read_bytes()))
    assert list(agents(tmp_path, "office")) == list(agents(DATA, "office"))


def test_turns_carry_name_and_time() -> None:
    (talk,) = dialogues(DATA, "harbour")
    assert (talk.messages[0].name, talk.messages[0].time) == ("Ines", datetime(2025, 3, 3, 8, 5))
    assert talk.messages[1].role is Role.ASSISTANT
    (tea,) = dialogues(DATA, "tea")
    assert (tea.messages[0].name, tea.messages[0].time) == ("林晓", datetime(2025, 3, 2))


BROKEN = {
    "not JSON": ("agents/a.jsonl", "{", r"line 1"),
    "not an object": ("agents/a.jsonl", "[1]", r"line 1: not an object"),
    "no messages": ("agents/a.jsonl", '{"id": "x"}', r"has no 'messages'"),
}


@pytest.mark.parametrize(("name", "text", "told"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_named(name: str, text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(InputError, match=told):
        list(agents(tmp_path, "a"))


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"probes\.jsonl: no such file"):
        list(rows(tmp_path / "probes.jsonl"))


def test_where_a_file_of_work_is_missing_those_that_are_there_are_named(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    for name in ("tea.jsonl", "office.jsonl.gz", "probes.jsonl", "notes.txt"):
        (tmp_path / "agents" / name).touch()
    with pytest.raises(InputError, match=r"claude_code\.jsonl: no such file; --files may name office, tea; docs"):
        list(agents(tmp_path, "claude_code"))
    with pytest.raises(InputError, match=r"probes\.jsonl: no such file; docs"):
        list(rows(tmp_path / "other" / "agents" / "probes.jsonl"))


# --- cases --------------------------------------------------------------------------------------


def test_dialogue_data_sets_are_found() -> None:
    assert dialogue_names(DATA) == ("harbour", "tea")


ODD_WORK = {
    "no list": b'{"id": 1, "messages": 7}',
    "null": b'{"id": 1, "messages": null}',
    "no message": b'{"id": 1, "messages": [7]}',
    "no id": b'{"messages": []}',
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("line", ODD_WORK.values(), ids=ODD_WORK)
def test_odd_work_is_one_clear_line(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "odd.jsonl").write_bytes(line)
    with pytest.raises(InputError) as told:
        list(agents(tmp_path, "odd"))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("keep", [0.0, 0.5], ids=["no archive", "half an archive"])
def test_a_broken_archive_is_one_clear_line(tmp_path: Path, keep: float) -> None:
    packed = gzip.compress((DATA / "agents" / "office.jsonl").read_bytes())
    (tmp_path / "rows.jsonl.gz").write_bytes(packed[: int(len(packed) * keep)] or b"no archive")
    with pytest.raises(InputError, match=r"rows\.jsonl\.gz"):
        list(rows(tmp_path / "rows.jsonl"))


ODD_TURNS = {
    "no turn": [7],
    "no role": [{"id": "1", "role": "wizard", "content": "x"}],
    "no text": [{"id": "1", "role": "user", "content": 7}],
    "no id": [{"role": "user", "content": "x"}],
    "no list": 7,
}


@pytest.mark.parametrize("turns", ODD_TURNS.values(), ids=ODD_TURNS)
def test_odd_turns_are_one_clear_line(tmp_path: Path, turns: object) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "conversations.jsonl").write_text(json.dumps({"id": "a", "messages": turns}))
    with pytest.raises(InputError, match=r"conversations\.jsonl: a turn cannot be read"):
        list(dialogues(tmp_path, "odd"))
