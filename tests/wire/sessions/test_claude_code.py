"""Claude Code sessions: replies joined from their lines, side chains and abandoned turns left out, and writing."""

from dataclasses import replace

import pytest

from everlong.core import JsonObject, Reasoning, Text
from everlong.wire.sessions.agents import claude_code
from tests.core.build import assistant, calls, result, system, user
from tests.wire.sessions.reading import outline, read, said, written
from tests.wire.sessions.samples import (
    CLAUDE,
    CLAUDE_COMPACTED,
    claude_call,
    claude_line,
    claude_reply,
    claude_result,
    claude_user,
)

TEXT: JsonObject = {"type": "text", "text": "reply"}


def test_the_lines_of_a_reply_are_one_message_with_its_results_behind_it() -> None:
    found = read(claude_code, CLAUDE)
    assert outline(found.messages) == [
        "user: read both files",
        "assistant: I read both. t1 t2",
        "tool: t1",
        "tool: t2",
        "assistant: Both are short.",
    ]
    assert isinstance(found.messages[1].parts[0], Reasoning)
    assert found.model == "claude-x"
    assert found.boundaries == ()
    assert found.warnings == ()


def test_a_compaction_is_a_boundary_at_its_summary() -> None:
    found = read(claude_code, CLAUDE_COMPACTED)
    assert outline(found.messages)[2] == "user: This is what happened before."
    assert found.boundaries == (2,)


def test_a_summary_without_the_line_that_marks_it_is_a_boundary_too() -> None:
    lines = [claude_user("a", None, "first"), claude_user("b", "a", "what happened", isCompactSummary=True)]
    assert read(claude_code, lines).boundaries == (1,)


BRANCHES = {
    "a question asked anew": (
        [
            claude_user("a", None, "first"),
            claude_reply("b", "a", "m1", TEXT),
            claude_user("c", "b", "a question"),
            claude_reply("d", "c", "m2", TEXT),
            claude_user("e", "b", "a better question"),
            claude_reply("f", "e", "m3", TEXT),
        ],
        ["user: first", "assistant: reply", "user: a better question", "assistant: reply"],
    ),
    "a reply given anew": (
        [
            claude_user("a", None, "first"),
            claude_reply("b", "a", "m1", {"type": "text", "text": "bad"}),
            claude_reply("c", "a", "m2", {"type": "text", "text": "good"}),
        ],
        ["user: first", "assistant: good"],
    ),
    "a command before the session was taken up again": (
        [
            claude_user("a", None, "first"),
            claude_user("b", "a", "<command-name>/exit</command-name>"),
            claude_reply("c", "a", "m1", TEXT),
        ],
        ["user: first", "assistant: reply"],
    ),
    "results of parallel calls off the path": (
        [
            claude_user("a", None, "first"),
            claude_call("b", "a", "m1", "t1"),
            claude_call("c", "b", "m1", "t2"),
            claude_result("d", "b", "t1", "one"),
            claude_result("e", "c", "t2", "two"),
            claude_reply("f", "e", "m2", TEXT),
        ],
        ["user: first", "assistant: t1 t2", "tool: t1", "tool: t2", "assistant: reply"],
    ),
    "a second start in the same file": (
        [claude_user("a", None, "first"), claude_user("b", None, "second"), claude_reply("c", "b", "m1", TEXT)],
        ["user: first", "user: second", "assistant: reply"],
    ),
}


@pytest.mark.parametrize(("lines", "expected"), BRANCHES.values(), ids=BRANCHES)
def test_only_what_the_conversation_went_on_from(lines: list[JsonObject], expected: list[str]) -> None:
    assert outline(read(claude_code, lines).messages) == expected


def test_a_question_between_a_call_and_its_result_waits() -> None:
    lines = [claude_user("a", None, "first"), claude_call("b", "a", "m1", "t1")]
    lines += [claude_user("c", "b", "hurry"), claude_result("d", "c", "t1", "one")]
    assert outline(read(claude_code, lines).messages) == ["user: first", "assistant: t1", "tool: t1", "user: hurry"]


def test_what_is_said_beside_results_is_kept() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": "t1", "content": "one"}, {"type": "text", "text": "and hurry"}]
    beside = claude_line("c", "b", "user", {"role": "user", "content": blocks})
    found = read(claude_code, [claude_user("a", None, "first"), claude_call("b", "a", "m1", "t1"), beside])
    assert outline(found.messages)[-1] == "tool: and hurry t1"


@pytest.mark.parametrize("lines", [CLAUDE, CLAUDE_COMPACTED], ids=["plain", "compacted"])
@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_changed_conversation_reads_back_the_same(lines: list[JsonObject], start: int) -> None:
    found = read(claude_code, lines)
    last = found.messages[-1].with_parts((Text("shorter"),))
    changed = replace(found, messages=(*found.messages[start:-1], last))
    again = read(claude_code, written(claude_code, changed))
    assert said(again.messages) == said(changed.messages)
    assert again.boundaries == tuple(at - start for at in found.boundaries if at >= start)


def test_a_changed_conversation_is_one_chain_under_the_old_names() -> None:
    found = read(claude_code, CLAUDE)
    lines = written(claude_code, replace(found, messages=found.messages[1:]))
    assert lines[:2] == CLAUDE[:2]
    assert [line["uuid"] for line in lines[2:]] == ["u2", "u5", "u7", "u8"]
    assert [line["parentUuid"] for line in lines[2:]] == [None, "u2", "u5", "u7"]
    assert lines[3]["toolUseResult"] == {"stdout": "first file"}


def test_a_conversation_from_elsewhere_becomes_a_session() -> None:
    messages = (
        system("Be brief."),
        user("go"),
        calls("c1", "c2"),
        result("c1"),
        result("c2", failed=True),
        assistant("ok"),
    )
    lines = written(claude_code, replace(read(claude_code, []), messages=messages, model="m"))
    assert claude_code.recognises(lines)
    assert said(read(claude_code, lines).messages) == said(messages[1:])
    assert read(claude_code, lines).model == "m"


def test_new_messages_in_an_old_session_share_its_fields() -> None:
    found = read(claude_code, CLAUDE)
    lines = written(claude_code, replace(found, messages=(*found.messages, user("more"))))
    assert {key: lines[-1][key] for key in ("cwd", "sessionId", "version")} == {
        "cwd": "/w",
        "sessionId": "s",
        "version": "2.1.0",
    }
