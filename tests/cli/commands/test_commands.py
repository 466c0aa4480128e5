"""`everlong count`, `fit` and `models`: what they print, and one clear line for what they cannot use."""

import gzip
import json
import re
from pathlib import Path

import pytest

from everlong import count
from tests.cli.running import everlong

TALK = [
    {"role": "system", "content": "Be brief. 请简短。"},
    {"role": "user", "content": "What is 2 + 2?"},
    {"role": "assistant", "content": "4"},
]
LONG = [
    *TALK,
    *({"role": "user" if n % 2 else "assistant", "content": f"turn {n} " + "word " * 200} for n in range(41)),
]
LONG.append({"role": "user", "content": "What was turn 7 about?"})


@pytest.fixture
def talk(tmp_path: Path) -> str:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"model": "gpt-4o", "messages": TALK}), encoding="utf-8")
    return str(path)


@pytest.fixture
def long_talk(tmp_path: Path) -> str:
    path = tmp_path / "long.json"
    path.write_text(json.dumps(LONG), encoding="utf-8")
    return str(path)


def test_count_tells_the_total_and_how(talk: str) -> None:
    ran = everlong("count", talk)
    assert ran.code == 0
    assert f"{count(TALK, model='gpt-4o')} tokens for gpt-4o (exact; vocabulary o200k_base)" in ran.out
    assert ran.err == ""


def test_count_and_fit_speak_chinese(talk: str, long_talk: str) -> None:
    counted = everlong("count", talk, "--lang", "zh").out
    for words in ("占比", "用户", "按 gpt-4o 计", "精确；词表 o200k_base", "占上下文窗口 128,000 token 的"):
        assert words in counted
    fitted = everlong("fit", long_talk, "-b", "3000", "--model", "gpt-4o", "--lang", "zh").out
    for words in ("token，占 3,000 的", "输入 45 条消息", "处改动", "之后"):
        assert words in fitted
    assert "没有消息" in everlong("count", "-", "--lang", "zh", stdin=b"[]").out


def test_count_as_json(talk: str) -> None:
    report = json.loads(everlong("count", talk, "--json").out)
    assert report["tokens"] == report["at_most"] == count(TALK, model="gpt-4o")
    assert report["by_role"].keys() == {"system", "user", "assistant"}
    assert report["window"] == {"tokens": 128_000, "source": "registry", "known": True}


def test_count_says_that_there_are_no_messages() -> None:
    assert everlong("count", "-", stdin=b"[]").out == "No messages: the conversation is empty.\n"
    report = json.loads(everlong("count", "-", "--json", stdin=b"[]").out)
    assert (report["messages"], report["tokens"]) == (0, 0)


def test_count_for_another_model_is_estimated_and_says_so(talk: str) -> None:
    ran = everlong("count", talk, "--model", "claude-opus-4-5")
    assert "estimated, at most" in ran.out
    assert "of its context window of 200,000 tokens" in ran.out


def test_count_reads_standard_input_and_packed_files(tmp_path: Path) -> None:
    data = json.dumps(TALK).encode()
    (tmp_path / "talk.json.gz").write_bytes(gzip.compress(data))
    piped = everlong("count", "-", "--model", "gpt-4o", "--json", stdin=data)
    packed = everlong("count", "talk.json.gz", "--model", "gpt-4o", "--json", folder=tmp_path)
    assert piped.out == packed.out != ""


def test_count_names_what_it_had_to_skip(tmp_path: Path) -> None:
    (tmp_path / "torn.jsonl").write_text("\n".join(map(json.dumps, TALK)) + '\n{"role": "us', encoding="utf-8")
    ran = everlong("count", "torn.jsonl", "--json", folder=tmp_path)
    assert json.loads(ran.out)["messages"] == 3
    assert ran.err.startswith("skipped line 4: not JSON")


def test_the_sample_counts() -> None:
    assert "tokens for gpt-4o (exact" in everlong("count", "--sample").out


BAD = {
    "a missing file": ("nowhere.json", None, "nowhere.json: No such file or directory"),
    "a folder": (".", None, ".: a folder, not a file"),
    "an empty file": ("bad", b"", "bad: the file is empty"),
    "prose": ("bad", b"hello there", "bad: it contains no JSON"),
    "other JSON": (
        "bad",
        b'{"name": "everlong", "version": 1}',
        "bad: not a conversation: an object with name, version",
    ),
    "a number": ("bad", b"42", "bad: not a conversation: a JSON int"),
    "an unknown role": ("bad", b'[{"role": "king", "content": "x"}]', "bad: openai-chat: unknown role 'king'"),
    "a picture": ("bad", b"\x89PNG\r\n\x1a\n\x00\x00", "bad: it contains no JSON"),
}


@pytest.mark.parametrize("command", ["count", "fit", "inspect"])
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(command: str, name: str, tmp_path: Path) -> None:
    path, data, line = BAD[name]
    if data is not None:
        (tmp_path / path).write_bytes(data)
    ran = everlong(command, path, folder=tmp_path)
    assert ran.code == 1
    assert ran.err.startswith(f"everlong: {line}")
    assert ran.err.count("\n") == 1
    assert ran.out == ""


@pytest.mark.parametrize(
    "arguments", [["count"], ["fit", "x", "--budget", "0"], ["fit", "--preset", "best"], ["nothing"]]
)
def test_wrong_usage_is_told_with_exit_code_2(arguments: list[str]) -> None:
    ran = everlong(*arguments)
    assert ran.code == 2
    assert re.fullmatch(r"everlong[\w ]*: .* \(everlong[\w ]* --help\)\n", ran.err)


USAGE = {
    "coutn": "everlong: no such command 'coutn'; did you mean count? (everlong --help)",
    "sessions lits": "everlong sessions: no such command 'lits'; did you mean list? (everlong sessions --help)",
    "count --modle x": "everlong count: no such option '--modle'; did you mean --model? (everlong count --help)",
    "fit -b abc": " '-b': 'abc' is not a number of tokens; write it as 200000, 200k or 1.5M (everlong fit --help)",
    "fit -b 0": "everlong fit: invalid value for '--budget' / '-b': 0 is less than 1 (everlong fit --help)",
    "chat --lang fr": "everlong chat: invalid value for '--lang': 'fr' is not one of 'en', 'zh' (everlong chat --help)",
    "fit --preset nanobto": "; did you mean nanobot? (everlong fit --help)",
    "chat --preset": "everlong: option '--preset' requires an argument (everlong --help)",
}


@pytest.mark.parametrize("words", USAGE)
def test_wrong_usage_is_one_line_that_says_what_was_meant(words: str) -> None:
    ran = everlong(*words.split())
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.endswith(f"{USAGE[words]}\n")


@pytest.mark.parametrize("group", ["jobs", "keys", "lab", "sessions"])
def test_a_group_alone_lists_its_commands(group: str) -> None:
    ran = everlong(group)
    assert (ran.code, ran.err) == (2, "")
    assert ran.out == everlong(group, "--help").out


def test_the_version_is_shown() -> None:
    assert everlong("--version").out.startswith("everlong, version ")


def test_fit_writes_the_same_format_and_reports(long_talk: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    ran = everlong("fit", long_talk, "--budget", "2000", "--model", "gpt-4o", "-o", str(out), "--json")
    report = json.loads(ran.out)
    written = json.loads(out.read_text(encoding="utf-8"))
    assert isinstance(written, list)
    assert count(written, model="gpt-4o") == report["tokens"] <= 2_000 < report["tokens_before"]
    assert report["messages"] == len(written)
    assert report["edits"][0].keys() >= {"at", "step", "action", "reason", "before", "after", "ref"}
    assert "turn 7 " in json.dumps(written)


def test_fit_to_standard_output_keeps_the_report_apart(long_talk: str) -> None:
    ran = everlong("fit", long_talk, "-b", "2000", "-m", "gpt-4o", "-o", "-")
    assert count(json.loads(ran.out), model="gpt-4o") <= 2_000
    assert "messages in" in ran.err


def test_fit_says_when_nothing_was_changed(talk: str) -> None:
    assert "it fits, so nothing changed" in everlong("fit", talk).out


def test_fit_says_what_cannot_fit(talk: str) -> None:
    ran = everlong("fit", talk, "--budget", "5")
    assert ran.code == 1
    assert "tokens, but the limit is 5: " in ran.err


def test_fit_off_gives_back_what_it_was_given(long_talk: str) -> None:
    ran = everlong("fit", long_talk, "-b", "100", "--preset", "off", "-o", "-")
    assert json.loads(ran.out) == LONG


def test_an_output_that_cannot_be_written_is_named(talk: str, tmp_path: Path) -> None:
    ran = everlong("fit", talk, "-o", str(tmp_path / "no" / "out.json"))
    assert ran.code == 1
    assert "No such file or directory" in ran.err


def test_models_tells_window_limit_prices_and_who_disagrees() -> None:
    ran = everlong("models", "deepseek-chat")
    assert "1,000,000 (registry, models.dev of " in ran.out
    assert "Other sources: deepseek (litellm) 131,072" in ran.out


def test_models_flags_what_nobody_knows() -> None:
    assert "128,000 (assumed" in everlong("models", "my-own-model").out
    report = json.loads(everlong("models", "my-own-model", "--json").out)
    assert (report["context"], report["known"], report["source"]) == (128_000, False, "default")


def test_models_lists_and_narrows() -> None:
    rows = json.loads(everlong("models", "--find", "kimi-k2", "--json").out)
    assert rows
    assert all("kimi-k2" in f"{row['provider']}/{row['id']}".lower() for row in rows)
    assert "more; --all shows them" in everlong("models").out


def test_models_without_a_match_is_one_clear_line() -> None:
    ran = everlong("models", "--find", "no such model")
    assert (ran.code, ran.err) == (1, "everlong: no model or provider contains 'no such model'\n")


def test_models_suggests_the_name_that_was_meant() -> None:
    ran = everlong("models", "gpt4o")
    assert (ran.code, ran.err) == (0, "the registry has no model 'gpt4o'; did you mean gpt-4o?\n")
    assert json.loads(everlong("models", "claude-sonet-4-5", "--json").out)["known"] is False
    assert everlong("models", "anthropic/claude-sonet-4-5").err.endswith("; did you mean claude-sonnet-4-5?\n")
    assert everlong("models", "gpt-4o").err == ""
    assert everlong("models", "--find", "gtp-5").err.endswith("; did you mean gpt-5?\n")


# --- a file of many conversations ---------------------------------------------------------------


@pytest.fixture
def many(tmp_path: Path) -> str:
    rows = [{"id": name, "messages": [*TALK, {"role": "user", "content": name}]} for name in ("ash-1", "ash-2", "elm")]
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("command", ["count", "fit", "inspect"])
def test_a_file_of_many_conversations_says_so(command: str, many: str) -> None:
    ran = everlong(command, many)
    assert (ran.code, ran.err) == (
        0,
        "This file holds 3 conversations; this is number 1. Choose another with --pick.\n",
    )


@pytest.mark.parametrize("command", ["count", "fit", "inspect"])
@pytest.mark.parametrize(("pick", "number"), [("2", 2), ("elm", 3), ("e", 3), ("ash-2", 2)])
def test_a_conversation_is_picked_by_number_id_or_the_beginning_of_its_id(
    command: str, pick: str, number: int, many: str
) -> None:
    report = json.loads(everlong(command, many, "--pick", pick, "--json").out)
    assert report["conversation"] == {"picked": number, "of": 3}


def test_fit_writes_the_conversation_that_was_picked(many: str) -> None:
    assert json.loads(everlong("fit", many, "--pick", "elm", "-o", "-").out)["id"] == "elm"


@pytest.mark.parametrize("command", ["count", "fit", "inspect"])
@pytest.mark.parametrize(
    ("pick", "line"),
    [
        ("4", "no conversation '4': the file holds 3 (ash-1, ash-2, elm)"),
        ("0", "no conversation '0': the file holds 3 (ash-1, ash-2, elm)"),
        ("9" * 5000, "the file holds 3"),
        ("", "no conversation '': the file holds 3 (ash-1, ash-2, elm)"),
        ("ash", "'ash' matches 2 conversations: 1 (ash-1), 2 (ash-2)"),
        ("elms", "no conversation 'elms': the file holds 3 (ash-1, ash-2, elm); did you mean elm?"),
    ],
    ids=["too large", "zero", "huge", "nothing", "two", "misspelt"],
)
def test_a_pick_that_is_none_is_one_line(command: str, pick: str, line: str, many: str) -> None:
    ran = everlong(command, many, "--pick", pick)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert line in ran.err
