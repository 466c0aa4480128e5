from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st

from everlong.compress.steps.lossless.superseded import superseded
from everlong.core import CallId, History, Message, Role, Text, ToolCall, ToolResult, ref_of
from tests.compress.lossless import (
    ENDING,
    PICTURE,
    SOURCE,
    draft,
    histories,
    keeps_its_promises,
    read,
    said,
    task,
    tool_round,
)

ASK = (Message(Role.USER, (Text("go on"),)),)
REPLY = (Message(Role.ASSISTANT, (Text("I see."),)),)
NEWER = SOURCE.replace("respond", "answer")


def edit(number: int, path: str = "src/app.py", said: str = "ok", *, failed: bool = False) -> History:
    return tool_round(number, "edit_file", f'{{"path": "{path}", "old": "a", "new": "b"}}', said, failed=failed)


def write(number: int, said: str = "ok") -> History:
    return tool_round(number, "write_file", '{"path": "src/app.py", "content": "all of it"}', said)


@dataclass(frozen=True)
class Case:
    id: str
    middle: History
    #: Positions of the results that become one line, counted in the middle from 0.
    stubs: set[int]
    pins: frozenset[int] = frozenset()


CASES = [
    Case("read again", read(1, SOURCE) + read(2, NEWER), {1}),
    Case("read again twice", read(1, SOURCE) + read(2, NEWER) + read(3, SOURCE), {1, 3}),
    Case("spelled another way", read(1, SOURCE, "./src//app.py") + read(2, NEWER), {1}),
    Case("overwritten", read(1, SOURCE) + write(2), {1}),
    Case("overwritten, without success", read(1, SOURCE) + write(2, "Error: disk full"), set()),
    Case("changed since", read(1, SOURCE) + edit(2), {1}),
    Case("read after the change", read(1, SOURCE) + edit(2) + read(3, NEWER), {1}),
    Case("changed before it was read", edit(1) + read(2, SOURCE), set()),
    Case("another file", read(1, SOURCE) + read(2, NEWER, "src/other.py") + edit(3, "src/third.py"), set()),
    Case("a whole read covers a part", read(1, SOURCE, offset=10, limit=20) + read(2, NEWER), {1}),
    Case("a part does not cover the whole", read(1, SOURCE) + read(2, NEWER, offset=10, limit=20), set()),
    Case("a part covers a smaller one", read(1, SOURCE, offset=10, limit=5) + read(2, NEWER, offset=0, limit=50), {1}),
    Case("parts that overlap", read(1, SOURCE, offset=10, limit=9) + read(2, NEWER, offset=15, limit=9), set()),
    Case(
        "two tools may count lines differently",
        read(1, SOURCE, offset=10, limit=5)
        + tool_round(2, "view", '{"path": "src/app.py", "view_range": [1, 50]}', NEWER),
        set(),
    ),
    Case("a part that was changed", read(1, SOURCE, offset=10, limit=5) + edit(2), {1}),
    Case("a later read that failed", read(1, SOURCE) + read(2, "Error: permission denied"), set()),
    Case("a change that failed", read(1, SOURCE) + edit(2, failed=True), set()),
    Case("a change that failed in words", read(1, SOURCE) + edit(2, said="old text not found in src/app.py"), set()),
    Case("a later read that was cut short", read(1, SOURCE) + read(2, NEWER + "\n[truncated, 900 more lines]"), set()),
    Case("small results stay", read(1, "x = 1") + read(2, "x = 2"), set()),
    Case("pinned results stay", read(1, SOURCE) + read(2, NEWER), set(), frozenset({2})),
    Case(
        "Chinese tools",
        tool_round(1, "读取文件", '{"路径": "甲.py"}', SOURCE) + tool_round(2, "修改文件", '{"路径": "甲.py"}', "好"),
        {1},
    ),
    Case(
        "a patch of several files",
        read(1, SOURCE) + read(2, SOURCE, "b.py") + tool_round(3, "apply_patch", "+++ b/b.py\n+++ b/src/app.py", "ok"),
        {1, 3},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_out_of_date(case: Case) -> None:
    history = ASK + case.middle + ENDING
    after = keeps_its_promises(superseded, history, task(pins=case.pins))
    assert {
        position - 1 for position, slot in enumerate(after.slots) if slot.message != history[position]
    } == case.stubs
    for at in case.stubs:
        assert said(after, at + 1).startswith("[")
        assert "\n" not in said(after, at + 1)


def test_the_line_says_which_file_what_came_after_and_where_the_copy_is() -> None:
    start = draft(ASK + read(1, SOURCE) + read(2, NEWER) + edit(3, "b.py") + ENDING)
    after = superseded(start, task())
    assert said(after, 2) == (
        "[src/app.py was read again later (read_file, message 4); this older copy, 156 tokens, is left out; "
        f"ref {ref_of(SOURCE)}]"
    )
    (only,) = after.edits
    assert (only.at, only.part, only.ref) == (2, 0, ref_of(SOURCE))
    assert only.reason == "src/app.py was read again later, in message 4"


def test_chinese_and_recall() -> None:
    after = superseded(draft(ASK + read(1, SOURCE) + edit(2) + ENDING), task(language="zh", recall="recall"))
    ref = ref_of(SOURCE)
    assert said(after, 2) == (
        f"[src/app.py 后来已被修改（edit_file，消息 4）；此处省略较旧的内容，156 tokens；引用 {ref}"
        f'；可用 recall("{ref}") 取回]'
    )


def test_a_result_nobody_has_read_yet_still_tells_that_older_ones_are_out_of_date() -> None:
    after = superseded(draft(ASK + read(1, SOURCE) + REPLY + read(2, NEWER)), task())
    assert said(after, 2).startswith("[src/app.py was read again later")
    assert said(after, 5) == NEWER


def test_after_an_edit_the_rest_of_the_file_can_be_kept() -> None:
    start = draft(ASK + read(1, SOURCE) + edit(2) + ENDING)
    assert superseded(start, task(), after_edits=False) is start
    written = superseded(draft(ASK + read(1, SOURCE) + write(2) + ENDING), task(), after_edits=False)
    assert said(written, 2).startswith("[src/app.py was overwritten later (write_file, message 4)")


def test_pictures_and_parallel_results_stay() -> None:
    ask = Message(Role.ASSISTANT, tuple(ToolCall(CallId(n), "read_file", f'{{"path": "{n}.py"}}') for n in "ab"))
    both = Message(
        Role.TOOL,
        (ToolResult(CallId("a"), (Text(SOURCE), PICTURE, Text("end"))), ToolResult(CallId("b"), (Text(SOURCE),))),
    )
    after = keeps_its_promises(superseded, (*ASK, ask, both, *read(3, NEWER, "a.py"), *ENDING), task())
    older, other = after.slots[2].message.parts
    assert isinstance(older, ToolResult)
    assert older.text.startswith("[a.py was read again later")
    assert older.content[1:] == (PICTURE,)
    assert other == both.parts[1]


def test_hundreds_of_parts_of_one_file() -> None:
    parts = tuple(message for n in range(200) for message in read(n, SOURCE, offset=n * 10, limit=10))
    after = superseded(draft(ASK + parts + read(999, NEWER) + ENDING), task())
    assert len(after.edits) == 200


def test_below_the_target_it_works_only_when_told_to() -> None:
    wanted = task(target=100_000)
    start = draft(ASK + read(1, SOURCE) + read(2, NEWER) + ENDING)
    assert superseded(start, wanted) is start
    assert superseded(start, wanted, always=True).total < start.total
    assert superseded(start, wanted, always=True, least=1_000) is start


@given(histories(), st.sampled_from(["en", "zh"]), st.frozensets(st.integers(0, 8), max_size=2), st.booleans())
@settings(max_examples=60, deadline=None)
def test_it_keeps_the_promises_of_a_lossless_step(
    generated: History, language: str, pins: frozenset[int], recall: bool
) -> None:
    keeps_its_promises(superseded, generated, task(language=language, pins=pins, recall=recall))
