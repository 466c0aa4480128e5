"""The words: every language says the same, each text is used, and the language comes from the locale."""

import re
from collections.abc import Mapping
from pathlib import Path
from string import Formatter

import pytest

from everlong import cli
from everlong.cli.words.chinese import CHINESE
from everlong.cli.words.chinese_errors import FOREIGN
from everlong.cli.words.chinese_reasons import EARLIER
from everlong.cli.words.english import ENGLISH
from everlong.cli.words.language import Language
from everlong.cli.words.wording import LANGUAGES, Words, language_from
from everlong.core import Action, Protection
from everlong.lab import CONTINUITY_COLUMNS, HALVES, RESUME_COLUMNS
from everlong.wire import problems

#: Packages whose English sentences are translated.
ROOMS = ("cli", "compress", "core", "engine", "llm", "store", "wire")
#: Modules that hold texts.
TABLES = ("english.py", "chinese.py", "chinese_errors.py", "chinese_reasons.py")
#: Keys that the code puts together.
COMPOSED = (
    "command_",
    "door_",
    "option_",
    "purpose_",
    "try_",
    "limit_",
    "row_",
    "by_",
    "may_",
    "step_",
    "insert_",
    "source_",
    "help_",
    "group_",
    "column_",
    "notice_",
    "most_",
    "miss_",
    "price_",
    "what_",
    "language_",
    "half_",
    "demand_",
    "state_",
)


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


TRANSLATED = [language for language in LANGUAGES if language is not ENGLISH]
TEXTS = {"names": ENGLISH.names, **ENGLISH.texts}


def translated(language: Language, section: str) -> Mapping[str, str]:
    return language.names if section == "names" else language.texts[section]  # type: ignore[index]


@pytest.mark.parametrize("section", TEXTS)
@pytest.mark.parametrize("language", TRANSLATED, ids=lambda language: language.code)
def test_every_language_says_the_same(language: Language, section: str) -> None:
    texts = translated(language, section)
    assert texts.keys() == TEXTS[section].keys()
    for key, english in TEXTS[section].items():
        assert bool(texts[key]) == bool(english), key
        for form in (*english.split("|"), *texts[key].split("|")):
            assert names(form) == names(english), key


def test_every_text_is_used() -> None:
    folder = Path(cli.__path__[0])
    code = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if path.name not in TABLES)
    keys = {(section, key) for section, texts in ENGLISH.texts.items() for key in texts}
    quoted = {(section, key) for section, key in keys if f'"{key}"' in code or f"'{key}'" in code}
    by_value = {*(action.value for action in Action), *HALVES, *CONTINUITY_COLUMNS, *RESUME_COLUMNS}
    composed = {(section, key) for section, key in keys if key.startswith(COMPOSED) or key in by_value}
    assert keys <= quoted | composed


@pytest.mark.parametrize("language", TRANSLATED, ids=lambda language: language.code)
def test_every_reason_is_translated(language: Language) -> None:
    say = Words(language, "inspect")
    for english, translation in language.reasons:
        values = {name: f"«{name}»" for name in names(english)}
        assert names(translation) == names(english)
        assert say.reason(english.format(**values)) == translation.format(**values)


#: Sentences that the lower layers put together from pieces.
ASSEMBLED = ("arguments ", "unknown provider ", "{a}: {b} must be a", "{a} was ", "joined with its neighbour")


@pytest.mark.parametrize("language", TRANSLATED, ids=lambda language: language.code)
def test_every_translated_sentence_is_still_said_somewhere(language: Language) -> None:
    package = Path(cli.__path__[0]).parent
    rooms = (path for room in ROOMS for path in (package / room).rglob("*.py") if path.name not in TABLES)
    files = [package / "errors.py", package / "extras.py", *rooms]
    code = re.sub(r"{\w+:,}", "{}", "\n".join(path.read_text(encoding="utf-8") for path in files))
    joined = re.sub(r'"\s*\n\s*f?"', "", code)  # a string over several lines
    for english, chinese in language.reasons:
        if (english, chinese) in (*EARLIER, *FOREIGN):
            continue
        pieces = [piece.strip(" :") for piece in re.split(r"{\w}", english)]
        assert english.startswith(ASSEMBLED) or all(piece in joined for piece in pieces), english


def test_the_reason_of_a_summary_by_rules_is_said_without_its_mark() -> None:
    assert Words(CHINESE, "chat").reason("by rules: there is no model to write it") == "没有可写摘要的模型"
    assert Words(ENGLISH, "chat").reason("by rules: x") == "x"


def test_a_reason_that_nobody_translated_stays() -> None:
    assert Words(CHINESE, "inspect").reason("because of the weather") == "because of the weather"


@pytest.mark.parametrize("reason", list(Protection), ids=str)
def test_every_protection_has_its_words(reason: Protection) -> None:
    assert Words(ENGLISH, "inspect").name(reason) == reason.value
    assert re.search(r"[\u4e00-\u9fff]", Words(CHINESE, "inspect").name(reason))


@pytest.mark.parametrize(
    ("fmt", "payload"),
    [
        ("openai-chat", {"messages": [{"role": "assistant", "content": "", "tool_calls": [{"id": "a"}]}]}),
        ("openai-chat", {"messages": [{"role": "tool", "content": "x", "tool_call_id": "b"}]}),
        ("anthropic", {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}]}),
        ("openai-responses", {"input": [{"type": "function_call", "call_id": "d", "name": "n", "arguments": "{"}]}),
        ("gemini", {"contents": [{"role": "model", "parts": [{"text": ""}]}]}),
    ],
    ids=["calls", "results", "anthropic", "responses", "gemini"],
)
def test_what_providers_object_to_is_said_in_chinese(fmt: str, payload: dict) -> None:
    found = problems(fmt, payload)
    assert found
    for problem in found:
        assert re.search(r"[\u4e00-\u9fff]", Words(CHINESE, "inspect").reason(problem.text)), problem.text


def test_one_and_many() -> None:
    say = Words(ENGLISH, "inspect")
    assert [say.many("rounds", n) for n in (0, 1, 2, 1_200)] == ["0 rounds", "1 round", "2 rounds", "1,200 rounds"]
    assert Words(CHINESE, "inspect").many("rounds", 1) == "1 轮"


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh"}, "zh"),
        ({"LANG": "en_GB.UTF-8"}, "en"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh_TW", "LANG": "de_DE"}, "zh"),
        ({"LANG": "zha_CN"}, "en"),
        ({}, "en"),
    ],
    ids=["Chinese", "bare", "English", "LC_ALL first", "LC_MESSAGES next", "another language", "nothing"],
)
def test_the_language_comes_from_the_locale(environment: dict[str, str], language: str) -> None:
    assert language_from(environment).code == language
