"""Failure modes A7, B7, B9, F3 and H7 for the steps that lose nothing."""

import json

import pytest

from everlong.compress import Draft, duplicates, json_tables, repeated_lines, superseded, terminal
from everlong.compress.draft import Step
from everlong.core import History, Message, Role, Text, ToolResult, bytes_of, part_content, ref_of
from tests.compress.lossless import COLOURED, ENDING, LOG, RECORDS, SOURCE, draft, read, said, task, tool_round

STEPS: dict[str, Step] = {
    "duplicates": duplicates,
    "superseded": superseded,
    "terminal": terminal,
    "json_tables": json_tables,
    "repeated_lines": repeated_lines,
}
ASK = (Message(Role.USER, (Text("go on"),)),)
EMOJI = "👩‍💻 e\u0301 𝕏 中文 🇨🇳 "
GRAPHEMES = f"\x1b[1m{EMOJI}\x1b[0m is the same in this line as in all others\r\n"


def everything() -> History:
    """Something to do for each step."""
    return (
        *ASK,
        *tool_round(1, "bash", "{}", COLOURED * 3),
        *tool_round(2, "bash", "{}", LOG),
        *tool_round(3, "list", "{}", RECORDS),
        *tool_round(4, "bash", "{}", GRAPHEMES * 12),
        *tool_round(5, "bash", "{}", "\x1b[0m" * 60),
        *read(6, SOURCE + "\n# first"),
        *read(7, SOURCE + "\n# changed"),
        *tool_round(8, "grep", "{}", SOURCE),
        *tool_round(9, "grep", "{}", SOURCE),
        *ENDING,
    )


def run(history: History, *steps: Step) -> Draft:
    after = draft(history)
    for step in steps:
        after = step(after, task())
    return after


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_A7_a_marker_never_stands_in_the_arguments_of_a_call(step: Step) -> None:
    history = everything()
    after = run(history, step)
    assert after.edits
    assert [message.calls for message in after.messages] == [message.calls for message in history]


def test_A7_every_line_that_stands_for_others_says_how_many() -> None:
    after = run(everything(), *STEPS.values())
    markers = [line for message in after.messages for part in message.parts for line in part_content(part).split("\n")]
    ours = [line for line in markers if line.startswith("[") and line.endswith("]")]
    assert len(ours) >= 5
    for line in ours:
        assert any(character.isdigit() for character in line)


def test_B7_no_block_is_left_empty() -> None:
    after = run(everything(), *STEPS.values())
    for message in after.messages:
        for part in message.parts:
            blocks = part.content if isinstance(part, ToolResult) else (part,)
            assert blocks
            assert all(block.text.strip() for block in blocks if isinstance(block, Text))


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_B9_what_was_valid_stays_valid(step: Step) -> None:
    """RECORDS holds an escaped lone surrogate: as text it may not come out of its escape."""
    for message in run(everything(), step).messages:
        for part in message.parts:
            part_content(part).encode("utf-8")


def test_B9_what_a_reader_sees_as_one_character_stays_whole() -> None:
    after = run(everything(), *STEPS.values())
    assert EMOJI in said(after, 8)


def test_F3_an_oversized_result_that_says_little_shrinks_without_a_model() -> None:
    progress = "".join(f"\x1b[2K\rDownloading {n / 200:.2f} % of the archive" for n in range(20_001)) + "\n"
    waiting = "waiting for the lock to be released\n" * 20_000
    start = draft((*ASK, *tool_round(1, "bash", "{}", progress + waiting), *ENDING))
    after = run(start.history, terminal, repeated_lines)
    assert start.total > 200_000
    assert after.total < 100
    assert said(after, 2) == (
        "Downloading 100.00 % of the archive\nwaiting for the lock to be released\n[the line above 19999 more times]\n"
    )


def test_F3_a_list_of_thousands_of_records_takes_half_the_tokens() -> None:
    rows = [{"id": n, "name": f"item {n}", "state": "open", "owner": {"login": "ada", "id": 7}} for n in range(3_000)]
    start = draft((*ASK, *tool_round(1, "list", "{}", json.dumps(rows)), *ENDING))
    assert run(start.history, json_tables).total < start.total / 2


def test_H7_every_edit_gives_back_the_original_bytes() -> None:
    history = everything()
    kept = {ref_of(content): bytes_of(content) for message in history for content in map(part_content, message.parts)}
    after = run(history, *STEPS.values())
    assert {edit.step for edit in after.edits} == set(STEPS)
    for edit in after.edits:
        assert edit.ref is not None
        assert edit.part is not None
        assert kept[edit.ref] == bytes_of(part_content(history[edit.at].parts[edit.part]))


def test_H7_every_line_that_stands_for_lost_words_carries_their_reference() -> None:
    after = run(everything(), duplicates, superseded, repeated_lines)
    for edit in after.edits:
        assert edit.part is not None
        words = said(after, edit.at, edit.part)
        assert f"ref {edit.ref}" in words or "more times]" in words
