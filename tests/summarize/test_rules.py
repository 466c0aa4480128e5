"""The summary that needs no model."""

import pytest

from everlong.summarize.audit.verdict import audited
from everlong.summarize.facts import facts_of
from everlong.summarize.rules import summary_by_rules
from everlong.summarize.summary import NO_FACTS, Facts, Style, written
from tests.summarize.honest import CHINESE, COUNTER, ENGLISH

FACTS = Facts(requests=("fix the login", "then deploy"), files_changed=("a.py", "b.py"), failures=("run: exit 1",))


def test_it_says_in_a_sentence_what_the_facts_are() -> None:
    summary = summary_by_rules(FACTS, "en")
    assert summary.source == "rules"
    assert summary.facts == FACTS
    assert summary.context.startswith("2 requests of the user; the last: “then deploy”. 2 files changed (a.py, b.py).")


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
