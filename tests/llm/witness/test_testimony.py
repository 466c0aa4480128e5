"""What the witness answers: quotations of the request, or that it is not there."""

import re

import pytest
from hypothesis import given, strategies as st

from everlong.core import CallId, Message, Role, Text, ToolCall, ToolResult
from everlong.llm.scripted.script import Answer, ReceivedRequest
from everlong.llm.witness.passages import Where
from everlong.llm.witness.server import bear_witness
from everlong.llm.witness.testimony import quotations_for
from everlong.llm.witness.words import ABSENT, FOUND, HELLO, NOTED
from everlong.summarize import as_message
from tests.properties.histories import histories

RECALL = '{"type": "function", "function": {"name": "recall", "parameters": {}}}'


def said(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


TALK = (
    said(Role.USER, "Morning. The budget for March is ¥3,200, all in.\nNothing goes live on a Saturday."),
    said(Role.ASSISTANT, "Noted: ¥3,200 for March. The scanner at Riverside costs ¥899."),
    Message(Role.ASSISTANT, (ToolCall(CallId("c1"), "read_file", '{"path": "lantern/stock.py"}'),)),
    Message(Role.TOOL, (ToolResult(CallId("c1"), (Text("LIMIT = 48\ndef transfer(copies):\n    return copies"),)),)),
    said(Role.USER, "会员日定在 5 月 12 日，地点是港口街店。"),
    said(Role.ASSISTANT, "好的，会员日 5 月 12 日，我记下了。LB-124 还在等纸鹤的回复。"),
)


def answer(question: str, *, before: tuple[Message, ...] = TALK, tools: tuple[str, ...] = ()) -> Answer:
    request = ReceivedRequest(
        number=0, model="witness", messages=(*before, said(Role.USER, question)), tools=tools, tokens=321
    )
    return bear_witness(request)


@pytest.mark.parametrize(
    ("question", "quoted", "place"),
    [
        ("What is the budget for March?", "The budget for March is ¥3,200, all in.", "you, message 1 of 7"),
        ("How much does the scanner cost?", "The scanner at Riverside costs ¥899.", "the assistant, message 2 of 7"),
        ("Which LIMIT is set?", "LIMIT = 48", "result of read_file, message 4 of 7"),
        ("May we go live on Saturday?", "Nothing goes live on a Saturday.", "you, message 1 of 7"),
        ("会员日是哪天？", "会员日定在 5 月 12 日，地点是港口街店。", "你，第 5 条（共 7 条）"),
        ("LB-124 在等谁？", "LB-124 还在等纸鹤的回复。", "助手，第 6 条（共 7 条）"),
    ],
    ids=["figure", "of the assistant", "result", "rule", "Chinese", "Chinese with a name"],
)
def test_a_question_is_answered_with_the_words_and_their_place(question: str, quoted: str, place: str) -> None:
    text = answer(question).text
    assert quoted in text
    assert place in text
    assert text.startswith((FOUND["en"], FOUND["zh"]))


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Who won the chess tournament?", "en"),
        ("What is the budget for April 2031?", "en"),
        ("What is LB-125 waiting for?", "en"),
        ("谁赢了象棋比赛？", "zh"),
        ("LB-125 在等什么？", "zh"),
    ],
)
def test_what_was_not_sent_is_not_answered(question: str, language: str) -> None:
    """Names and figures count exactly: LB-125 is not LB-124."""
    text = answer(question).text
    assert text.startswith(ABSENT[language])
    assert "321" in text


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("hi", "en"),
        ("Hello there!", "en"),
        ("What can you do?", "en"),
        ("thanks", "en"),
        ("谢谢", "zh"),
        ("你是谁？", "zh"),
    ],
)
def test_small_talk_is_answered_with_what_it_is(text: str, language: str) -> None:
    assert answer(text).text == HELLO[language]


def test_what_is_told_is_found_later() -> None:
    told = "The key to the cellar hangs behind the till."
    assert answer(told).text == NOTED["en"]
    before = (*TALK, said(Role.USER, told), said(Role.ASSISTANT, NOTED["en"]))
    assert told in answer("Where is the key to the cellar?", before=before).text


def test_an_earlier_answer_is_no_evidence() -> None:
    first = answer("What is the budget for March?").text
    before = (said(Role.USER, "What is the budget for March?"), said(Role.ASSISTANT, first))
    assert answer("What is the budget for March?", before=before).text.startswith(ABSENT["en"])


def test_the_summary_and_what_was_brought_back_are_named() -> None:
    summary = as_message("## Constraints\n- Nothing goes live on a Saturday.", "en")
    excerpt = said(
        Role.USER,
        "<background-0123abcd>\nQuoted word for word from earlier in this conversation, as background.\n\n"
        "[12 assistant]\nThe van leaves Old Mill at 18:40.\n</background-0123abcd>",
    )
    before = (summary, said(Role.ASSISTANT, "Yes."), excerpt)
    assert "— *the summary*" in answer("What goes live on a Saturday?", before=before).text
    text = answer("When does the van leave Old Mill?", before=before).text
    assert "> The van leaves Old Mill at 18:40.\n>\n> — *recalled from earlier in the thread*" in text


def test_its_own_answers_are_no_evidence_when_they_are_brought_back() -> None:
    for own in ("I looked for: won, chess, tournament.", "That is not in what I was sent.", "我找的是：国际象棋。"):
        excerpt = said(Role.USER, f"<background-0123abcd>\nQuoted …\n\n[148 assistant]\n{own}\n</background-0123abcd>")
        assert own not in answer("Who won the chess tournament?", before=(excerpt,)).text.partition("I was sent")[0]


def test_recall_is_called_before_it_gives_up_and_only_then() -> None:
    assert answer("What is the budget for March?", tools=(RECALL,)).calls == ()
    asked = answer("Who drives the van?", tools=(RECALL,))
    assert asked.calls == (("recall", '{"what": "drives van"}'),)
    call = Message(Role.ASSISTANT, (ToolCall(CallId("r"), "recall", asked.calls[0][1]),))
    found = "<background-0123abcd>\nQuoted word for word …\n\n[3 user]\nTheo drives the van.\n</background-0123abcd>"

    def after(result: str) -> str:
        told = Message(Role.TOOL, (ToolResult(CallId("r"), (Text(result),)),))
        messages = (*TALK, said(Role.USER, "Who drives the van?"), call, told)
        return bear_witness(ReceivedRequest(number=1, model="witness", messages=messages, tools=(RECALL,))).text

    assert "Theo drives the van." in after(found)
    assert after("nothing found for 'drives van'; try other words").startswith(ABSENT["en"])


texts = st.text(max_size=200) | st.sampled_from([message.text for message in TALK])


@given(histories(), texts)
def test_every_quotation_stands_in_the_request(messages: tuple[Message, ...], question: str) -> None:
    sent = [text for message in messages for text in (message.text, *(one.text for one in message.results))]
    parts = [part.text for message in messages for part in message.parts if isinstance(part, Text)]
    for quotation in quotations_for(question, messages):
        assert any(quotation.text in text for text in (*sent, *parts))
        assert quotation.passage.where in Where


@given(histories(), texts)
def test_the_same_request_gives_the_same_bytes_and_never_fails(messages: tuple[Message, ...], question: str) -> None:
    first, second = answer(question, before=messages), answer(question, before=messages)
    assert first == second
    assert first.text or first.calls


@given(st.text(max_size=300))
def test_nothing_is_answered_from_outside(question: str) -> None:
    """Without a conversation there is nothing to quote, whatever is asked."""
    assert not re.search(r"^> ", answer(question, before=()).text, re.MULTILINE)
