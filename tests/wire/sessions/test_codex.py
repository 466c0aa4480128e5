"""Codex sessions: the assistant's items as one message, replacement histories, turns rolled back, and writing."""

from dataclasses import replace

import pytest

from everlong.core import JsonObject, Reasoning, Text
from everlong.wire.sessions.agents import codex
from tests.core.build import assistant, calls, result, system, user
from tests.wire.sessions.reading import outline, read, said, written
from tests.wire.sessions.samples import CODEX, CODEX_ITEMS, CODEX_OLD, codex_line, codex_message

WORK = ["user: read a.py", "assistant: k1 k2", "tool: k1", "tool: k2", "assistant: It says hello."]


def test_conversation() -> None:
    found = read(codex, CODEX)
    assert outline(found.messages) == [
        "system: You code.",
        "user: <environment_context>here</environment_context>",
        *WORK,
        "user: read a.py",
        "user: We read it.",
        "user: and b.py",
    ]
    assert found.boundaries == (7,)
    assert found.model == "gpt-x"
    assert isinstance(found.messages[3].parts[0], Reasoning)


def test_bare_items_are_the_same_conversation() -> None:
    found = read(codex, CODEX_OLD)
    assert outline(found.messages) == WORK
    assert found.boundaries == ()


def test_a_compaction_without_replacement_leaves_its_summary() -> None:
    lines = [CODEX[0], *(codex_line("response_item", item) for item in CODEX_ITEMS)]
    found = read(codex, [*lines, codex_line("compacted", {"message": "We read a.py."})])
    assert found.messages[-1].text.endswith("We read a.py.")
    assert found.boundaries == (len(found.messages) - 1,)


@pytest.mark.parametrize(
    ("turns", "left"),
    [
        (1, ["user: <environment_context>x", "user: one", "assistant: 1"]),
        (2, ["user: <environment_context>x"]),
        (9, ["user: <environment_context>x"]),
    ],
)
def test_turns_that_were_rolled_back_are_not_in_it(turns: int, left: list[str]) -> None:
    said_ = [
        ("user", "<environment_context>x"),
        ("user", "one"),
        ("assistant", "1"),
        ("user", "two"),
        ("assistant", "2"),
    ]
    lines = [codex_line("response_item", codex_message(role, text)) for role, text in said_]
    lines.append(codex_line("event_msg", {"type": "thread_rolled_back", "num_turns": turns}))
    assert outline(read(codex, lines).messages) == left


@pytest.mark.parametrize("lines", [CODEX, CODEX_OLD], ids=["lines", "bare items"])
@pytest.mark.parametrize("start", [0, 1, 3])
def test_a_changed_conversation_reads_back_the_same(lines: list[JsonObject], start: int) -> None:
    found = read(codex, lines)
    last = found.messages[-1].with_parts((Text("shorter"),))
    kept = found.messages[:1] * (found.messages[0].role == "system")
    changed = replace(found, messages=(*kept, *found.messages[len(kept) + start : -1], last))
    again = read(codex, written(codex, changed))
    assert said(again.messages) == said(changed.messages)
    assert again.boundaries == tuple(at - start for at in found.boundaries)


def test_a_changed_replacement_goes_into_its_compaction() -> None:
    payload: JsonObject = {**CODEX[-2]["payload"], "replacement_history_metadata": [{}, {}]}
    found = read(codex, [*CODEX[:-2], codex_line("compacted", payload), CODEX[-1]])
    lines = written(codex, replace(found, messages=(*found.messages[:7], *found.messages[8:])))
    assert lines[-2] == codex_line(
        "compacted", {"message": "", "replacement_history": [codex_message("user", "We read it.")]}
    )


def test_reasoning_that_lost_its_call_is_not_written() -> None:
    found = read(codex, CODEX)
    spoken = found.messages[3]
    changed = replace(
        found,
        messages=(*found.messages[:3], spoken.with_parts(spoken.parts[:1] + spoken.parts[2:]), *found.messages[4:]),
    )
    kinds = [line["payload"].get("type") for line in written(codex, changed)]
    assert "reasoning" not in kinds
    assert "custom_tool_call" in kinds


def test_a_conversation_from_elsewhere_becomes_a_session() -> None:
    messages = (system("Be brief."), user("go"), calls("c1", "c2"), result("c1"), result("c2"), assistant("ok"))
    lines = written(codex, replace(read(codex, []), messages=messages))
    assert codex.recognises(lines)
    assert said(read(codex, lines).messages) == said(messages)
