"""What a newcomer reads in Chinese: tables, notes and errors of the commands that people try first."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.running import Ran, everlong

CHINESE = re.compile(r"[\u4e00-\u9fff]")
#: Words of English sentences; names of options, fields and programs may stay.
ENGLISH = re.compile(r"\b(?:the|is|are|not|of|for|with|no|cannot|must|unknown|assumed)\b", re.IGNORECASE)

#: Arguments, and a part of the error in Chinese. {f} is a folder with the files below.
ERRORS: dict[str, tuple[tuple[str, ...], str]] = {
    "no such file": (("count", "{f}/none.json"), "none.json：没有这个文件或文件夹"),
    "a folder": (("count", "{f}"), "是文件夹，不是文件"),
    "an empty file": (("count", "{f}/empty.json"), "文件是空的"),
    "no JSON": (("count", "{f}/text.json"), "其中没有 JSON"),
    "not a conversation": (("fit", "{f}/other.json"), "不是对话：对象的字段是 a"),
    "no such conversation": (("inspect", "--sample", "--pick", "9"), "没有对话 '9'；文件中共有 1 个"),
    "too small a budget": (("fit", "--sample", "--budget", "100"), "至少需要 446 token，上限是 100"),
    "no page": (("inspect", "--sample", "--html", "page.txt"), "page.txt 不以 .html 结尾"),
    "no module": (("fit", "--sample", "--preset", "nowhere:X"), "没有模块 'nowhere'"),
    "an unknown preset": (("fit", "--sample", "--preset", "simpel"), "是不是 simple？"),
    "no FILE": (("count",), "请写上 FILE"),
    "no number": (("fit", "--sample", "--budget", "ten"), "'ten' 不是 token 数"),
    "an unknown option": (("count", "--modle", "x"), "没有选项 '--modle'；是不是 --model？"),
    "no such model": (("models", "--find", "zzzz"), "没有名称含 'zzzz' 的模型或提供商"),
    "an unknown provider": (("chat", "--upstream", "nowhere", "-m", "x"), "未知提供商 'nowhere'"),
    "two sources": (("chat", "--local", "--upstream", "openai"), "--local 与 --upstream 只能用一个"),
    "no such client": (("doctor", "nothing"), "未知客户端 nothing"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("empty", ""), ("text", "hello"), ("other", '{"a": 1}')):
        (tmp_path / f"{name}.json").write_text(text)
    return tmp_path


def in_chinese(arguments: tuple[str, ...], folder: Path) -> Ran:
    return everlong("--lang", "zh", *(part.format(f=folder) for part in arguments), folder=folder)


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_one_line_in_chinese(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    arguments, part = ERRORS[name]
    ran = in_chinese(arguments, folder)
    assert ran.code in (1, 2)
    assert part in ran.err
    assert ran.err.count("\n") == 1


def test_the_option_of_the_command_decides(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    assert "文件是空的" in everlong("count", str(folder / "empty.json"), "--lang", "zh").err
    assert "the file is empty" in everlong("count", str(folder / "empty.json")).err
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert "the file is empty" in everlong("count", str(folder / "empty.json"), "--lang", "en").err


TABLES = {
    "one model": ("models", "claude-opus-4-5"),
    "an unknown model": ("models", "my-own-model"),
    "a list": ("models", "--find", "opus-4-5"),
    "a long list": ("models", "--find", "gpt"),
}


@pytest.mark.parametrize("name", TABLES)
def test_models_are_shown_in_chinese(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERLONG_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    ran = in_chinese(TABLES[name], tmp_path)
    assert ran.code == 0
    assert "窗口" in ran.out
    assert "模型表：models.dev 20" in ran.out
    assert "从未更新（--refresh 下载新表）" in ran.out
    lines = [line for line in (ran.out + ran.err).splitlines() if CHINESE.search(line)]
    assert [line for line in lines if ENGLISH.search(line)] == []


def test_models_as_json_are_the_same_in_every_language(tmp_path: Path) -> None:
    assert json.loads(in_chinese(("models", "gpt-4o", "--json"), tmp_path).out) == json.loads(
        everlong("models", "gpt-4o", "--json").out
    )


def test_what_was_skipped_is_told_in_chinese(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"role": "user", "content": "a"}\nbroken\n{"role": "user", "content": "b"}\n')
    assert in_chinese(("count", "{f}/talk.jsonl"), tmp_path).err.startswith("已跳过：line 2")
