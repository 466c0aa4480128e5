"""Summaries are what the design documents ask for. One test for each line, named after it."""

import json
import re

import pytest

from everlong.core import Role
from everlong.summarize import (
    Style,
    Summary,
    as_system_section,
    instruction,
    merged,
    parsed,
    parsed_title,
    spoken,
    title_prompt,
    written,
)
from everlong.summarize.parts import PARTS
from everlong.summarize.text import counted_words
from tests.core.build import assistant, user
from tests.summarize.honest import CHINESE, COUNTER, ENGLISH


def summary(text: str, style: Style, language: str = "en") -> Summary:
    found = parsed(assistant(text), style, language)
    assert isinstance(found, Summary), found
    return found


# --- N1-5 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sentence", ["The shop needs a till and a clerk, part {}. ", "第 {} 步：修好收银台，再请一个店员。"]
)
def test_N1_5_a_summary_in_prose_has_at_most_500_characters(sentence: str) -> None:
    language = "en" if sentence.isascii() else "zh"
    found = summary("".join(sentence.format(number) for number in range(40)), "rolling", language)
    text = written(found, counter=COUNTER, limit=4_000, facts=False)
    assert 300 < len(found.context) <= 500
    assert text.endswith(found.context)


def test_N1_5_it_is_wrapped_as_untrusted_background() -> None:
    section = as_system_section("The shop needs a till.", "en").removeprefix("## Conversation Summary\n\n")
    assert re.fullmatch(r"<background-[0-9a-f]{8}>\n.*not a request.*\n</background-[0-9a-f]{8}>", section, re.DOTALL)
    assert "The shop needs a till." in section


# --- N1-9 ------------------------------------------------------------------------------------------

FIVE = {
    "decisions": ["use SQLite"],
    "constraints": ["Python 3.11"],
    "open_questions": ["which port?"],
    "file_changes": ["a.py: new loop"],
    "context": "A shop. " * 60,
}


def test_N1_9_five_sections_and_a_context_of_at_most_200_characters() -> None:
    assert set(FIVE) <= {part.key for part in PARTS["rolling"]}
    found = summary(json.dumps(FIVE), "rolling")
    assert found.decisions == ("use SQLite",)
    assert found.constraints == ("Python 3.11",)
    assert found.open_questions == ("which port?",)
    assert found.file_changes == ("a.py: new loop",)
    assert found.context.startswith("A shop.")
    assert 150 < len(found.context) <= 200


def test_N1_9_what_cannot_be_parsed_becomes_free_text() -> None:
    found = summary("We chose SQLite because it needs no server.", "rolling")
    assert (found.style, found.context) == ("free", "We chose SQLite because it needs no server.")


def test_N1_9_two_summaries_merge_newer_decisions_after_older() -> None:
    older = Summary(style="rolling", decisions=("use SQLite", "port 80"))
    newer = Summary(style="rolling", decisions=("port 8080",))
    both = merged(older, newer, limit=500, counter=COUNTER)
    assert both.decisions == ("use SQLite", "port 80", "port 8080")


# --- SB-5 ------------------------------------------------------------------------------------------


def test_SB_5_three_parts_are_asked_for_and_found() -> None:
    text = instruction("buffer", "en")
    for key in ("what_happened", "important_details", "ongoing_context"):
        assert f'"{key}"' in text
    answer = {"what_happened": ["fixed a.py"], "important_details": ["port 80"], "ongoing_context": "testing"}
    shown = written(summary(json.dumps(answer), "buffer"), counter=COUNTER, limit=500)
    assert shown == ("## What happened\n- fixed a.py\n## Important details\n- port 80\n## Ongoing context\ntesting")


@pytest.mark.parametrize(
    ("language", "item", "asked"),
    [("en", "word number {} is here now", "under 200 words"), ("zh", "第{}个事情已经做完了", "不超过 400 个汉字")],
)
def test_SB_5_it_stays_under_200_words_or_400_chinese_characters(language: str, item: str, asked: str) -> None:
    assert asked in instruction("buffer", language)
    items = [item.format(number) for number in range(40)]
    answer = {"what_happened": items, "important_details": items, "ongoing_context": "。".join(items)}
    found = summary(json.dumps(answer, ensure_ascii=False), "buffer", language)
    said = " ".join([*found.done, *found.constraints, found.context])
    assert 100 < counted_words(said) <= 200
    assert found.done[-1] == items[-1]
    section = as_system_section(written(found, counter=COUNTER, limit=4_000, facts=False), language)
    inside = section.split("\n\n", 2)[2].rpartition("\n")[0]
    assert counted_words(inside) < 200
    assert len(re.findall(r"[\u4e00-\u9fff]", inside)) < 400


def test_SB_5_it_stands_under_its_heading() -> None:
    assert as_system_section("words", "en").startswith("## Conversation Summary\n")
    assert as_system_section("话", "zh").startswith("## Conversation Summary\n")


# --- CB-1.2 ----------------------------------------------------------------------------------------


def test_CB_1_2_four_parts_and_the_previous_summary_is_in_its_input() -> None:
    previous = Summary(style="chat", context="Half of the login page works.")
    text = instruction("chat", "en", previous=previous)
    for key in ("finished_tasks", "current_state", "key_context", "next_steps"):
        assert f'"{key}"' in text
    assert "Half of the login page works." in text
    answer = {"finished_tasks": ["a"], "current_state": "b", "key_context": ["src/c.py"], "next_steps": ["d"]}
    shown = written(summary(json.dumps(answer), "chat"), counter=COUNTER, limit=500)
    assert re.findall(r"^## (.*)$", shown, re.MULTILINE) == [
        "Finished tasks",
        "Current state",
        "Key context",
        "Next steps",
    ]


# --- CB-8 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("talk", "named"), [(ENGLISH, "English"), (CHINESE, "中文")], ids=["en", "zh"])
def test_CB_8_the_prompt_follows_the_language_of_the_conversation(talk: tuple, named: str) -> None:  # type: ignore[type-arg]
    language = spoken(message.text for message in talk if message.role is Role.USER)
    assert named in instruction("chat", language)


# --- CB-9 ------------------------------------------------------------------------------------------


def test_CB_9_a_title_is_asked_for_and_found() -> None:
    assert "登录页面" in title_prompt(CHINESE, "zh")
    assert parsed_title("《登录页面返回 500》") == "登录页面返回 500"
    assert "login page" in title_prompt([user("The login page is broken")], "en")
    assert parsed_title("**Broken login page**") == "Broken login page"
    assert parsed_title("I cannot help with that.") is None
