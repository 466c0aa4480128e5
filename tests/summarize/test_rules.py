"""The summary that needs no model."""

from dataclasses import replace

import pytest

from everlong.summarize.audit.verdict import audited
from everlong.summarize.facts import facts_of
from everlong.summarize.rules import summary_by_rules
from everlong.summarize.summary import NO_FACTS, Facts, Style, for_people, merged, written
from tests.summarize.honest import CHINESE, COUNTER, ENGLISH

FACTS = Facts(requests=("fix the login", "then deploy"), files_changed=("a.py", "b.py"), failures=("run: exit 1",))


def test_it_says_in_a_line_each_what_the_facts_are() -> None:
    summary = summary_by_rules(FACTS, "en")
    assert summary.source == "rules"
    assert summary.facts == FACTS
    assert summary.context.splitlines() == [
        "Requests of the user: 2; the last: “then deploy”.",
        "Files changed: 2 (a.py, b.py).",
        "Failures: 1; the last: run: exit 1.",
    ]


def test_rules_after_rules_tell_of_the_facts_once() -> None:
    older, newer = (summary_by_rules(facts, "en") for facts in (Facts(requests=("fix the login",)), FACTS))
    whole = merged(older, newer, limit=2_000, counter=COUNTER)
    assert whole.context == newer.context


@pytest.mark.parametrize(("language", "heading"), [("en", "What the user asked"), ("zh", "用户的原话")])
def test_a_person_reads_it_as_headings_and_lists(language: str, heading: str) -> None:
    facts = replace(FACTS, requests=("fix the login\nand # the logout", "## then deploy"))
    read = for_people(summary_by_rules(facts, language))
    assert f"### {heading}" in read
    assert "- fix the login\n  and # the logout\n- then deploy\n" in read
    assert "`a.py`, `b.py`" in read
    sent = written(summary_by_rules(FACTS, language), counter=COUNTER, limit=40)
    assert len(for_people(summary_by_rules(FACTS, language), sent)) < len(read)


def test_it_speaks_chinese_to_the_chinese() -> None:
    assert summary_by_rules(FACTS, "zh").context.startswith("用户提出 2 个请求；最后一个：“then deploy”。")


@pytest.mark.parametrize("language", ["en", "zh", "ja"])
def test_without_facts_it_says_that_something_is_left_out(language: str) -> None:
    assert summary_by_rules(NO_FACTS, language).context


@pytest.mark.parametrize("style", ["structured", "free", "rolling", "buffer", "chat"])
def test_it_keeps_the_bounds_of_its_style_and_is_shown_as_what_it_is(style: Style) -> None:
    facts = Facts(requests=("x" * 5_000,) * 30, failures=("boom\n" * 900,), open_tasks=tuple("abc"))
    summary = summary_by_rules(facts, "en", style=style)
    assert len(summary.context) <= (200 if style in ("structured", "rolling") else 500)
    text = written(summary, counter=COUNTER, limit=400)
    assert text.startswith("(Put together by rules")
    assert COUNTER.text(text) <= 400


@pytest.mark.parametrize(("talk", "language"), [(ENGLISH, "en"), (CHINESE, "zh")])
def test_the_rules_of_a_real_conversation_pass_their_own_audit(talk: tuple, language: str) -> None:  # type: ignore[type-arg]
    summary = summary_by_rules(facts_of(talk), language)
    assert audited(summary, talk, previous=None, counter=COUNTER, limit=2_000) == (summary, (), ())
    assert "test_expired_token" in written(summary, counter=COUNTER, limit=600)
