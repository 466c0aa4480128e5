"""What a threshold costs and keeps, where the terminal shows one."""

import re
from pathlib import Path

import pytest

from everlong.cli.words.english import ENGLISH
from everlong.cli.words.language import Language
from everlong.cli.words.wording import LANGUAGES, Words
from everlong.engine import DEFAULT_SETTINGS, Settings, outlook
from everlong.engine.preview import Outlook
from tests.cli.chat.talk import talking
from tests.cli.running import everlong


def sentence(language: Language, expected: Outlook) -> str:
    cost, kept = map(str, expected.percents)
    return Words(language, "general")("outlook", cost=cost, kept=kept)


def without_breaks(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.code)
def test_the_chat_says_what_the_threshold_costs_and_keeps(tmp_path: Path, language: Language) -> None:
    with talking(tmp_path, window=64_000, tools=False, language=language) as talk:
        seen = without_breaks(talk.do("/threshold 60"))
    assert without_breaks(sentence(language, outlook(64_000, 0.6))) in seen
    assert without_breaks(Words(language, "general")("outlook_measured")) in seen


SILENT = {
    "an unknown window": (False, Settings()),
    "another preset": (True, Settings(preset="chatbox")),
    "cuts by rule": (True, Settings(mode="trim")),
}


@pytest.mark.parametrize("name", SILENT)
def test_the_chat_says_nothing_that_was_not_measured(tmp_path: Path, name: str) -> None:
    told, settings = SILENT[name]
    with talking(tmp_path, told=told, tools=False, settings=settings) as talk:
        told = talk.do("/threshold 60").strip()
        assert re.fullmatch(r"Compaction starts at 60 % of the budget: [\d,]+ tokens\.", told)


def test_a_model_is_told_with_what_the_usual_threshold_costs_and_keeps() -> None:
    shown = without_breaks(everlong("models", "gpt-4o").out)
    share = DEFAULT_SETTINGS.threshold_share
    assert f"threshold{100 * share:.0f}%" in shown
    assert without_breaks(sentence(ENGLISH, outlook(128_000, share))) in shown


def test_a_model_of_unknown_window_is_told_without() -> None:
    assert "threshold" not in everlong("models", "my-own-model").out
