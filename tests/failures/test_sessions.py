"""G1 and B1 as far as they concern single records: wrong shapes, ids that repeat, lines that are lost."""

from types import ModuleType

import pytest

from everlong.core import Json, JsonObject
from everlong.wire.sessions.agents import claude_code, codex, nanobot, pi
from everlong.wire.sessions.chats import chatbox
from tests.wire.sessions.reading import outline, read, written
from tests.wire.sessions.samples import (
    CLAUDE,
    CODEX,
    LINE_SESSIONS,
    NANOBOT,
    PI_3,
    Sample,
    chatbox_text,
    claude_call,
    claude_result,
    claude_user,
    codex_line,
    pi_call,
    pi_result,
    pi_said,
    pi_user,
)

WRONG: dict[str, tuple[ModuleType, list[JsonObject], Json]] = {
    "pi: a message entry without a message": (pi, PI_3, {"type": "message", "id": "x", "parentId": "00", "message": 5}),
    "pi: a message without a role": (pi, PI_3, {"type": "message", "id": "x", "parentId": "00", "message": {}}),
    "pi: a list": (pi, PI_3, [1, 2]),
    "Claude Code: no message": (claude_code, CLAUDE, {"type": "user", "uuid": "x", "parentUuid": "u1"}),
    "Claude Code: content that is a number": (
        claude_code,
        CLAUDE,
        {"type": "user", "uuid": "x", "parentUuid": None, "message": {"role": "user", "content": 5}},
    ),
    "Claude Code: text": (claude_code, CLAUDE, "torn"),
    "Codex: an item that is text": (codex, CODEX, codex_line("response_item", "torn")),
    "Codex: a message without a role": (codex, CODEX, codex_line("response_item", {"type": "message"})),
    "Codex: null": (codex, CODEX, None),
    "nanobot: no role": (nanobot, NANOBOT, {"content": "who?", "timestamp": "now"}),
    "nanobot: an unknown type of line": (nanobot, NANOBOT, {"_type": "future", "value": 1}),
    "nanobot: a number": (nanobot, NANOBOT, 7),
}


@pytest.mark.parametrize(("module", "lines", "wrong"), WRONG.values(), ids=WRONG)
def test_G1_a_record_of_the_wrong_shape_costs_itself_alone(
    module: ModuleType, lines: list[JsonObject], wrong: Json
) -> None:
    found = read(module, [*lines[:3], wrong, *lines[3:]])
    assert outline(found.messages) == outline(read(module, lines).messages)
    assert len([warning for warning in found.warnings if "line 4" in warning]) == 1


@pytest.mark.parametrize(("module", "lines", "wrong"), WRONG.values(), ids=WRONG)
def test_G1_a_record_of_the_wrong_shape_is_still_written(
    module: ModuleType, lines: list[JsonObject], wrong: Json
) -> None:
    damaged = [*lines[:3], wrong, *lines[3:]]
    assert written(module, read(module, damaged)) == damaged


@pytest.mark.parametrize("sample", LINE_SESSIONS, ids=lambda sample: sample.name)
def test_G1_any_single_line_can_be_lost(sample: Sample) -> None:
    """Whatever line is gone, every other message of the conversation is still there, in order."""
    whole = {line for line in outline(read(sample.module, sample.lines).messages) if line.startswith("user: ")}
    for gone in range(len(sample.lines)):
        left = sample.lines[:gone] + sample.lines[gone + 1 :]
        found = {line for line in outline(read(sample.module, left).messages) if line.startswith("user: ")}
        assert len(whole - found) <= lost_with(sample.lines[gone])


def lost_with(line: JsonObject) -> int:
    """A compaction of Codex may bring several messages, the header of nanobot the summary; any other line one."""
    payload = line.get("payload")
    history = payload.get("replacement_history") if isinstance(payload, dict) else None
    return len(history) if isinstance(history, list) else 1


def test_G1_a_lost_parent_does_not_cut_off_what_came_before() -> None:
    lines = [PI_3[0], pi_user("one", id="1", parentId=None), pi_said("two", id="3", parentId="lost")]
    found = read(pi, lines)
    assert outline(found.messages) == ["user: one", "assistant: two"]
    assert found.warnings == ("pi: parent lost is missing; the previous record is used instead (at record 3)",)


DUPLICATES = {
    "pi": (
        pi,
        [
            PI_3[0],
            pi_user("one", id="1", parentId=None),
            pi_user("one", id="1", parentId=None),
            pi_said("two", id="2", parentId="1"),
        ],
        ["user: one", "assistant: two"],
    ),
    "pi, an entry that is its own parent": (
        pi,
        [PI_3[0], pi_user("one", id="1", parentId="1"), pi_said("two", id="1", parentId="1")],
        ["user: one", "assistant: two"],
    ),
    "Claude Code": (
        claude_code,
        [claude_user("1", None, "one"), claude_user("1", None, "one"), claude_user("2", "1", "two")],
        ["user: one", "user: two"],
    ),
}


@pytest.mark.parametrize(("module", "lines", "expected"), DUPLICATES.values(), ids=DUPLICATES)
def test_G1_an_id_that_comes_twice_is_named_and_said_once(
    module: ModuleType, lines: list[JsonObject], expected: list[str]
) -> None:
    found = read(module, lines)
    assert outline(found.messages) == expected
    assert any("appears twice" in warning for warning in found.warnings)
    assert written(module, found) == lines


def test_G1_two_chatbox_messages_under_one_id_are_both_there() -> None:
    session: JsonObject = {
        "id": "s",
        "name": "n",
        "messages": [chatbox_text("1", "user", "a"), chatbox_text("1", "user", "b")],
    }
    found = chatbox.parse_body(session)
    assert outline(found.messages) == ["user: a", "user: b"]
    assert found.warnings == ("chatbox: id 1 appears twice",)


def test_G1_a_chatbox_message_of_the_wrong_shape_costs_itself_alone() -> None:
    session: JsonObject = {"id": "s", "name": "n", "messages": [5, {"id": "x"}, chatbox_text("1", "user", "a")]}
    found = chatbox.parse_body(session)
    assert outline(found.messages) == ["user: a"]
    assert [warning.split("at ")[-1] for warning in found.warnings] == ["messages[0])", "messages[1])"]
    assert chatbox.render_body(found) == session


def test_B1_a_result_far_from_its_call_stands_right_behind_it() -> None:
    pi_lines = [
        PI_3[0],
        pi_call("c", id="1", parentId=None),
        pi_user("hurry", id="2", parentId="1"),
        pi_result("c", "r", id="3", parentId="2"),
    ]
    claude_lines = [
        claude_user("1", None, "go"),
        claude_call("2", "1", "m", "c"),
        claude_user("3", "2", "hurry"),
        claude_result("4", "3", "c", "r"),
    ]
    assert outline(read(pi, pi_lines).messages) == ["assistant: Let me look. c", "tool: c", "user: hurry"]
    assert outline(read(claude_code, claude_lines).messages) == ["user: go", "assistant: c", "tool: c", "user: hurry"]


def test_B1_what_is_broken_in_the_file_stays_visible_to_the_repair() -> None:
    """A call without a result and a result without a call are repaired in the view, not hidden here."""
    lines = [
        PI_3[0],
        pi_result("gone", "r", id="1", parentId=None),
        pi_call("open", id="2", parentId="1"),
        pi_user("?", id="3", parentId="2"),
    ]
    assert outline(read(pi, lines).messages) == ["tool: gone", "assistant: Let me look. open", "user: ?"]
