from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given, settings, strategies as st

from everlong.compress.steps.lossless.repeated_lines import Repeats, collapse, expand, repeated_lines
from everlong.core import History, Message, Ref, Role, Text, ref_of
from tests.compress.lossless import (
    ENDING,
    LOG,
    PICTURE,
    draft,
    histories,
    keeps_its_promises,
    said,
    task,
    tool_round,
)

REF = Ref("0123456789abcdef")
WAIT = "still waiting for the database"


def lines(form: str, *numbers: int) -> str:
    return "".join(form.format(number) + "\n" for number in numbers)


@dataclass(frozen=True)
class Case:
    id: str
    text: str
    shown: str | None


CASES = [
    Case("four of the same", f"{WAIT}\n" * 4, f"{WAIT}\n[the line above 3 more times]\n"),
    Case("three are too few", f"{WAIT}\n" * 3, None),
    Case("between other lines", f"a\n{WAIT}" + f"\n{WAIT}" * 8 + "\nb", f"a\n{WAIT}\n[the line above 8 more times]\nb"),
    Case("short lines cost less than a marker", "}\n" * 6, None),
    Case("many blank lines", "a" + "\n" * 500 + "b", "a\n\n[the line above 498 more times]\nb"),
    Case("blocks", f"retry\n{WAIT}\n" * 5, f"retry\n{WAIT}\n[the 2 lines above 4 more times]\n"),
    Case(
        "log lines that differ in numbers",
        lines("2026-01-02 03:04:{:02} job done", *range(10)),
        f"2026-01-02 03:04:00 job done\n[8 similar lines left out, only numbers differ; ref {REF}]\n"
        "2026-01-02 03:04:09 job done\n",
    ),
    Case("seven are too few", lines("job number {} is done", *range(7)), None),
    Case(
        "hashes and ids",
        lines("commit 3fa8{:04x}bc to 6f1c2a3b-{:04x}-4aaa-8bbb-0123456789ab".replace("{:04x}", "{0:04x}"), *range(9)),
        f"commit 3fa80000bc to 6f1c2a3b-0000-4aaa-8bbb-0123456789ab\n"
        f"[7 similar lines left out, only numbers differ; ref {REF}]\n"
        "commit 3fa80008bc to 6f1c2a3b-0008-4aaa-8bbb-0123456789ab\n",
    ),
    Case(
        "Chinese log lines",
        lines("正在处理第{}个文件，请稍候", *range(100, 120)),
        f"正在处理第100个文件，请稍候\n[18 similar lines left out, only numbers differ; ref {REF}]\n"
        "正在处理第119个文件，请稍候\n",
    ),
    Case(
        "the one failure among successes is seen",
        lines("GET /items/{} 200", *range(8)) + "GET /items/8 500\n" + lines("GET /items/{} 200", *range(9, 17)),
        f"GET /items/0 200\n[6 similar lines left out, only numbers differ; ref {REF}]\nGET /items/7 200\n"
        "GET /items/8 500\n"
        f"GET /items/9 200\n[6 similar lines left out, only numbers differ; ref {REF}]\nGET /items/16 200\n",
    ),
    Case("exit codes are told apart", lines("job finished with exit code {}", *range(12)), None),
    Case("so are counts of failures", lines("suite done: {} failed", *range(12)), None),
    Case("rows of numbers are data", lines("{}, 17, 23.5", *range(20)), None),
    Case("columns are data", lines("{}\tsome words here", *range(20)), None),
    Case("hex dumps are data", lines("    0x{:02x}, 0xff, 0x7f,", *range(20)), None),
    Case("one line", "x" * 500, None),
    Case("markers of ours are not collapsed again", f"{WAIT}\n[the line above 3 more times]\n" + f"{WAIT}\n" * 9, None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_collapse(case: Case) -> None:
    assert collapse(case.text, ref=REF) == case.shown


def test_chinese_words() -> None:
    text = f"{WAIT}\n" * 5 + f"重试\n{WAIT}\n" * 5 + lines("第 {} 步 完成", *range(30))
    shown = collapse(text, ref=REF, language="zh")
    assert shown is not None
    assert "[上一行再重复 4 次]" in shown
    assert "[以上 2 行再重复 4 次]" in shown
    assert f"[省略 28 行相似内容，仅数字不同；引用 {REF}]" in shown
    assert collapse(shown, ref=REF) is None


@pytest.mark.parametrize("repeats", [Repeats(exact=0), Repeats(block=0), Repeats(exact=9)], ids=str)
def test_what_is_switched_off_or_too_short_stays(repeats: Repeats) -> None:
    assert collapse(f"{WAIT}\n" * 8, ref=REF, repeats=repeats) is None


LINES = ["", "a", "}", "a line that is long enough to be worth leaving out", "another line, also long enough, of words"]
LINES += ["[the line above", "more times]", "\r", "中文的一行，足够长，值得省略掉，写得再长一些", "7 of 9 done"]


@given(
    st.lists(st.tuples(st.lists(st.sampled_from(LINES), max_size=6), st.integers(1, 9)), max_size=6),
    st.sampled_from(["en", "zh"]),
)
@settings(max_examples=300, deadline=None)
def test_exact_repeats_are_given_back(blocks: list[tuple[list[str], int]], language: str) -> None:
    text = "\n".join(line for block, times in blocks for _ in range(times) for line in block)
    shown = collapse(text, ref=REF, repeats=Repeats(similar=0), language=language)
    assert expand(text if shown is None else shown) == text
    assert shown is None or len(shown) < len(text)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40)), max_size=40))
@settings(max_examples=200, deadline=None)
def test_every_line_that_stays_was_there_in_this_order(picks: list[tuple[int, int]]) -> None:
    forms = ["job number {} is done", "GET /x {}", "plain", "wait for {} more seconds please", "{},{}"]
    text = "\n".join(forms[form].format(number, number) for form, number in picks)
    shown = collapse(text, ref=REF)
    if shown is not None:
        left = iter(text.split("\n"))
        assert all(line in left for line in expand(shown).split("\n") if not line.startswith("["))


def history(*content: object) -> History:
    return (Message(Role.USER, (Text(LOG),)), *tool_round(1, "bash", "{}", *content), *ENDING)


def test_the_marker_carries_the_reference_of_all_the_words_of_the_result() -> None:
    after = repeated_lines(draft(history(LOG, PICTURE, "tick\n" * 30)), task())
    (edit,) = after.edits
    assert edit.ref == ref_of(f"{LOG}\n" + "tick\n" * 30)
    assert f"ref {edit.ref}]" in said(after, 2)
    assert edit.reason == "repeated lines kept once: 51 lines in 6"
    assert PICTURE in after.slots[2].message.parts[0].content


def test_similar_lines_can_be_left_alone() -> None:
    start = draft(history(LOG))
    assert repeated_lines(start, task(), repeats=Repeats(similar=0)) is start


def test_on_arrival_it_works_below_the_target_too() -> None:
    wanted = task(target=100_000)
    start = draft(history(LOG))
    assert repeated_lines(start, wanted) is start
    assert repeated_lines(start, wanted, always=True).total < start.total


@pytest.mark.parametrize("hostile", ["\n", "a\n", "a\nb\nc\nd\ne\nf\n", "step 1 ok\n", "1", "deadbeef1 "])
def test_a_flood_of_lines_is_handled(hostile: str) -> None:
    text = hostile * (300_000 // len(hostile))
    shown = collapse(text, ref=REF)
    assert expand(text if shown is None else shown) == text


@given(histories(), st.sampled_from(["en", "zh"]))
@settings(max_examples=40, deadline=None)
def test_it_keeps_the_promises_of_a_lossless_step(generated: History, language: str) -> None:
    keeps_its_promises(repeated_lines, generated, task(language=language))


@given(histories())
@settings(max_examples=20, deadline=None)
def test_it_keeps_them_with_exact_repeats_alone(generated: History) -> None:
    step = partial(repeated_lines, repeats=Repeats(similar=0, block=1))
    after = keeps_its_promises(step, generated, task())
    for edit in after.edits:
        assert edit.part is not None
        given_part = generated[edit.at].parts[edit.part]
        assert expand(said(after, edit.at, edit.part)) == getattr(given_part, "text", "")


@pytest.mark.parametrize(
    ("question", "named"),
    [("What happened to request 1207?", "1207"), ("请求 1207 怎么样了？", "1207"), ("Go on.", "")],
)
def test_of_similar_lines_the_one_that_is_asked_for_stays(question: str, named: str) -> None:
    log = lines("10:00 INFO request {} answered", *range(1_200, 1_260))
    history = (
        *tool_round(1, "tail", "{}", log),
        *tool_round(2, "tail", "{}", "end"),
        Message(Role.USER, (Text(question),)),
    )
    (shown,) = [
        result.text for message in repeated_lines(draft(history), task(target=1)).messages for result in message.results
    ][:1]
    assert "similar lines left out" in shown or "相似" in shown
    assert ("request 1207 answered" in shown) is bool(named)
    assert shown.count("\n") <= 5
