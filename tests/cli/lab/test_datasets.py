"""`everlong lab fetch-data`: the list of public sets, the commands that get one, the languages, and wrong calls."""

import json
import shlex
from pathlib import Path

import pytest

from everlong.cli.words.english import ENGLISH
from everlong.lab import DATA_VARIABLE, DATASETS, PROJECTS
from tests.cli.running import everlong
from tests.lab.datasets.checkouts import CHECKOUTS


def test_the_list_has_every_set_with_its_licence_size_and_two_commands() -> None:
    ran = everlong("lab", "fetch-data")
    assert ran.code == 0, ran.err
    for row in DATASETS.values():
        assert row.licence in ran.out
        assert f"everlong lab fetch-data {row.name} --from " in ran.out
    assert "git clone --depth 1 https://github.com/mohammadtavakoli78/BEAM\n" in ran.out
    assert "355 questions" in ran.out


def test_every_set_is_described() -> None:
    described = {key.removeprefix("what_") for key in ENGLISH.texts["datasets"] if key.startswith("what_")}
    assert described == {*DATASETS, "project"}


def test_projects_are_listed_with_their_half_licence_and_the_commands_that_make_a_set() -> None:
    out = everlong("lab", "fetch-data", "--lang", "en").out
    for row in PROJECTS.values():
        assert f"{row.name}  {row.code}, by {row.agents}\n" in out
        assert f"--source {row.source} --as-half {row.half} --save DIR\n" in out
    assert "git clone --depth 1 --branch entire/checkpoints/v1 https://github.com/JanDeDobbeleer/oh-my-posh\n" in out
    assert {row.half for row in PROJECTS.values()} == {"tuning", "confirming"}
    alone = everlong("lab", "fetch-data", "oh-my-posh", "--lang", "zh").out
    assert "Go，使用 Claude Code" in alone
    assert "用于调参" in alone
    assert "beam" not in alone
    (facts,) = json.loads(everlong("lab", "fetch-data", "django", "--json").out)
    assert (facts["repository"], facts["half"], facts["code"]) == ("gruckion/mini-swe-agent", "confirming", "Python")


def test_the_command_of_a_project_works(tmp_path: Path) -> None:
    (row,) = json.loads(everlong("lab", "fetch-data", "leeson", "--data", str(tmp_path / "data"), "--json").out)
    quiet = "a quiet line of output that says nothing at all\n" * 400
    talk = [{"role": "user", "content": f"ticket HB72QX\n{quiet}"}, {"role": "user", "content": quiet}]
    talk += [{"role": "assistant", "content": "```bash\nclose HB72QX\n```"}]
    (tmp_path / "leeson").mkdir()
    (tmp_path / "leeson" / "full.json").write_text(json.dumps(talk))
    made = everlong(*shlex.split(row["commands"][1])[1:], "--strategy", "newest", "--budgets", "100", folder=tmp_path)
    assert made.code == 0, made.err
    (kept,) = (tmp_path / "data" / "agents" / "leeson.jsonl").read_text().splitlines()
    assert (json.loads(kept)["source"], json.loads(kept)["half"]) == ("rommeld/leeson", "tuning")


def test_one_set_is_told_alone_and_for_the_folder_that_is_named(tmp_path: Path) -> None:
    ran = everlong("lab", "fetch-data", "locomo-plus", "--data", str(tmp_path))
    assert f"everlong lab fetch-data locomo_plus --from Locomo-Plus --data {tmp_path}" in ran.out
    assert "beam" not in ran.out


def test_the_command_that_is_told_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CHECKOUTS["qmsum"](tmp_path / "QMSum")
    (row,) = json.loads(everlong("lab", "fetch-data", "qmsum", "--data", "data here", "--json").out)
    command = shlex.split(row["commands"][1])[1:]
    monkeypatch.chdir(tmp_path)
    ran = everlong(*command, folder=tmp_path)
    assert ran.code == 0, ran.err
    assert "2 conversations · 6 turns · 2 questions · 1 for tuning, 1 for confirming" in ran.out
    assert "Next: everlong lab dialogs --data 'data here' --files qmsum" in ran.out
    assert (tmp_path / "data here" / "qmsum" / "questions.jsonl").is_file()


def test_the_figures_as_json_and_the_folder_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CHECKOUTS["beam_100k"](tmp_path / "clone")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    ran = everlong("lab", "fetch-data", "beam_100k", "--from", str(tmp_path / "clone"), "--json")
    figures = json.loads(ran.out)
    assert (figures["conversations"], figures["turns"], figures["tuning"], figures["confirming"]) == (3, 18, 4, 2)


def test_the_list_speaks_chinese() -> None:
    out = everlong("lab", "fetch-data", "zh_vcsum", "--lang", "zh").out
    assert "真实会议" in out
    assert "中文 · 48 段对话 · 271 个问题" in out


WRONG = {
    "a name that is none": (("bean_100k",), "there is no public data set 'bean_100k'; known: beam_100k,"),
    "a name that is none, with a folder": (("bean", "--from", "."), "bean is not a public set (beam_100k,"),
    "no name": (("--from", "."), "--from needs a NAME"),
    "no folder": (("qmsum", "--from", "nowhere"), "nowhere: no such folder; --from needs the folder that"),
}


@pytest.mark.parametrize(("arguments", "told"), WRONG.values(), ids=WRONG)
def test_a_wrong_call_is_told(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    ran = everlong("lab", "fetch-data", *arguments, "--data", str(tmp_path / "data"), folder=tmp_path)
    assert ran.code != 0
    assert told in ran.err


def test_without_a_data_folder_one_line_says_what_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    ran = everlong("lab", "fetch-data", "qmsum", "--from", str(tmp_path))
    assert f"no data folder: name one with --data or {DATA_VARIABLE}" in ran.err


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    CHECKOUTS["qmsum"](tmp_path / "clone")
    (tmp_path / "data").write_text("a file")
    ran = everlong("lab", "fetch-data", "qmsum", "--from", str(tmp_path / "clone"), "--data", str(tmp_path / "data"))
    assert ran.code != 0
    assert f"{tmp_path / 'data' / 'qmsum'}: cannot write" in ran.err
