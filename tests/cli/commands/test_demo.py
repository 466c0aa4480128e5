"""The demonstration: what it shows really happened, in both languages and in 80 columns."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.cells import cell_len

from everlong.cli.runs.demo import FACTS, THREAD, Outcome, Play, Turn
from everlong.cli.terminal.files import sample_document
from everlong.compress import PRESETS
from everlong.core import Message
from everlong.store import open_store
from tests.cli.running import everlong


@dataclass(frozen=True)
class Played:
    play: Play
    turns: list[Turn]
    outcome: Outcome


async def whole(play: Play) -> Played:
    return Played(play, [turn async for turn in play.turns()], play.outcome())


@pytest.fixture(scope="module")
def played() -> Played:
    with open_store("memory:") as store:
        return asyncio.run(whole(Play(sample_document(), store, 16_000)))


def test_the_conversation_outgrows_its_window_and_no_request_does(played: Played) -> None:
    turns, outcome = played.turns, played.outcome
    assert len(turns) == 28
    assert turns[-1].said > 3 * 16_000
    assert max(request.tokens for request in played.play.model.requests) == outcome.largest < 16_000
    assert outcome.refused == 0
    assert sum(turn.full for turn in turns) == 1
    assert all(cut.tokens_after < cut.tokens_before for turn in turns for cut in turn.cuts)


def test_what_the_last_question_needs_is_in_the_last_request(played: Played) -> None:
    outcome = played.outcome
    sent = "\n".join(str(message.parts) for message in played.play.model.requests[-1].messages)
    for found in outcome.facts:
        assert any(needle in found.line for needle in found.fact.needles), found.fact.key
        assert any(needle in sent for needle in found.fact.needles), found.fact.key
    assert [found.fact for found in outcome.facts] == list(FACTS)


def test_everything_that_was_said_is_in_the_store(tmp_path: Path) -> None:
    where = str(tmp_path / "demo.db")
    ran = everlong("demo", "--store", where, "--lang", "en")
    assert f"everlong sessions show {THREAD} --store {where}".replace(" ", "") in "".join(ran.out.split())
    sample = sample_document().messages
    with open_store(where) as store:
        kept = [row.entry.text for row in store.read(THREAD) if isinstance(row.entry, Message)]
    assert kept[: len(sample)] == [message.text for message in sample]
    assert everlong("demo", "--store", where).code == 1


def test_what_left_is_told_when_a_window_is_too_small_for_it() -> None:
    ran = everlong("demo", "--window", "8000", "--lang", "en")
    told = json.loads(everlong("demo", "--window", "8000", "--json").out)
    missing = sum(not fact["line"] for fact in told["facts"])
    assert ran.code == 0
    assert ran.out.count("✗") == ran.out.count("left out") == missing > 0


@pytest.mark.parametrize(("language", "words"), [("en", "outgrows its window"), ("zh", "超出窗口的对话")])
def test_every_line_fits_a_terminal(language: str, words: str) -> None:
    ran = everlong("demo", "--lang", language)
    assert ran.code == 0
    assert words in ran.out
    assert max(cell_len(line) for line in ran.out.splitlines()) <= 80


def test_json_has_every_turn() -> None:
    told = json.loads(everlong("demo", "--json").out)
    assert [turn["number"] for turn in told["turns"]] == list(range(1, 29))
    assert told["window"] == 16_000
    assert told["messages"] == 190


def test_too_small_a_window_is_refused_in_words() -> None:
    ran = everlong("demo", "--window", "10")
    assert ran.code == 2
    assert "4000" in ran.err


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_holds_the_window_turn_by_turn(preset: str) -> None:
    told = json.loads(everlong("demo", "--preset", preset, "--json").out)
    assert (told["preset"], told["ended"], told["refused"], len(told["turns"])) == (preset, False, 0, 28)
    assert told["turns"][-1]["said"] > 3 * told["window"]
    assert all(0 < turn["sent"] < told["window"] for turn in told["turns"])
    assert 0.4 * told["window"] < told["largest"] < told["window"]


@pytest.mark.parametrize(("language", "words"), [("en", "Preset simple"), ("zh", "预设 simple")])
def test_the_preset_is_said(language: str, words: str) -> None:
    assert words in everlong("demo", "--preset", "simple", "--lang", language).out
    assert words.split(" ")[0] not in everlong("demo", "--lang", language).out
    assert "--preset [auto|" in everlong("demo", "--help").out


@pytest.mark.parametrize(("language", "words"), [("en", "so the conversation ends here"), ("zh", "对话到此为止。")])
def test_with_nothing_left_out_the_conversation_ends_where_the_window_does(language: str, words: str) -> None:
    ran = everlong("demo", "--preset", "off", "--lang", language)
    assert ran.code == 0
    assert words in " ".join(ran.out.split())
    told = json.loads(everlong("demo", "--preset", "off", "--json").out)
    assert told["ended"]
    assert told["turns"][-1]["full"]
    assert 5 < len(told["turns"]) < 15
