"""What counts as still there."""

import json

import pytest

from everlong.compress import Task, background
from everlong.core import CallId, Message, Role, Text, ToolCall
from everlong.lab.measures.presence import Sent, without_ledger
from everlong.summarize import as_message
from everlong.tokens import Counter
from tests.lab.folders import said, step

READ = "     1→class Boat:\n     2→    sails: int\n     3→    crew: int"

HERE = {
    "words": ((said(Role.USER, "the harbour of Genoa"),), "harbour", True),
    "result": (step(1, "the keel is oak"), "keel", True),
    "reasoning": (step(1, "x", thought="perhaps the rudder"), "rudder", True),
    "arguments as sent": (step(1, "x", '{"path": "boats.py"}'), '"path": "boats.py"', True),
    "a string inside arguments": (step(1, "x", json.dumps({"text": 'say "ahoy"'})), 'say "ahoy"', True),
    "a string deep inside arguments": (step(1, "x", json.dumps({"edits": [{"old": "a\nb"}]})), "a\nb", True),
    "arguments that are no JSON": (step(1, "x", "{broken"), "{broken", True),
    "across two messages": ((said(Role.USER, "har"), said(Role.USER, "bour")), "harbour", False),
    "Chinese": ((said(Role.USER, "外婆最喜欢桂花糕"),), "桂花糕", True),
}


@pytest.mark.parametrize(("messages", "text", "there"), HERE.values(), ids=HERE)
def test_a_text_is_there_if_the_model_reads_it(messages: tuple[Message, ...], text: str, there: bool) -> None:
    assert Sent(messages).has(text) is there


def test_without_decoding_only_what_is_sent_counts() -> None:
    messages = step(1, "x", json.dumps({"text": 'say "ahoy"'}))
    assert not Sent(messages, decoded=False).has('say "ahoy"')
    assert Sent(messages, decoded=False).has(r"say \"ahoy\"")


LINES = {
    "as they stand": ("class Boat:\n    sails: int", "class Boat:\n    sails: int", True),
    "with line numbers": (READ, "    sails: int\n    crew: int", True),
    "with tabs behind the numbers": ("1\tone\n2\ttwo", "one\ntwo", True),
    "a line between": ("one\nelse\ntwo", "one\ntwo", False),
    "cut short": (READ, "    crew: int\n    flag: str", False),
}


@pytest.mark.parametrize(("shown", "text", "there"), LINES.values(), ids=LINES)
def test_lines_are_there_one_after_the_other(shown: str, text: str, there: bool) -> None:
    assert Sent(step(1, shown)).has_lines(text) is there


@pytest.mark.parametrize("language", ["en", "zh"])
def test_strict_looks_away_from_the_ledger_of_names(language: str) -> None:
    task = Task(target=100, counter=Counter("gpt-4o"), language=language)
    block = background("def quoted_name(): ...", "src/app.py: only_a_name", task)
    sent = Sent((Message(Role.USER, (Text(block),)),))
    assert sent.has("only_a_name")
    assert not sent.has_strictly("only_a_name")
    assert sent.has_strictly("quoted_name")


def test_only_our_own_block_has_a_ledger() -> None:
    text = "Names that also occurred there:\nquoted by somebody"
    assert without_ledger(text) == text


def test_a_call_is_not_its_name_alone() -> None:
    assert not Sent((Message(Role.ASSISTANT, (ToolCall(CallId("1"), "read", "{}"),)),)).has("write")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_verbatim_looks_away_from_summaries_and_from_nothing_else(language: str) -> None:
    summary = as_message("the keel is oak", language)
    assert Sent((summary,)).has("keel")
    assert not Sent((summary,)).has_verbatim("keel")
    # Words that hold "en" or "zh", as most do.
    assert Sent((said(Role.USER, "then the keel was sent to zhuhai"),)).has_verbatim("keel")
    assert Sent(step(1, "seven lines: the keel is oak")).has_verbatim("keel")
