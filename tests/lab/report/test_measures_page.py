"""The lab's pages: self-contained, in both languages, names only text, every figure there."""

import re

import pytest

from everlong.lab.measures.measurement import Group, Result, Row
from everlong.lab.report.measures_page import measures_page
from everlong.lab.report.speed_page import speed_page
from everlong.lab.report.wording import LANGUAGES, Wording
from everlong.lab.report.words import TABLES
from everlong.lab.speed.tables import Shown, Table
from tests.lab.pages import Checker

HOSTILE = '<img src=x onerror="alert(1)">'


def row(budget: int, hits: int, **more: object) -> Row:
    fields: dict[str, object] = {"strict": hits, "total": 200, "milliseconds": 12.5, "tokens": 7_900.0}
    return Row(budget=budget, hits=hits, **(fields | more))  # type: ignore[arg-type]


def result(measure: str, strategy: str, *rows: Row, **more: object) -> Result:
    fields: dict[str, object] = {"data": "misc", "half": "all", "conversations": 7, "total": 200, "uncut": 190}
    return Result(measure=measure, strategy=strategy, rows=rows, **(fields | more))  # type: ignore[arg-type]


KINDS = (Group(of="kind", name="path", hits=30, strict=30, total=40),)
RESULTS = [
    result("probes", "auto", row(8_000, 174, strict=148, groups=KINDS), row(16_000, 190)),
    result("probes", "newest", row(8_000, 58, over=3, failed=2), row(16_000, 105)),
    result("dialogs", "auto", row(500, 91, recall=0.875)),
]


def read(text: str) -> Checker:
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    return checker


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_is_whole_and_asks_nobody_for_anything(language: str) -> None:
    text = measures_page(RESULTS, language=language, facts=["today"])
    found = read(text)
    assert not {"script", "link", "img", "iframe", "object"} & found.tags
    assert not re.search(r"https?://|url\(|@import|\sstyle=", text)
    assert "default-src 'none'" in text


def test_every_figure_is_on_the_page() -> None:
    text = read(measures_page(RESULTS)).text
    for figure in (
        "87.0",
        "74.0",
        "29.0",
        "over the budget 3 of 200",
        "failed 2",
        "95.0 %",
        "75.0/ 40",
        "87.5",
        "12.5",
    ):
        assert figure in text, figure


def test_figures_in_words_have_commas_and_one_is_one() -> None:
    say = Wording("en")
    assert (say("conversations", n="1"), say("conversations", n="16,000")) == ("1 conversation", "16,000 conversations")
    assert Wording("zh")("conversations", n="1") == "1 个对话"
    assert say("by", what="a,b 1,000", n="1,234,567") == "By a,b 1,000, at 1,234,567 tokens"
    text = read(
        measures_page([result("probes", "auto", row(8_000, 1, total=1), conversations=1, total=1, uncut=1)])
    ).text
    assert "1 conversation1 string" in text
    assert "At 8,000 tokens" in text


def test_each_measure_says_its_rule() -> None:
    text = read(measures_page(RESULTS)).text
    assert Wording("en")("rule_probes") in text
    assert Wording("en")("rule_dialogs") in text
    assert Wording("en")("rule_edits") not in text


def test_chinese_pages_are_chinese() -> None:
    text = read(measures_page(RESULTS, language="zh")).text
    assert Wording("zh")("rule_probes") in text
    assert "Rule" not in text


def test_names_are_only_text() -> None:
    hostile = result(
        HOSTILE, HOSTILE, row(8_000, 1, groups=(Group(of=HOSTILE, name=HOSTILE, hits=1, strict=1, total=1),))
    )
    found = read(measures_page([hostile], facts=[HOSTILE]))
    assert "img" not in found.tags
    assert HOSTILE in found.text


def test_measures_and_halves_have_a_card_each() -> None:
    text = measures_page([*RESULTS, result("probes", "auto", row(8_000, 99), half="tuning")])
    assert text.count('<section class="card">') == 3
    assert "tuning half" in text


def test_strategies_with_other_budgets_leave_a_gap() -> None:
    text = measures_page([result("probes", "auto", row(8_000, 174)), result("probes", "newest", row(64_000, 188))])
    assert text.count("<td>–</td>") >= 2


def test_who_passes_the_budget_stands_apart_and_behind() -> None:
    over = result("probes", "everything", row(8_000, 190, over=180))
    text = measures_page([over, *RESULTS[:2]])
    bars = re.findall(r'<g class="(ours|other)( faint)?">', text.partition('<svg class="bars"')[2])
    assert bars == [("ours", ""), ("other", ""), ("other", " faint")]
    assert Wording("en")("mostly_over") in text
    assert Wording("en")("mostly_over") not in measures_page(RESULTS)


def test_no_results_are_said_to_be_none() -> None:
    assert "There are no results." in read(measures_page([])).text


def test_the_same_results_give_the_same_page() -> None:
    assert measures_page(RESULTS) == measures_page(RESULTS)


def gaps_in(text: str) -> list[list[str]]:
    """The places for values in each form of a text."""
    return [sorted(re.findall(r"\{\w+\}", form)) for form in text.split("|")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text_with_the_same_gaps(language: str) -> None:
    table, english = TABLES[language], TABLES["en"]
    assert list(table) == list(english)
    for key, text in table.items():
        assert text or key == "between_sentences"
        assert all(gaps == gaps_in(english[key])[0] for gaps in gaps_in(text)), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_speed_has_a_page_too(language: str) -> None:
    shown = Shown("ms", (11.0, 220.0), ("11 ms", "220 ms"))
    rows = (("**everlong** `fit`", "11"), ("langchain <b>", "220"))
    table = Table("Counting `x`", ("", "ms"), rows, ("A note.",), None, shown)
    text = speed_page([table, Table("Nothing", ("",), ())], "2026-11-15, 2 cores", language=language)
    found = read(text)
    assert "<b>everlong</b> <code>fit</code>" in text
    assert "langchain <b>" in found.text
    assert "2026-11-15, 2 cores" in found.text
    assert "220 ms" in found.text
