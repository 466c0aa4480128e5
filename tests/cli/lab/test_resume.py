"""`everlong lab resume`: what it prints, writes and says when something is wrong, on sessions with known answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ran, everlong
from tests.lab.folders import DATA
from tests.lab.pages import Checker

STEPS = 40
CALLS = 5
PLACE = ("--window", "8000", "--overhead", "500")
OWN = "tests.lab.own_strategies"
KEEPS_NOTHING = ("--strategy", f"{OWN}:spoils_what_it_is_given")


def turn(number: int, name: str, arguments: dict[str, Any], result: str) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def page(number: int) -> str:
    return "\n".join(f"plank {plank} of {number} is {plank * 7_919 + number}" for plank in range(40))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions. `listed`: each call but the first looks at one path of a list that stands at the beginning alone.

    `again`: two calls take turns; `look` always has the same result, `clock` always another.
    """
    listing = "\n".join(f"harbour/boats/boat_{number}.txt" for number in range(1, STEPS))
    listed = [{"role": "user", "content": "Look at every boat."}, *turn(0, "list", {"all": True}, listing)]
    again: list[dict[str, Any]] = [{"role": "user", "content": "Watch the lamp."}]
    for number in range(1, STEPS):
        listed += turn(number, "look", {"path": f"harbour/boats/boat_{number}.txt"}, page(number))
        again += turn(number, *(("look", {"at": "lamp"}, page(0)) if number % 2 else ("clock", {}, page(number))))
    agents = tmp_path_factory.mktemp("data") / "agents"
    agents.mkdir()
    rows = (
        {"id": name, "source": f"ours/{name}", "messages": messages}
        for name, messages in (("listed", listed), ("again", again))
    )
    (agents / "harbour.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (agents / "probes.jsonl").write_text("")
    return agents.parent


def resume(folder: Path, *arguments: str) -> Ran:
    return everlong("lab", "resume", "--data", str(folder), "--files", "harbour", *arguments)


def found(folder: Path, *arguments: str) -> Any:
    ran = resume(folder, *PLACE, *arguments, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)["results"]


def test_nothing_is_missing_uncut_and_all_of_it_where_nothing_is_sent(folder: Path) -> None:
    played, whole, nothing = found(folder, "--strategy", "whole", *KEEPS_NOTHING)
    assert [one["played"] for one in (played, whole, nothing)] == [True, False, False]
    compactions, calls = whole["compactions"], whole["calls"]
    assert compactions > 2
    assert (whole["whole"], whole["whole_strict"], whole["resumed"]) == (calls, calls, compactions)
    assert (nothing["whole"], nothing["there"], nothing["edits_whole"]) == (0, 0, 0)
    assert (nothing["failed"], whole["over"], played["over"]) == (compactions, compactions, 0)
    assert whole["tokens"] > played["tokens"] > nothing["tokens"] == 0
    for one in (played, nothing):
        assert (one["calls"], one["needs"], one["repeated"]) == (calls, whole["needs"], whole["repeated"])
        assert one["whole_strict"] <= one["whole"] <= calls
        assert one["there_strict"] <= one["there"] <= one["needs"]
    (source,) = [name for name in whole["sources"] if whole["sources"][name]["calls"]]
    assert source == "ours/listed", "the calls of the other session use nothing from before"
    assert whole["kinds"] == {"path": [calls, calls, calls]}


def test_calls_are_asked_up_to_the_next_compaction_and_no_more_than_wanted(folder: Path) -> None:
    asked = {wanted: found(folder, "--calls", str(wanted), "--strategy", "whole")[0] for wanted in (1, CALLS, 1_000)}
    first = asked[1]["sources"]["ours/listed"]
    assert first["calls"] == first["compactions"], "each call of that session needs its path"
    assert asked[1]["calls"] < asked[CALLS]["calls"] <= asked[1_000]["calls"]
    assert len({one["after"] for one in asked.values()}) == 1, "repeats are looked for in all calls"
    (every,) = [asked[1_000]["sources"]["ours/listed"]]
    assert every["calls"] == every["after"]


def test_a_strategy_that_drops_the_beginning_loses_what_stood_there(folder: Path) -> None:
    _, newest = found(folder, "--strategy", "newest")
    assert newest["needs"] > 0
    assert (newest["there"], newest["whole"]) == (0, 0)
    assert newest["examples"][0][0] == "listed"
    assert newest["examples"][0][2:] == ["path", newest["examples"][0][3]]
    assert newest["examples"][0][3].startswith("harbour/boats/boat_")


def test_a_repeated_call_is_forced_again_where_its_result_is_gone(folder: Path) -> None:
    _, whole, nothing = found(folder, "--strategy", "whole", *KEEPS_NOTHING)
    for one in (whole, nothing):
        assert one["repeated"] == one["after"] - one["sources"]["ours/listed"]["after"], "every call of the other"
        assert one["changed"] + one["kept"] + one["gone"] == one["repeated"]
        assert abs(one["changed"] - one["kept"] - one["gone"]) <= one["compactions"], "they take turns"
    assert (whole["gone"], nothing["kept"]) == (0, 0)
    assert whole["kept"] == nothing["gone"] > 0


def test_a_table_has_a_row_for_each_strategy_and_says_what_was_asked(folder: Path) -> None:
    ran = resume(folder, *PLACE, "--strategy", "newest", *KEEPS_NOTHING, "--by", "source", "--lang", "en")
    assert (ran.code, ran.err) == (0, "")
    assert "2 sessions, all, the next 5 calls after each compaction" in ran.out
    assert "compactions of auto, window 8,000, prompt overhead 500" in ran.out
    rows = {line.split("  ")[0]: line for line in ran.out.splitlines()}
    assert rows["newest"].split()[1:5] == ["0.0"] * 4
    assert "auto (replayed)" in rows
    assert "selections failed" in " ".join(ran.out.split())
    assert [name for name in rows if name.startswith("ours/")] == ["ours/again", "ours/listed"]


def test_the_words_and_the_page_are_in_chinese_where_that_is_asked_for(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    ran = resume(folder, *PLACE, "--strategy", "newest", "--lang", "zh", "--html", str(path))
    assert "2 个会话，全部，每次压缩后的 5 次调用" in ran.out
    assert "auto（重放）" in ran.out
    assert "压缩之后，接下来的调用还能找到什么" in path.read_text(encoding="utf-8")
    english = resume(folder, *PLACE, "--strategy", "newest", "--lang", "en", "--html", "-").out
    assert english.startswith("<!doctype html>")
    checker = Checker()
    checker.feed(english)
    assert not checker.open
    assert "svg" in checker.tags
    for words in ("What the next calls find after a compaction", "auto, played", "ours/listed", "paths"):
        assert words in checker.text


def test_presets_are_played_each_at_its_own_compactions(folder: Path) -> None:
    results = found(folder, "--preset", "auto", "--preset", "drop@.9/.5", "--strategy", "newest")
    assert [(one["preset"], one["strategy"], one["played"]) for one in results] == [
        ("auto", "auto", True),
        ("auto", "newest", False),
        ("drop@.9/.5", "drop@.9/.5", True),
        ("drop@.9/.5", "newest", False),
    ]
    dropped = results[2]
    assert dropped["compactions"] > 0
    assert dropped["there"] == 0


def test_several_processes_find_what_one_finds(folder: Path) -> None:
    assert found(folder, "--strategy", "newest", "--jobs", "2") == found(folder, "--strategy", "newest")


def test_only_some_sessions_if_so_asked(folder: Path) -> None:
    for options in (("--every", "2"), ("--quick",)):
        assert found(folder, "--strategy", "newest", *options)[0]["sessions"] == 1


def test_what_fits_every_window_is_never_compacted() -> None:
    ran = everlong("lab", "resume", "--data", str(DATA), "--files", "office", "--window", "64000", "--lang", "en")
    assert ran.code == 0, ran.err
    assert "No session needed a compaction." in ran.out


WRONG = {
    "no room": (("--window", "4000", "--overhead", "3000"), "takes more than 70 % of every --window"),
    "no calls": (("--calls", "0"), "--calls"),
    "a preset that nobody knows": (("--preset", "everything"), "everything"),
    "a strategy that nobody knows": (("--strategy", "everything"), "everything"),
    "a file that is not there": (("--files", "nowhere"), "nowhere"),
}


@pytest.mark.parametrize(("options", "told"), WRONG.values(), ids=WRONG)
def test_wrong_input_is_one_clear_line(folder: Path, options: tuple[str, ...], told: str) -> None:
    ran = resume(folder, *options)
    assert ran.code != 0
    assert told in ran.err
    assert "Traceback" not in ran.err


def test_own_sessions_are_played_too(folder: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (folder / "agents" / "harbour.jsonl").read_text().splitlines()]
    (tmp_path / "mine.json").write_text(json.dumps({"messages": rows[0]["messages"]}))
    ran = everlong("lab", "resume", str(tmp_path), *PLACE, "--strategy", "newest", "--json")
    assert ran.code == 0, ran.err
    own, theirs = json.loads(ran.out)["results"][1], found(folder, "--strategy", "newest")[1]["sources"]["ours/listed"]
    assert {key: own[key] for key in theirs} == theirs


def test_sessions_without_calls_are_told(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    talk = [{"role": "user", "content": "Good morning."}, {"role": "assistant", "content": "Good morning."}]
    (tmp_path / "agents" / "harbour.jsonl").write_text(json.dumps({"id": "talk", "messages": talk}))
    (tmp_path / "agents" / "probes.jsonl").write_text("")
    ran = resume(tmp_path)
    assert ran.code != 0
    assert "no session contains a tool call" in ran.err
