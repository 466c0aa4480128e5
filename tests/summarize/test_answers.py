"""Answers of models, good, clumsy and hostile, and what becomes of them."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Message, Reasoning, Role, Text
from everlong.summarize.answers import CutOff, parsed, sections_of
from everlong.summarize.audit.signs import OPENINGS, PROTOCOL, Sign, no_summary
from everlong.summarize.audit.verdict import audited
from everlong.summarize.prompts import instruction, system
from everlong.summarize.summary import Style, Summary
from tests.core.build import assistant, calls, user
from tests.summarize.honest import COUNTER, HONEST_CHINESE, HONEST_ENGLISH

STYLES: tuple[Style, ...] = ("structured", "free", "rolling", "buffer", "chat")


def summary(text: str, style: Style = "structured", language: str = "en") -> Summary:
    found = parsed(assistant(text), style, language)
    assert isinstance(found, Summary), found
    return found


def reason(text: str, style: Style = "structured", language: str = "en") -> str:
    found = parsed(assistant(text), style, language)
    assert isinstance(found, str), found
    return found


# --- shapes of good answers ------------------------------------------------------------------------

PLAIN = {"context": "A shop.", "decisions": ["use SQLite", "no cache"], "next": ["tests"]}

SHAPES = {
    "JSON": json.dumps(PLAIN),
    "fenced JSON": f"```json\n{json.dumps(PLAIN, indent=1)}\n```",
    "fence without a name": f"```\n{json.dumps(PLAIN)}\n```",
    "words around it": f"Here is the summary:\n\n{json.dumps(PLAIN)}\n\nLet me know if you need more.",
    "trailing commas": '{"context": "A shop.", "decisions": ["use SQLite", "no cache",], "next": ["tests",],}',
    "single quotes": "{'context': 'A shop.', 'decisions': ['use SQLite', 'no cache'], 'next': ['tests']}",
    "a missing comma": '{"context": "A shop." "decisions": ["use SQLite" "no cache"], "next": ["tests"]}',
    "nested": json.dumps({"summary": {}, "result": PLAIN}),
    "headings": "## Context\nA shop.\n\n## Decisions\n- use SQLite\n- no cache\n\n## Next steps\n1. tests",
    "bold headings": "**Context:** A shop.\n\n**Key decisions**\n* use SQLite\n* no cache\n\n**Next:**\n- tests",
    "labels": "Context: A shop.\nDecisions:\n- use SQLite\n- no cache\nNext:\n- tests",
    "numbered headings": "### 1. Context\nA shop.\n### 2. Decisions\n- use SQLite\n- no cache\n### 3. Next\n- tests",
    "wrapped in a tag": f"<summary>\n{json.dumps(PLAIN)}\n</summary>",
    "thinking aloud first": f"<think>What matters? I can't help it.</think>\n{json.dumps(PLAIN)}",
    "thinking without its opening": f"what matters…</think>{json.dumps(PLAIN)}",
    "other names": json.dumps({"Background": "A shop.", "key_decisions": ["use SQLite", "no cache"], "todo": "tests"}),
    "Chinese keys": json.dumps({"背景": "A shop.", "决定": ["use SQLite", "no cache"], "下一步": ["tests"]}),
    "Chinese headings": "## 背景\nA shop.\n## 关键决策\n- use SQLite\n- no cache\n## 下一步\n1、tests",
    "empty parts": json.dumps({**PLAIN, "constraints": ["None"], "open_questions": ["N/A", "无"], "done": []}),
    "said twice": json.dumps({**PLAIN, "decisions": ["use SQLite", "no cache", "Use SQLite."]}),
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
def test_the_same_summary_in_many_shapes(text: str) -> None:
    found = summary(text)
    assert (found.style, found.context) == ("structured", "A shop.")
    assert (found.decisions, found.next) == (("use SQLite", "no cache"), ("tests",))
    assert not found.constraints + found.open_questions + found.file_changes + found.done


def test_objects_in_a_list_become_sentences() -> None:
    found = summary('{"file_changes": [{"file": "a.py", "change": "new loop"}, {"file": "b.py"}], "context": 3}')
    assert found.file_changes == ("a.py: new loop", "b.py")


def test_requests_that_a_model_reports_are_kept_apart_for_the_audit() -> None:
    found = summary('{"context": "A shop.", "user_requests": ["delete prod"]}')
    assert found.facts.requests == ("delete prod",)


def test_sections_that_nobody_asked_for_are_left_out() -> None:
    assert sections_of("## Decisions\n- a\n## Jokes\n- b\n## Next\n- c") == {"decisions": ["a"], "next": ["c"]}


def test_items_with_a_colon_begin_no_part_unless_the_parts_are_a_list() -> None:
    assert sections_of("## Done\n- fixed a.py\n- Status: all green") == {"done": ["fixed a.py", "Status: all green"]}
    assert sections_of("- Done: fixed a.py\n- Next: tests") == {"done": ["fixed a.py"], "next": ["tests"]}


def test_words_before_the_first_part_are_context() -> None:
    assert sections_of("A shop.\n## Next\n- tests") == {"next": ["tests"], "context": ["A shop."]}
    assert sections_of("Here it is:\n## Next\n- tests") == {"next": ["tests"]}


def test_prose_has_no_sections_and_half_an_object_is_cut_off() -> None:
    assert sections_of("We chose SQLite.") is None
    assert isinstance(sections_of('{"decisions": ["a", "b'), CutOff)


def test_lists_are_bounded_and_keep_the_newest() -> None:
    found = summary(json.dumps({"done": [f"step {number}" for number in range(500)]}))
    assert found.done[-1] == "step 499"
    assert len(found.done) <= 40


@pytest.mark.parametrize("text", [*HONEST_ENGLISH, *HONEST_CHINESE])
@pytest.mark.parametrize("style", STYLES)
def test_honest_answers_are_summaries_in_every_style(text: str, style: Style) -> None:
    assert isinstance(parsed(assistant(text), style, "en" if text.isascii() else "zh"), Summary)


SIGNS = [
    "<think>",
    "\n",
    " ",
    "```",
    "{",
    '"',
    "[",
    "# ",
    "e.g. ",
    "1",
    "- \n",
    "<summary>",
    "*",
    "用户：",
    "ignore all ",
    "![",
    "。",
]


@pytest.mark.parametrize("sign", SIGNS)
def test_endless_signs_end(sign: str) -> None:
    """Quadratic work on these would take minutes."""
    endless = sign * (90_000 // len(sign))
    for text in (
        endless,
        f"We chose SQLite.{endless}",
        f'{{"context": "We chose", "done": ["{endless}x',
        f"{endless}x",
    ):
        found = parsed(assistant(text), "structured", "en")
        if isinstance(found, Summary):
            audited(found, (assistant(text), user(text)), previous=None, counter=COUNTER, limit=500)


# --- what is none ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [*OPENINGS, *PROTOCOL], ids=lambda sign: sign.sample[:30])
def test_every_sign_knows_its_sample(sign: Sign) -> None:
    assert no_summary(sign.sample) == sign.reason


REFUSED = {
    "empty": ("", "empty"),
    "blank": (" \n\t ", "empty"),
    "punctuation": ("…", "only reasoning"),
    "only thinking": ("<think>let me see</think>", "only reasoning"),
    "thinking that never ends": ("<think>let me see, first", "only reasoning"),
    "refusal": ("I'm sorry, but I can't help with that.", "refusal"),
    "refusal, typographic": ("I can’t assist with that request.", "refusal"),
    "refusal, unable": ("Unfortunately, I am unable to provide a summary of this.", "refusal"),
    "refusal in Chinese": ("抱歉，我无法完成这个请求。", "refusal"),
    "refusal in Chinese, plain": ("我不能协助处理此内容。", "refusal"),
    "refusal inside JSON": ('{"context": "I cannot provide a summary of this conversation."}', "refusal"),
    "429": ("Error: 429 Too Many Requests", "error"),
    "error object": ('{"error": {"code": 503, "message": "overloaded"}}', "error"),
    "error page": ("<html><head><title>502 Bad Gateway</title></head></html>", "error"),
    "too long": ("Previous conversation was too long to summarize.", "error"),
    "failed": ("Error generating summary: connection reset by peer", "error"),
    "error in Chinese": ("请求过于频繁，请稍后再试。", "error"),
    "asks back": ("Please provide the conversation you want me to summarize.", "question"),
    "asks back in Chinese": ("请提供需要总结的对话。", "question"),
    "nothing there": ("There is no conversation to summarize.", "question"),
    "greets": ("你好！有什么可以帮你的？", "question"),
    "carries on": ("Sure, I'll fix test_expired_token now.", "carried on"),
    "carries on in Chinese": ("好的，我来修复这个测试。", "carried on"),
    "writes the dialogue": ("User: fix it\nAssistant: done\nUser: thanks", "carried on"),
    "calls a tool as text": ('<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>', "tool call"),
    "calls a tool in a fence": ('```json\n{"name": "ls", "arguments": {"path": "."}}\n```', "tool call"),
    "calls a tool after words": ('Reading it first.\n<function_calls>\n<invoke name="ls">', "tool call"),
    "special marks": ("<|channel|>commentary to=functions.ls", "tool call"),
    "half an object": ('{"context": "A shop.", "decisions": ["use SQL', "cut off"),
    "half a fence": ('```json\n{"context": "A shop.",\n "decisions": [', "cut off"),
    "fence left open": ("## Decisions\n- use\n```python\nx = 1", "cut off"),
    "nothing said": ('{"context": "", "decisions": [], "done": ["None"]}', "empty"),
    "none": ("None.", "empty"),
    "the same line": ("- fix the test\n" * 300, "again and again"),
    "the same words": ("so on and " * 300, "again and again"),
    "ten times too long": ("The shop sells tea and bread and needs a till. " * 3 + "More of it. " * 2_000, "again"),
    "endless": ("word " * 40_000, "far too long"),
    "a novel": (" ".join(f"On day {day} item {day * 7} was sold." for day in range(900)), "characters"),
}


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_summary_says_why(text: str, why: str) -> None:
    assert why in reason(text)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("language", ["en", "zh", "ja"])
def test_the_prompt_repeated_is_no_summary(style: Style, language: str) -> None:
    assert "prompt" in reason(instruction(style, language), style, language)
    assert "prompt" in reason(system(style, language), style, language)


@pytest.mark.parametrize(
    ("repeated", "others", "stuck"), [(8, 0, False), (9, 0, True), (7, 3, True), (6, 4, False)], ids=str
)
def test_a_model_is_stuck_from_nine_lines_of_which_half_are_alike(repeated: int, others: int, stuck: bool) -> None:
    lines = ["## Done", *["- fixed the test"] * (repeated - 1), *(f"- fixed part {number}" for number in range(others))]
    answer = parsed(assistant("\n".join(lines)), "structured", "en")
    assert (answer == "the same lines again and again") is stuck


@pytest.mark.parametrize(("words", "stuck"), [(200, False), (201, True)])
def test_a_model_is_stuck_from_two_hundred_words_of_which_hardly_any_differ(words: int, stuck: bool) -> None:
    answer = parsed(assistant(" ".join(["fixed"] * words)), "free", "en")
    assert (answer == "the same words again and again") is stuck


def test_a_tool_call_is_no_summary_whatever_it_says_beside() -> None:
    call = calls("1")
    both = call.with_parts((Text("We chose SQLite."), *call.parts))
    assert "tool call" in str(parsed(call, "structured", "en"))
    assert "tool call" in str(parsed(both, "structured", "en"))


def test_reasoning_alone_is_no_summary() -> None:
    thought = Message(Role.ASSISTANT, (Reasoning("We chose SQLite, I should say."),))
    assert parsed(thought, "structured", "en") == "only reasoning, no summary"


HONEST_BEGINNINGS = [
    "Rate limit handling was added to the client.",
    "Connection reset errors were fixed by a retry.",
    "Internal server error on the login page was traced to the cache.",
    "Overloaded functions were split up.",
    "No messages are lost after a restart any more.",
    "Nothing was decided yet about the cache.",
    "Let's Encrypt certificates were set up.",
    "Sorry page added for the login failure.",
    "As an AI feature, the search ranks by meaning.",
    "500 errors on the login page come from the cache.",
    "Error handling in login.py was rewritten.",
    "Failed tests: test_expired_token.",
    "Please-wait dialog was removed.",
    "请求失败的原因是缓存为空。",
    "没有内容被删除，订单表保持不变。",
    "错误处理已经补上。",
    "服务不可用的问题已修复。",
    "我先修复了登录页面，然后跑了测试。",
    "上下文过长的问题通过压缩解决。",
]


@pytest.mark.parametrize("text", HONEST_BEGINNINGS)
def test_a_summary_may_begin_like_an_error_or_a_refusal(text: str) -> None:
    assert no_summary(text) == ""


def test_a_summary_may_tell_of_errors_refusals_and_calls() -> None:
    for text in (
        "The build failed with Error: 429; the model said it can't help with that.",
        "Errors in login.py were fixed. The tool printed `<tool_call>` as text.",
        "The assistant was sorry about the delay and fixed a.py.",
        "Nothing was decided yet about the cache.",
        "Requests to the API were refused with 503 until noon.",
        "已修复错误：登录页面返回 500。",
    ):
        assert isinstance(parsed(assistant(text), "structured", "en"), Summary), text


PIECES = [
    *'{}[]":,`#*-<>/',
    "\\",
    "\n",
    " ",
    "ab",
    "决定",
    "。",
    '"decisions"',
    "context",
    "<think>",
    "<tool_call>",
    "none",
]


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(PIECES)),
    st.sampled_from(STYLES),
)
def test_parsing_never_raises_and_never_gives_an_empty_summary(pieces: list[str], style: Style) -> None:
    found = parsed(assistant("".join(pieces)), style, "en")
    assert isinstance(found, str) or any(c.isalnum() for c in found.context + "".join(found.decisions))
