"""`everlong inspect`: what it prints and writes, in both languages, and one clear line for what it cannot use."""

import gzip
import json
import re
from pathlib import Path

import pytest

from everlong import count
from tests.cli.conversations import LISTING, TALK, body, compacted_session, hostile, written
from tests.cli.running import everlong

TOTAL = count(TALK, model="gpt-4o")


@pytest.fixture
def talk(tmp_path: Path) -> str:
    return written(tmp_path, body(TALK))


def inspected(*arguments: str, **settings: bytes) -> dict:
    ran = everlong("inspect", *arguments, "--json", **settings)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


# --- the terminal -------------------------------------------------------------------------------


def test_the_map_has_every_part(talk: str) -> None:
    ran = everlong("inspect", talk, "--lang", "en")
    assert (ran.code, ran.err) == (0, "")
    for fact in (
        "talk.json · openai-chat · gpt-4o · 8 messages · 2 rounds",
        f"{TOTAL:,} tokens",
        "of the window of 128,000",
        "exact, vocabulary o200k_base · window: registry",
        "reserved for the answer 4,096",
        "How many copies are there?",
        "list_shelf",
        "Largest messages",
        "last user message",
        "result not read yet",
        "Repeated content",
        "#3 #7",
        "✓ Valid for openai-chat",
    ):
        assert fact in ran.out, fact


def test_the_map_speaks_chinese(talk: str) -> None:
    out = everlong("inspect", talk, "--lang", "zh").out
    for fact in (
        "8 条消息",
        "2 轮",
        "剩余",
        "工具结果",
        "最大的消息",
        "模型还没读过的结果",
        "符合 openai-chat 格式要求",
    ):
        assert fact in out, fact
    assert "Heaviest" not in out


def test_a_pipe_gets_no_colour_codes_and_no_long_lines(talk: str) -> None:
    out = everlong("inspect", talk, "--lang", "en").out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_lists_are_as_long_as_asked(talk: str) -> None:
    short, whole = (everlong("inspect", talk, "--lang", "en", "--top", top).out for top in ("1", "0"))
    assert "… and 3 more, together" in short
    assert "more, together" not in whole


def test_an_estimate_says_so_and_how_much_it_may_be(talk: str) -> None:
    out = everlong("inspect", talk, "--model", "claude-opus-4-5", "--lang", "en").out
    assert "≈ " in out
    assert "estimated, at most " in out
    assert re.search(r"\d % to [\d.]+ % of the window of 200,000", out)


def test_what_does_not_fit_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, body([{"role": "user", "content": "word " * 9_000}], model="gpt-4"))
    ran = everlong("inspect", path, "--lang", "en")
    assert ran.code == 0
    assert "over by " in ran.out


def test_texts_of_strangers_cannot_steer_the_terminal(tmp_path: Path) -> None:
    ran = everlong("inspect", written(tmp_path, hostile()), "--lang", "en")
    assert ran.code == 0
    assert not {"\x1b", "\x00", "\x07", "\u202e", "\u202c"} & set(ran.out)
    assert (
        "[bold]x[/bold]"
        in everlong("inspect", written(tmp_path, body([{"role": "user", "content": "[bold]x[/bold]"}]))).out
    )


# --- what the provider would reject ---------------------------------------------------------------


def test_objections_are_told_in_words_and_both_languages(tmp_path: Path) -> None:
    path = written(tmp_path, body(TALK[:3]))
    english, chinese = (everlong("inspect", path, "--lang", lang) for lang in ("en", "zh"))
    assert english.code == chinese.code == 0
    assert "messages[2]: call c1 has no result directly after it" in english.out
    assert "messages[2]: 调用 c1 之后没有紧跟它的结果" in chinese.out


def test_another_providers_rules_can_be_asked_for(talk: str) -> None:
    report = inspected(talk, "--for", "anthropic")
    assert report["checked_for"] == "anthropic"


def test_sessions_are_checked_as_what_they_are_sent_as() -> None:
    report = inspected("-", stdin=compacted_session())
    assert (report["format"], report["checked_for"]) == ("pi", "anthropic")


# --- JSON ---------------------------------------------------------------------------------------


def test_json_has_every_figure(talk: str) -> None:
    report = inspected(talk)
    assert report["tokens"] == {
        "total": TOTAL,
        "used": TOTAL,
        "used_at_most": TOTAL,
        "exact": True,
        "vocabulary": "o200k_base",
        "tool_schemas": 0,
    }
    assert report["window"]["free"] == 128_000 - 4_096 - 1_024 - TOTAL
    assert [(r["start"], r["stop"]) for r in report["rounds"]] == [(1, 5), (5, 8)]
    assert [m["kind"] for m in report["messages"]] == [
        "text", "text", "calls", "results", "reasoning", "text", "calls", "results",
    ]  # fmt: skip
    assert [m["index"] for m in report["messages"] if m["protected"]] == [0, 1, 5, 7]
    assert [(r["messages"], r["wasted"]) for r in report["repeats"]] == [([3, 7], count_text(LISTING))]
    assert sum(r["tokens"] for r in report["by_role"]) == sum(k["tokens"] for k in report["by_kind"]) == TOTAL
    assert (report["problems"], report["warnings"], report["boundaries"]) == ([], [], [])
    assert "budget" not in report


def count_text(text: str) -> int:
    frame = count([{"role": "user", "content": ""}], model="gpt-4o")
    return count([{"role": "user", "content": text}], model="gpt-4o") - frame


def test_the_reply_that_the_request_asks_for_is_kept_free(tmp_path: Path) -> None:
    report = inspected(written(tmp_path, body(TALK, max_tokens=9_000)))
    assert report["window"]["reply_reserve"] == 9_000


def test_a_clients_own_compaction_is_marked_and_only_the_rest_fills_the_window() -> None:
    report = inspected("-", stdin=compacted_session())
    assert report["boundaries"] == [2]
    assert [message["sent"] for message in report["messages"]] == [False, False, True, True]
    assert report["tokens"]["used"] == sum(m["tokens"] for m in report["messages"][2:])
    shown = everlong("inspect", "-", "--lang", "en", stdin=compacted_session()).out
    assert "the messages before #2 are no longer sent" in " ".join(shown.split())
    assert "the client compacted here" in shown


def test_what_could_not_be_read_is_told() -> None:
    lines = compacted_session() + b'{"type": "mess\n'
    report = inspected("-", stdin=lines)
    assert len(report["warnings"]) == 1
    assert "line 6" in report["warnings"][0]
    assert "Could not be read" in everlong("inspect", "-", "--lang", "en", stdin=lines).out


def test_same_input_same_output(talk: str) -> None:
    for form in ("--json", "--html=-", "--top=3"):
        assert everlong("inspect", talk, form).out == everlong("inspect", talk, form).out


# --- several conversations ------------------------------------------------------------------------


def test_one_of_several_conversations_is_picked(tmp_path: Path) -> None:
    path = written(tmp_path, [body([{"role": "user", "content": name}]) for name in ("one", "two", "three")])
    assert [shown["title"] for shown in inspected(path, "--pick", "2")["rounds"]] == ["two"]
    assert inspected(path)["conversation"] == {"picked": 1, "of": 3}
    ran = everlong("inspect", path, "--lang", "en")
    assert ran.err == "This file holds 3 conversations; this is number 1. Choose another with --pick.\n"


# --- a budget -------------------------------------------------------------------------------------


def test_a_budget_tells_what_happens_to_each_message_and_why(tmp_path: Path) -> None:
    turns = [{"role": ("user", "assistant")[n % 2], "content": f"turn {n}: " + "word " * 150} for n in range(40)]
    path = written(tmp_path, body([*turns, {"role": "user", "content": "What was said in turn 3?"}]))
    report = inspected(path, "--budget", "2000")
    assert report["budget"]["after"] <= 2_000 < report["budget"]["before"]
    states = [message["state"] for message in report["messages"]]
    assert states[:2] == ["stays", "goes"]  # the first words are the task
    assert states[-1] == "stays"
    gone = [message for message in report["messages"] if message["state"] == "goes"]
    assert all(message["notes"] and message["after"] == 0 for message in gone)
    named = {edit["message"]: edit["ref"] for edit in report["budget"]["edits"] if edit["action"] == "drop"}
    assert all(named[message["index"]] for message in gone)
    sent = sum(message["after"] for message in report["messages"]) + sum(a["tokens"] for a in report["budget"]["added"])
    assert sent == report["budget"]["after"]
    shown = everlong("inspect", path, "--budget", "2000", "--lang", "en").out
    assert "Fitted into 2,000 tokens" in shown
    assert "| stays   ~ shortened   . left out" in shown


@pytest.mark.parametrize(
    ("language", "title", "why"),
    [
        ("en", "Does not fit into 5 tokens", "tokens, but the limit is 5: "),
        ("zh", "无法压缩到 5 token 以内", "token，上限是 5："),
    ],
)
def test_the_map_is_drawn_even_if_the_budget_is_impossible(language: str, title: str, why: str, talk: str) -> None:
    ran = everlong("inspect", talk, "--budget", "5", "--lang", language)
    assert (ran.code, ran.err) == (1, "")
    assert title in ran.out
    assert why in ran.out
    without = everlong("inspect", talk, "--lang", language).out
    assert [line for line in without.splitlines() if line not in ran.out] == []


def test_an_impossible_budget_is_told_to_programs_and_on_pages(talk: str, tmp_path: Path) -> None:
    report = json.loads(everlong("inspect", talk, "--budget", "5", "--json").out)
    needed = report["budget"]["needed"]
    assert needed == sum(part["tokens"] for part in report["budget"]["parts"]) > 5
    assert report["budget"]["impossible"].startswith(
        f"the request needs at least {needed} tokens, but the limit is 5: "
    )
    ran = everlong("inspect", talk, "--budget", "5", "--html", "--lang", "en")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "the limit is 5" in ran.err
    assert "Does not fit into 5 tokens" in (tmp_path / "talk.map.html").read_text(encoding="utf-8")


def test_a_budget_that_is_large_enough_changes_nothing(talk: str) -> None:
    report = inspected(talk, "--budget", "100000")
    assert report["budget"]["edits"] == []
    assert {message["state"] for message in report["messages"]} == {"stays"}
    assert "It fits as it is." in everlong("inspect", talk, "--budget", "100000", "--lang", "en").out


# --- the page's file --------------------------------------------------------------------------------


def test_the_page_is_written_beside_the_file(talk: str, tmp_path: Path) -> None:
    ran = everlong("inspect", talk, "--html", "--lang", "en")
    page = tmp_path / "talk.map.html"
    assert ran.out == f"Page written to {page}\n"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_page_and_json_can_be_had_at_once(talk: str, tmp_path: Path) -> None:
    ran = everlong("inspect", talk, "--html", "--json", "--lang", "en")
    assert json.loads(ran.out)["tokens"]["total"] == TOTAL
    assert ran.err.startswith("Page written to ")
    assert (tmp_path / "talk.map.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "page"),
    [
        (["talk.json", "--html", "a.html"], "a.html"),
        (["--html", "talk.json"], "talk.map.html"),
        (["talk.json.gz", "--html"], "talk.map.html"),
        (["--sample", "--html"], "everlong-sample.map.html"),
        (["-", "--html"], "everlong-conversation.map.html"),
    ],
    ids=["named", "the option before the file", "packed", "sample", "standard input"],
)
def test_where_the_page_goes(arguments: list[str], page: str, tmp_path: Path) -> None:
    data = Path(written(tmp_path, body(TALK))).read_bytes()
    (tmp_path / "talk.json.gz").write_bytes(gzip.compress(data))
    ran = everlong("inspect", *arguments, stdin=data, folder=tmp_path)
    assert ran.code == 0, ran.err
    assert (tmp_path / page).is_file()


def test_a_conversation_is_never_overwritten_by_a_page(talk: str, tmp_path: Path) -> None:
    other = written(tmp_path, body(TALK), "other.json")
    before = Path(other).read_bytes()
    ran = everlong("inspect", "--html", other, talk)
    assert (ran.code, ran.err) == (1, f"everlong: --html: {other} does not end in .html\n")
    assert Path(other).read_bytes() == before


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["missing.json"], "missing.json: No such file or directory"),
        (["empty.json"], "empty.json: the file is empty"),
        (["number.json"], "number.json: not a conversation: a JSON int"),
        (["talk.json", "--pick", "2"], "talk.json: no conversation '2': the file holds 1"),
        (["talk.json", "--html", "no/such/folder/a.html"], "no/such/folder/a.html: No such file or directory"),
    ],
    ids=["missing", "empty", "no conversation", "pick", "page in no folder"],
)
def test_bad_input_is_one_line_and_exit_code_1(arguments: list[str], line: str, tmp_path: Path) -> None:
    written(tmp_path, body(TALK))
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "number.json").write_bytes(b"7")
    ran = everlong("inspect", *arguments, folder=tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("everlong: ")
    assert line in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [[], ["x.json", "--lang", "xx"], ["x.json", "--for", "nobody"], ["x.json", "--top", "-1"]],
    ids=["no file", "language", "provider", "top"],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    assert everlong("inspect", *arguments).code == 2


def test_a_conversation_of_nothing_but_system_text(tmp_path: Path) -> None:
    ran = everlong("inspect", written(tmp_path, body([{"role": "system", "content": "Be kind."}])), "--lang", "en")
    assert ran.code == 0
    assert "there are only system messages" in ran.out


# --- with a preset ------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["auto", "chatbox", "nanobot", "simple", "static-buffer", "off"])
@pytest.mark.parametrize("budget", [("--budget", "16000"), ()], ids=["a budget", "the window"])
def test_the_map_shows_what_a_preset_would_do(preset: str, budget: tuple[str, ...]) -> None:
    fitted = json.loads(everlong("fit", "--sample", *budget, "--preset", preset, "--json").out)
    plan = inspected("--sample", *budget, "--preset", preset)["budget"]
    assert (plan["tokens"], plan["after"]) == (fitted["budget"], fitted["tokens"])
    assert [(edit["message"], edit["step"]) for edit in plan["edits"]] == [
        (edit["at"], edit["step"]) for edit in fitted["edits"]
    ]


def test_the_window_in_the_environment_is_what_a_preset_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERLONG_WINDOW", "32000")
    assert inspected("--sample", "--preset", "simple")["budget"]["tokens"] < 32_000
    assert "budget" not in inspected("--sample")


def test_a_misspelt_preset_is_wrong_usage() -> None:
    ran = everlong("inspect", "--sample", "--preset", "simpel")
    assert (ran.code, "did you mean simple?" in ran.err) == (2, True)
