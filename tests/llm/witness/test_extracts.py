"""The witness's summaries and titles: made of sentences that were said, in the form that was asked for."""

import pytest
from hypothesis import given, strategies as st

from everlong.cli.terminal.files import sample_document
from everlong.core import History, Message, Role, Text
from everlong.llm.scripted.script import ReceivedRequest
from everlong.llm.witness.server import COUNTER, bear_witness
from everlong.relevance import language_of
from everlong.summarize import (
    Style,
    Summary,
    asked_style,
    asked_title,
    audited,
    instruction,
    parsed,
    parsed_title,
    read_transcript,
    system,
    title_prompt,
    transcript,
)
from everlong.summarize.transcripts import lines_of
from tests.properties.histories import histories

STYLES: tuple[Style, ...] = ("structured", "rolling", "buffer", "chat", "free")


def said(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


def talk(language: str) -> History:
    """What people and the assistant said in the sample, in one language."""
    messages = [message for message in sample_document().messages if message.role in (Role.USER, Role.ASSISTANT)]
    return tuple(message for message in messages if message.text and language_of([message.text]) == language)


def asked(messages: History) -> str:
    return bear_witness(ReceivedRequest(number=0, model="witness", messages=messages)).text


def folded(covered: History, style: Style, language: str) -> History:
    """The request as the engine makes it for a part of a conversation."""
    text = transcript(covered, counter=COUNTER, limit=9_000, language=language)
    return (
        said(Role.SYSTEM, system(style, language)),
        said(Role.USER, f"{text}\n\n{instruction(style, language, part=(1, 2))}"),
    )


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("behind", [False, True], ids=["a part of it", "behind the conversation"])
def test_its_summary_passes_the_audit(style: Style, language: str, behind: bool) -> None:
    covered = talk(language)
    request = (*covered, said(Role.USER, instruction(style, language))) if behind else folded(covered, style, language)
    summary = parsed(said(Role.ASSISTANT, asked(request)), style, language)
    assert isinstance(summary, Summary), summary
    _, removed, problems = audited(summary, covered, previous=None, counter=COUNTER, limit=1_500)
    assert problems == ()
    assert removed == ()
    if style in ("structured", "chat"):
        assert summary.context
        assert summary.constraints
        assert summary.next
        assert summary.done


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_has_only_sentences_that_were_said(language: str) -> None:
    covered = talk(language)
    summary = parsed(said(Role.ASSISTANT, asked(folded(covered, "structured", language))), "structured", language)
    assert isinstance(summary, Summary)
    every = " ".join(" ".join(message.text.replace("**", "").split()) for message in covered)
    for item in (*summary.decisions, *summary.constraints, *summary.done, *summary.next, summary.context):
        assert item in every


def test_a_correction_asks_for_the_summary_too() -> None:
    request = folded(talk("en"), "structured", "en")
    first = asked(request)
    again = (*request, said(Role.ASSISTANT, first), said(Role.USER, "This summary cannot be used: too long."))
    assert asked(again) == first


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_title_is_made_of_the_first_words(language: str) -> None:
    title = asked((said(Role.USER, title_prompt(talk(language), language)),))
    assert parsed_title(title) == title
    assert title in talk(language)[0].text


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("style", STYLES)
def test_a_request_for_a_summary_is_known_by_its_style_and_language(style: Style, language: str) -> None:
    known = asked_style(f"anything before\n\n{instruction(style, language, focus='the API')}")
    assert known == ("structured" if style == "rolling" else style, language)  # both have the same parts


@given(st.text(max_size=200))
def test_nothing_else_is_taken_for_one(text: str) -> None:
    assert asked_style(text) is None
    assert asked_title(text) is None


@given(histories())
def test_a_transcript_is_read_back(messages: History) -> None:
    """Everybody's words are in order; lines that pass for another speaker's stay with who said them."""
    text = transcript(messages, counter=COUNTER, limit=1_000_000, language="en")
    lines = [line.who for line in lines_of(messages, "en") if "→" not in line.who or line.who.endswith("→")]
    said_by = ["tool" if who.endswith("→") else who for who in lines]  # calls are left out
    assert [role.value for role, _ in read_transcript(text)] == said_by


@given(histories(), st.sampled_from(STYLES), st.sampled_from(["en", "zh"]))
def test_any_conversation_gets_an_answer(messages: History, style: Style, language: str) -> None:
    asked(folded(messages, style, language))
    asked((*messages, said(Role.USER, instruction(style, language))))
