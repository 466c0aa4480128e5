from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings, strategies as st

from everlong.compress.steps.lossless.duplicates import duplicates
from everlong.core import CallId, History, Message, Role, Text, ToolCall, ToolResult, part_ref, ref_of
from tests.compress.lossless import (
    ENDING,
    PICTURE,
    SOURCE,
    draft,
    histories,
    keeps_its_promises,
    said,
    task,
    tool_round,
)

ASK = Message(Role.USER, (Text("go on"),))
REPLY = Message(Role.ASSISTANT, (Text("I see."),))
REF = ref_of(SOURCE)


def grep(number: int, text: str = SOURCE) -> History:
    return tool_round(number, "grep", "{}", text)


def spoken(role: Role, text: str = SOURCE) -> History:
    return (Message(role, (Text(text),)),)


@dataclass(frozen=True)
class Case:
    id: str
    history: History
    #: Positions where the whole text still stands.
    whole: set[int]
    stubs: dict[int, str]
    pins: frozenset[int] = frozenset()


LATER = "[same text as the result of grep (message {at}), later; 156 tokens left out; ref {ref}]"

CASES = [
    Case("the newest stays", (ASK, *grep(1), *grep(2), REPLY, ASK), {4}, {2: LATER.format(at=4, ref=REF)}),
    Case(
        "all older ones name the newest",
        (ASK, *grep(1), *grep(2), *grep(3), REPLY, ASK),
        {6},
        {2: LATER.format(at=6, ref=REF), 4: LATER.format(at=6, ref=REF)},
    ),
    Case("a result nobody has read yet stays", (ASK, *grep(1), REPLY, *grep(2)), {5}, {2: LATER.format(at=5, ref=REF)}),
    Case(
        "a pinned copy is the one that stays",
        (ASK, *grep(1), *grep(2), *grep(3), REPLY, ASK),
        {2},
        {4: f"[same text as the result of grep (message 2), earlier; 156 tokens left out; ref {REF}]"},
        frozenset({2}),
    ),
    Case("two protected copies both stay", (ASK, *grep(1), *grep(2), REPLY, *grep(3)), {2, 7}, {}, frozenset({2})),
    Case(
        "what people pasted counts too",
        (*spoken(Role.USER), REPLY, *spoken(Role.USER), REPLY, ASK),
        {2},
        {0: f"[same text as what the user said (message 2), later; 156 tokens left out; ref {REF}]"},
    ),
    Case(
        "what the assistant said counts too",
        (ASK, *grep(1), *spoken(Role.ASSISTANT), ASK),
        {3},
        {2: f"[same text as what the assistant said (message 3), later; 156 tokens left out; ref {REF}]"},
    ),
    Case("the last user message keeps its words", (ASK, *grep(1), REPLY, *spoken(Role.USER)), {4}, {}),
    Case("one copy is none too many", (ASK, *grep(1), *grep(2, SOURCE + "!"), REPLY, ASK), {2}, {}),
    Case("short texts stay", (ASK, *grep(1, "ok\n" * 5), *grep(2, "ok\n" * 5), REPLY, ASK), set(), {}),
    Case("system text stays", (*spoken(Role.SYSTEM), ASK, *spoken(Role.SYSTEM), *grep(1), REPLY, ASK), {0, 2, 4}, {}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_one_copy_stays(case: Case) -> None:
    wanted = task(pins=case.pins)
    after = keeps_its_promises(duplicates, case.history, wanted)
    texts = {at: said(after, at) for at in range(len(case.history))}
    assert {at for at, text in texts.items() if text == SOURCE} >= case.whole
    for at, stub in case.stubs.items():
        assert texts[at] == stub
        assert "\n" not in stub
    assert len(after.edits) == sum(1 for old, new in zip(case.history, after.messages, strict=True) if old != new)


def test_parallel_results_in_one_message() -> None:
    calls = Message(Role.ASSISTANT, tuple(ToolCall(CallId(name), name, "{}") for name in ("ls", "find")))
    both = Message(
        Role.TOOL, (ToolResult(CallId("ls"), (Text(SOURCE),)), ToolResult(CallId("find"), (Text(SOURCE), PICTURE)))
    )
    after = keeps_its_promises(duplicates, (ASK, calls, both, *ENDING), task())
    assert said(after, 2).startswith("[same text as the result of find (message 2), later;")
    assert after.slots[2].message.parts[1] == both.parts[1]


def test_pictures_of_a_stubbed_result_stay() -> None:
    history = (ASK, *tool_round(1, "shot", "{}", SOURCE, PICTURE), *tool_round(2, "shot", "{}", SOURCE), REPLY, ASK)
    older = keeps_its_promises(duplicates, history, task()).slots[2].message.parts[0]
    assert isinstance(older, ToolResult)
    assert older.content[1] == PICTURE
    assert older.text.startswith("[same text as")


def test_a_text_that_the_provider_signed_stays() -> None:
    signed = Message(Role.ASSISTANT, (Text(SOURCE, '{"thoughtSignature":"x"}'),))
    after = duplicates(draft((ASK, signed, *grep(1), REPLY, ASK)), task())
    assert after.slots[1].message == signed
    assert said(after, 3).startswith("[same text as what the assistant said (message 1), earlier;")


def test_the_reference_is_that_of_the_text_as_it_was_given() -> None:
    """A step before this one may have cleaned the copies up."""
    history = (ASK, *grep(1, "\x1b[1m" + SOURCE), *grep(2), REPLY, ASK)
    start = draft(history)
    cleaned = start.slots[2].message.with_parts((replace(history[2].results[0], content=(Text(SOURCE),)),))
    after = duplicates(start.with_messages([(2, cleaned, task().counter.message(cleaned))], ()), task())
    assert after.edits[-1].ref == part_ref(history[2].parts[0])
    assert f"ref {after.edits[-1].ref}]" in said(after, 2)


def test_chinese_and_recall() -> None:
    after = duplicates(draft((ASK, *grep(1), *grep(2), REPLY, ASK)), task(language="zh", recall="recall"))
    assert said(after, 2) == (
        f'[与后面工具 grep 的结果（消息 4）的内容相同；已省略 156 tokens；引用 {REF}；可用 recall("{REF}") 取回]'
    )


def test_how_long_a_text_must_be_is_a_setting() -> None:
    start = draft((ASK, *grep(1), *grep(2), REPLY, ASK))
    assert duplicates(start, task(), least=157) is start
    assert duplicates(start, task(target=100_000), always=True, least=156).total < start.total


@given(histories(), st.sampled_from(["en", "zh"]), st.frozensets(st.integers(0, 8), max_size=2), st.booleans())
@settings(max_examples=60, deadline=None)
def test_it_keeps_the_promises_of_a_lossless_step(
    generated: History, language: str, pins: frozenset[int], recall: bool
) -> None:
    after = keeps_its_promises(duplicates, generated, task(language=language, pins=pins, recall=recall))
    everywhere = {
        said(after, at, index) for at, message in enumerate(after.messages) for index, _ in enumerate(message.parts)
    }
    for edit in after.edits:
        assert edit.part is not None
        assert getattr(generated[edit.at].parts[edit.part], "text", None) in everywhere, (
            "the text still stands somewhere"
        )
