"""A misspelt model name: one line on standard error with the name that was meant; other names are left alone."""

import json
import logging
from pathlib import Path

import pytest

from everlong import fit
from tests.cli.running import everlong

TALK = [{"role": "user", "content": "Which shelf?"}]

#: What somebody typed, and what was meant.
MISSPELT = {
    "a letter too many": ("gpt-4oo", "gpt-4o"),
    "a dash missing": ("claude-opus-45", "claude-opus-4-5"),
    "a letter missing": ("claude-sonet-4-5", "claude-sonnet-4-5"),
    "two letters swapped": ("gemini-2.5-por", "gemini-2.5-pro"),
    "no dash": ("gpt4o", "gpt-4o"),
    "behind its provider": ("openai/gpt-4oo", "gpt-4o"),
}
#: Names of something else.
OTHERS = {
    "a known one": "gpt-4o",
    "a known one with its provider": "openrouter/anthropic/claude-opus-4.5",
    "a release": "claude-opus-4-5-20251101",
    "another version": "gpt-6.5",
    "a variant": "gpt-4o-mini-high",
    "a deployment": "my-gpt-4o",
    "a fine-tune": "ft:gpt-4o:acme::abc",
    "a local model": "llama3.2:3b",
    "a local model without a tag": "mixtral",
    "a model of an own server": "ollama/gpt-4oo",
    "a file": "unsloth/Qwen3-32B-GGUF",
    "a name of one's own": "acme-7b",
    "a short name": "gpt",
    "a stand-in": "local",
}


@pytest.fixture
def talk(tmp_path: Path) -> str:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TALK))
    return str(path)


@pytest.mark.parametrize("name", MISSPELT)
@pytest.mark.parametrize("command", ["count", "fit", "inspect"])
def test_a_misspelt_model_is_named_in_one_line(command: str, name: str, talk: str) -> None:
    model, meant = MISSPELT[name]
    ran = everlong(command, talk, "--model", model)
    assert (ran.code, ran.err) == (0, f"everlong: unknown model '{model}'; did you mean {meant}?\n")
    machine = everlong(command, talk, "--model", model, "--json")
    assert (json.loads(machine.out) is not None, machine.err) == (True, ran.err)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("command", ["count", "fit", "inspect"])
def test_other_names_are_left_alone(command: str, name: str, talk: str) -> None:
    ran = everlong(command, talk, "--model", OTHERS[name])
    assert (ran.code, ran.err) == (0, "")


def test_a_name_in_the_file_counts_too(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"model": "gpt-4oo", "messages": TALK}))
    assert everlong("count", str(path)).err == "everlong: unknown model 'gpt-4oo'; did you mean gpt-4o?\n"
    assert everlong("count", str(path), "--model", "gpt-4o").err == ""


ALSO = {
    "chat": ("chat", "--upstream", "witness", "--no-tools", "--store", "memory:", "-m", "hello", "--model", "gpt-4oo"),
    "doctor": ("doctor", "claude", "--model", "gpt-4oo"),
    "in Chinese": ("count", "--sample", "--model", "gpt-4oo", "--lang", "zh"),
}


@pytest.mark.parametrize("name", ALSO)
def test_every_command_with_a_model_says_it(name: str, tmp_path: Path) -> None:
    lines = everlong(*ALSO[name], folder=tmp_path).err.splitlines()
    text = (
        "未知模型 'gpt-4oo'；是不是 gpt-4o？" if "zh" in ALSO[name] else "unknown model 'gpt-4oo'; did you mean gpt-4o?"
    )
    assert lines.count(f"everlong: {text}") == 1


def test_the_library_logs_it_once_for_each_name(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="everlong"):
        for model in ("gemini-2.5-flahs", "gemini-2.5-flahs", "gemini-2.5-flash", "llama3.2:3b", ""):
            fit(TALK, model=model)
    assert [record.getMessage() for record in caplog.records] == [
        "unknown model 'gemini-2.5-flahs'; did you mean gemini-2.5-flash?"
    ]
