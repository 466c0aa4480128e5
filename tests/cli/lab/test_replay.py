"""`everlong lab replay`: what it prints, writes and says when something is wrong."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from everlong.core import JsonObject
from everlong.lab import TARIFFS, money
from tests.cli.running import Ran, everlong
from tests.lab.folders import DATA
from tests.wire.sessions.samples import claude_line

SMALL = ("--window", "4000", "--front", "500", "--reply", "500")
QUICK = (*SMALL, "--policy", "whole", "--policy", "auto")
TICKET = "HB72QX"
QUIET = "a quiet line of output that says nothing\n"
STEPS = 16
COLUMNS = 12  # of the table
BEGINNING = datetime(2026, 3, 1, 9, tzinfo=UTC)


def written(path: Path, model: str = "claude-sonnet-4-5", *, steps: int = STEPS, usage: bool = True) -> Path:
    """A session of Claude Code: a ticket is named at the beginning, and closed long after."""
    task = claude_line("u0", None, "user", {"role": "user", "content": f"Look after ticket {TICKET}."})
    records = [task, *(record for number in range(steps) for record in step(number, steps, model, usage=usage))]
    for at, record in enumerate(records):
        record["timestamp"] = (BEGINNING + timedelta(seconds=10 * at)).isoformat()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def step(number: int, steps: int, model: str, *, usage: bool) -> tuple[JsonObject, JsonObject]:
    """A call and its result; the last call closes the ticket."""
    command = f"close {TICKET}" if number == steps - 1 else f"look {number}"
    call: JsonObject = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
    reply: JsonObject = {"id": f"m{number}", "type": "message", "role": "assistant", "model": model, "content": [call]}
    if usage:
        reply["usage"] = {"input_tokens": 1_000, "cache_read_input_tokens": 9_000, "output_tokens": 20}
    result: JsonObject = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number}\n{QUIET * 40}"}
    return (
        claude_line(f"a{number}", f"r{number - 1}" if number else "u0", "assistant", reply, requestId=f"q{number}"),
        claude_line(f"r{number}", f"a{number}", "user", {"role": "user", "content": [result]}),
    )


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("sessions") / "harbour.jsonl")


def replay(*arguments: str | Path, stdin: bytes = b"") -> Ran:
    return everlong("lab", "replay", *map(str, arguments), stdin=stdin)


def found(*arguments: str | Path, stdin: bytes = b"") -> Any:
    ran = replay(*arguments, "--json", stdin=stdin)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


# --- the table -----------------------------------------------------------------------------------


def test_the_table_says_what_was_paid_what_it_would_cost_and_what_is_kept(session: Path) -> None:
    ran = replay(session, *SMALL)
    assert ran.code == 0, ran.err
    assert not ran.err
    out = ran.out
    assert "1 session" in out
    assert "prices: claude-sonnet-4-5" in out
    paid, _, played = out.partition("In a window of 4,000 tokens")
    assert ["claude-sonnet-4-5", str(STEPS), "160k", "90.0", "%", "320", "$0.0960"] in map(str.split, paid.splitlines())
    rows = {cells[0]: cells for line in played.splitlines() if len(cells := line.split()) == COLUMNS}
    for policy in ("whole", "auto", "auto-trim", "drop@.95/.3", "trim@.85/.5", "summary@.95", "slide", "clear@.5"):
        assert rows[policy][1].startswith("$")
    assert rows["whole"][2:5] == ["1.00", "100.0", "100.0"]
    assert "Every request is valid and fits the window." in played
    assert "of the 1 string that was needed again" in played


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("columns", [80, 100])
def test_the_table_fits_a_terminal(session: Path, language: str, columns: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "everlong", "lab", "replay", str(session), *QUICK, "--lang", language],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"COLUMNS": str(columns), "PYTHONUTF8": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith(("whole", "auto "))]
    assert [len(line.split()) for line in rows][:2] == [COLUMNS, COLUMNS], "a row was folded"
    assert all(width(line) <= columns for line in done.stdout.splitlines())


def width(line: str) -> int:
    return sum(2 if ord(sign) >= 0x2E80 else 1 for sign in line)


def test_the_table_is_in_chinese_where_that_is_asked_for(session: Path) -> None:
    out = replay(session, *QUICK, "--lang", "zh").out
    for text in ("1 个会话", "文件中记录的花费", "窗口 4,000 token", "策略", "所有请求都有效，且放得进窗口。"):
        assert text in out
    assert "window" not in out


def test_a_session_that_fits_costs_what_it_costs_uncut(tmp_path: Path) -> None:
    short = written(tmp_path / "short.jsonl", steps=2)
    ran = replay(short, *QUICK[:-4], "--policy", "auto")
    assert "the same as sending everything" in ran.out
    (auto,) = found(short, *SMALL, "--policy", "auto")["results"]
    assert (auto["ratio"], auto["cuts"], auto["resets"], auto["over"]) == (1, 0, 0, 0)


# --- the verdict ---------------------------------------------------------------------------------


def verdict(*arguments: str | Path) -> str:
    """The paragraph at the end, as one line."""
    ran = replay(*arguments)
    assert ran.code == 0, ran.err
    return " ".join(ran.out.strip().rpartition("\n\n")[2].split())


def test_the_verdict_is_one_sentence_for_the_cheapest_window(session: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        written(tmp_path / f"{name}.jsonl", steps=40)
    options = (tmp_path, *SMALL, "--window", "4000,8000", "--policy", "auto")
    cheapest = min(found(*options)["results"], key=lambda one: one["dollars"])
    assert verdict(*options) == (
        f"Sent in full, your 2 sessions would have cost {money(cheapest['uncut'])} at the prices of "
        f"claude-sonnet-4-5; with everlong in a window of {cheapest['window']:,} tokens they would have cost "
        f"{money(cheapest['dollars'])} (−{100 - 100 * cheapest['ratio']:.0f} %), and {cheapest['kept_percent']:.0f} % "
        "of what the agent needed again would still have been in the window."
    )


OWN = {
    "a model of the registry": (
        "claude-sonnet-4-5",
        (),
        [200_000, 64_000, 128_000],
        "claude-sonnet-4-5's own window of",
    ),
    "another model": (
        "claude-sonnet-4-5",
        ("--model", "gpt-4o"),
        [128_000, 64_000],
        "gpt-4o's own window of 128,000 tokens",
    ),
    "a model nobody knows": ("our-own-9", (), [64_000, 128_000], "a window of"),
    "a window that is too small": ("gpt-4", (), [64_000, 128_000], "a window of"),
    "a window that is named": ("claude-sonnet-4-5", ("--window", "128k"), [128_000], "a window of 128,000 tokens"),
}


@pytest.mark.parametrize(("model", "options", "windows", "said"), OWN.values(), ids=OWN)
def test_without_a_window_the_verdict_is_about_the_models_own(
    model: str, options: tuple[str, ...], windows: list[int], said: str, tmp_path: Path
) -> None:
    written(tmp_path / ".claude" / "projects" / "here" / "harbour.jsonl", model, steps=2)
    environment = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "PYTHONUTF8": "1"}
    for more in (("--json",), ()):
        ran = subprocess.run(
            [sys.executable, "-m", "everlong", "lab", "replay", "claude-code", "--policy", "auto", *options, *more],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=environment,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        if more:
            assert json.loads(ran.stdout)["windows"] == windows
        else:
            sentence = " ".join(ran.stdout.strip().rpartition("\n\n")[2].split())
            assert f"with everlong in {said}" in sentence
            assert sentence.count(".") == sentence.count("$0.") + 1


def test_the_verdict_says_in_chinese_that_the_window_is_the_models_own(session: Path) -> None:
    assert "用 everlong（claude-sonnet-4-5 自身的窗口，200,000 token）" in verdict(
        session, "--policy", "auto", "--lang", "zh"
    )


PRICED = {
    "the model used most": ((), "claude-sonnet-4-5"),
    "another model": (("--model", "gpt-4o"), "gpt-4o"),
    "a table": (("--prices", "openai"), "openai"),
    "a file": (("--prices", "ours.json"), "ours"),
    "a model without prices": (("--model", "our-own-9"), "anthropic"),
}


@pytest.mark.parametrize(("options", "prices"), PRICED.values(), ids=PRICED)
def test_the_verdict_names_the_prices(
    options: tuple[str, ...], prices: str, session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ours.json").write_text('{"input": 3, "output": 15}')
    words = (f" at the prices of {prices}; with everlong", f"按 {prices} 的价格要花")
    for language, said in zip(("en", "zh"), words, strict=True):
        assert said in verdict(session, *SMALL, "--policy", "auto", *options, "--lang", language)


def test_the_verdict_says_more_where_it_costs_more(session: Path) -> None:
    (auto,) = found(session, *SMALL, "--policy", "auto")["results"]
    assert auto["ratio"] > 1
    assert f"it would have cost {money(auto['dollars'])} (+{100 * auto['ratio'] - 100:.0f} %)" in verdict(
        session, *SMALL, "--policy", "auto"
    )


def test_the_verdict_is_written_in_chinese(tmp_path: Path) -> None:
    written(tmp_path / "long.jsonl", steps=40)
    said = verdict(tmp_path, *SMALL, "--policy", "auto", "--lang", "zh")
    assert re.fullmatch(
        r"你的 1 个会话若全量发送，按 claude-sonnet-4-5 的价格要花 \$[\d.]+；"
        r"用 everlong（窗口 4,000 token）则为 \$[\d.]+（−\d+ %），"
        r"Agent 后来又用到的内容有 \d+ % 仍在窗口内。",
        said,
    ), said


def test_a_short_session_has_a_verdict_without_figures_of_what_is_kept(tmp_path: Path) -> None:
    written(tmp_path / "short.jsonl", steps=2)
    said = verdict(tmp_path, *SMALL, "--policy", "auto")
    assert said.endswith("it would have cost the same; nothing that was said earlier was needed again.")


def test_sessions_of_the_data_folder_are_not_called_yours_and_other_policies_have_no_verdict() -> None:
    options = ("--data", DATA, "--files", "office", *SMALL, "--window", "2000", "--policy")
    assert "Sent in full, these 2 sessions would have cost" in replay(*options, "auto-trim").out
    assert "Sent in full" not in replay(*options, "whole").out


# --- JSON ----------------------------------------------------------------------------------------


def test_json_has_every_figure_and_every_request(session: Path) -> None:
    said = found(session, *QUICK, "--window", "4000,4000,9000", "--policy", "auto")
    assert said["windows"] == [4_000, 9_000]
    assert said["tariff"]["name"] == said["model"] == "claude-sonnet-4-5"
    assert [(one["policy"], one["window"]) for one in said["results"]] == [
        ("whole", 4_000),
        ("auto", 4_000),
        ("whole", 9_000),
        ("auto", 9_000),
    ]
    assert said["recorded"] == said["sessions"][0]["recorded"]
    assert said["recorded"][0]["requests"] == STEPS
    assert not said["thresholds"]
    for one in said["results"]:
        (played,) = one["played"]
        assert played["session"] == said["sessions"][0]["id"] == "harbour"
        assert len(played["paid"]) == one["requests"]
        assert sum(paid["dollars"] for paid in played["paid"]) == pytest.approx(one["dollars"])
        assert one["ratio"] == pytest.approx(one["dollars"] / one["uncut"], abs=1e-3)
        assert one["probes"] == len(played["probes"]) == 1
        assert one["kept_percent"] == 100 * one["kept"]
    whole, auto = said["results"][:2]
    assert whole["over"] > 0
    assert auto["cuts"] > 0
    assert (auto["over"], auto["invalid"], auto["broken"]) == (0, 0, 0)


def test_several_overheads_are_a_table_each_and_named_in_every_result(session: Path) -> None:
    options = (session, *QUICK[:2], "--overhead", "200,900", "--reply", "500", "--policy", "auto")
    said = found(*options, "--overhead-as", "system")
    assert (said["front"], said["overheads"], said["overhead_as"]) == (200, [200, 900], "system")
    assert [(one["window"], one["front"]) for one in said["results"]] == [(4_000, 200), (4_000, 900)]
    less, more = said["results"]
    assert less["uncut"] < more["uncut"]
    assert less["cuts"] < more["cuts"]
    for one in said["results"]:
        assert one["storms"] == sum(
            paid["new"] is not None and paid["new"] < 0.4 for played in one["played"] for paid in played["paid"]
        )
        assert one["needless"] == []
    out = replay(*options).out
    assert "200 / 900 tokens of system text and tools in every request" in out
    for overhead in ("200", "900"):
        assert f"In a window of 4,000 tokens, prompt overhead {overhead} tokens" in out


def test_everlong_is_the_name_of_what_we_do(session: Path) -> None:
    ours = found(session, *SMALL, "--policy", "everlong", "--policy", "everlong-trim", "--policy", "auto")["results"]
    assert [one["policy"] for one in ours] == ["auto", "auto-trim"]
    assert ours == found(session, *SMALL, "--policy", "auto", "--policy", "auto-trim")["results"]


def test_reading_again_can_be_left_out(session: Path) -> None:
    options = (session, *SMALL, "--policy", "drop@.95/.3")
    (with_it,), (without,) = (found(*options, *more)["results"] for more in ((), ("--no-reading",)))
    assert (with_it["kept"], with_it["readings"]) == (0, 1)
    assert (without["kept"], without["readings"]) == (0, 0)


def test_a_pause_that_the_cache_does_not_outlive_costs_more(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": QUIET * 200}, {"role": "assistant", "content": "Quiet."}] * 4
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(talk))
    warm, cold = (
        found(path, *SMALL, "--window", "50000", "--policy", "whole", "--pauses", pauses)["results"][0]
        for pauses in ("none", "turns")
    )
    assert cold["read"] == 0 < warm["read"]
    assert cold["dollars"] > warm["dollars"]


# --- what is replayed ----------------------------------------------------------------------------


def test_a_folder_may_hold_what_is_no_session(tmp_path: Path) -> None:
    written(tmp_path / "deep" / "one.jsonl")
    (tmp_path / "package.json").write_text('{"name": "harbour"}')
    (tmp_path / "notes.md").write_text("nothing")
    ran = replay(tmp_path, *QUICK)
    assert ran.code == 0
    assert ran.err == "1 file is not a conversation: package.json\n"


def test_standard_input_is_a_session_too(session: Path) -> None:
    said = found("-", *QUICK, stdin=session.read_bytes())
    assert [one["messages"] for one in said["sessions"]] == [1 + 2 * STEPS]


def test_only_the_longest_are_replayed_if_so_asked(tmp_path: Path) -> None:
    for name, steps in (("a", 2), ("b", 5), ("c", 3)):
        written(tmp_path / f"{name}.jsonl", steps=steps)
    said = found(tmp_path, *QUICK, "--longest", "2")
    assert [one["id"] for one in said["sessions"]] == ["b", "c"]


def test_without_a_path_the_data_folder_is_replayed() -> None:
    said = found("--data", DATA, "--files", "office", *SMALL, "--window", "2000", "--policy", "auto-trim")
    assert sorted(one["id"] for one in said["sessions"]) == ["ferry-office", "tea-shop"]
    assert said["model"] == said["tariff"]["name"] == "gpt-4o"
    assert said["results"][0]["probes"] == 5
    none = replay("--data", DATA, "--files", "office", "--half", "tuning", *SMALL)
    assert none.err.endswith("no conversations in office (tuning)\n")


# --- model and prices ----------------------------------------------------------------------------


def test_the_model_of_most_requests_counts_and_prices(tmp_path: Path) -> None:
    for number in range(2):
        written(tmp_path / f"haiku{number}.jsonl", "claude-haiku-4-5", steps=2)
    written(tmp_path / "sonnet.jsonl", "claude-sonnet-4-5", steps=6)
    said = found(tmp_path, *SMALL, "--policy", "whole")
    assert said["model"] == said["tariff"]["name"] == "claude-sonnet-4-5"
    assert [one["requests"] for one in said["recorded"]] == [6, 4]
    other = found(tmp_path, *SMALL, "--policy", "whole", "--model", "claude-haiku-4-5")
    assert other["tariff"]["name"] == "claude-haiku-4-5"


PRICES = {
    "a model nobody prices": (("harbour.jsonl",), "no prices are known for our-own-9: using anthropic prices"),
    "no model at all": (("talk.json",), "the sessions name no model: using anthropic prices"),
    "a model that was named": (("talk.json", "--model", "our-own-9"), "no prices are known for our-own-9"),
}


@pytest.mark.parametrize(("arguments", "told"), PRICES.values(), ids=PRICES)
def test_where_no_prices_are_known_anthropics_are_taken_and_that_is_told(
    arguments: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    written(tmp_path / "harbour.jsonl", "our-own-9", steps=2)
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    (tmp_path / "talk.json").write_text(json.dumps(talk))
    ran = replay(tmp_path / arguments[0], *arguments[1:], *SMALL, "--policy", "whole", "--json")
    assert json.loads(ran.out)["tariff"]["name"] == "anthropic"
    assert ran.err.startswith(told)
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("table", TARIFFS)
def test_every_table_of_prices_can_be_named(session: Path, table: str) -> None:
    said = found(session, *SMALL, "--policy", "whole", "--prices", table)
    assert said["tariff"]["name"] == said["results"][0]["tariff"] == table


def test_prices_may_be_a_file(session: Path, tmp_path: Path) -> None:
    (tmp_path / "ours.json").write_text('{"input": 1, "output": 0}')
    said = found(session, *SMALL, "--policy", "whole", "--prices", tmp_path / "ours.json")
    (whole,) = said["results"]
    assert said["tariff"]["name"] == "ours"
    assert whole["dollars"] == pytest.approx(whole["prompt"] / 1e6)


# --- the page ------------------------------------------------------------------------------------


def test_a_page_is_written_with_thresholds(session: Path, tmp_path: Path) -> None:
    ran = replay(session, *QUICK, "--html", tmp_path / "page.html")
    assert ran.code == 0, ran.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "tokens counted for claude-sonnet-4-5" in page
    for share in ("40 %", "55 %", "70 %", "85 %", "95 %"):
        assert share in page
    assert "auto@0.4" in ran.out


def test_a_page_on_standard_output_stands_there_alone(session: Path) -> None:
    ran = replay(session, *QUICK, "--html", "-", "--thresholds", "", "--lang", "zh")
    assert ran.out.startswith("<!doctype html>")
    assert "auto@" not in ran.out
    assert "按 claude-sonnet-4-5 计数" in ran.out


def test_thresholds_are_results_of_their_own(session: Path) -> None:
    said = found(session, *QUICK, "--thresholds", ".9,.5,0.5")
    assert [one["policy"] for one in said["results"]] == ["whole", "auto"]
    assert [one["policy"] for one in said["thresholds"]] == ["auto@0.5", "auto@0.9"]


# --- what is wrong -------------------------------------------------------------------------------

WRONG = {
    "no such path": (("nowhere",), 1, "nowhere: no such file or folder"),
    "nothing there": (("empty",), 1, "nothing to replay in empty"),
    "no conversation": (("notes.json",), 1, "notes.json: "),
    "no policy": (("nowhere", "--policy", "best"), 1, "unknown policy 'best'; use whole, slide, "),
    "no shares": (
        ("nowhere", "--policy", "auto@high"),
        1,
        "auto@high: @ needs the threshold, a share from 0.40 to 0.95",
    ),
    "no threshold": (
        ("nowhere", "--thresholds", ".2"),
        1,
        "auto@0.2: @ needs the threshold, a share from 0.40 to 0.95",
    ),
    "no number": (("nowhere", "--thresholds", "low"), 2, "give shares separated by commas"),
    "no prices": (("nowhere", "--prices", "gold"), 1, "unknown prices 'gold': use anthropic"),
    "bad prices": (("nowhere", "--prices", "notes.json"), 1, "notes.json: 'name' is not a price"),
    "no room": (
        ("nowhere", "--window", "20500"),
        1,
        "a window of 20,500 tokens is too small: 8,000 are reserved for the answer",
    ),
    "no window": (("nowhere", "--window", ","), 2, "give numbers of tokens separated by commas, such as 64k,200k"),
    "a window of words": (("nowhere", "--window", "64x"), 2, "'64x' is not a number of tokens"),
    "no place for a page": (("nowhere", "--html", "gone/page.html"), 1, "gone/page.html: no such folder"),
    "a folder for a page": (("nowhere", "--html", "empty"), 1, "empty is a folder, not a file"),
    "no data": (("--data", "nowhere"), 1, "nowhere: no such folder"),
    "path and data": (("nowhere", "--data", "empty"), 2, "leave out PATH"),
    "no answer on standard input": (("-",), 1, "nothing to replay"),
}


@pytest.mark.parametrize(("arguments", "code", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_in_one_line(arguments: tuple[str, ...], code: int, told: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.json").write_text('{"name": "harbour"}')
    ran = everlong("lab", "replay", *arguments, folder=tmp_path, stdin=b'[{"role": "user", "content": "hi"}]')
    assert ran.code == code
    assert not ran.out
    assert told in ran.err
    assert "Traceback" not in ran.err
    if code == 1:
        assert ran.err.startswith("everlong: ")
        assert ran.err.count("\n") == 1
