"""Files of agents' work: OpenCode, Gemini CLI, SWE-agent, Copilot CLI, OpenHands."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Json, JsonObject, Message, Reasoning, Role, Text
from everlong.errors import InputError
from everlong.wire import marks_of, read, read_all, write
from everlong.wire.documents import document_of, value_of
from tests.cli.running import everlong
from tests.wire.sessions.agent_samples import (
    COPILOT,
    GEMINI_CLI,
    OPENCODE,
    OPENHANDS,
    OPENHANDS_OLDER,
    SWE_AGENT,
    SWE_AGENT_CALLS,
    SWE_AGENT_STEPS,
)
from tests.wire.sessions.reading import outline, said
from tests.wire.sessions.spoiling import spoiled

WITH_CALLS = [
    "system: You fix code.",
    "user: How many boats?",
    "assistant: Let me look. c1 c2",
    "tool: c1",
    "tool: c2",
    "assistant: Seven.",
]
OUTLINES: dict[str, tuple[Json, str, list[str]]] = {
    "OpenCode": (
        OPENCODE,
        "opencode",
        ["user: How many boats?", "assistant: Let me look. c1 part-error", "tool: c1 part-error", "assistant: Seven."],
    ),
    "Gemini CLI": (
        GEMINI_CLI,
        "gemini-cli",
        ["user: How many", "assistant: Let me look. c1", "tool: c1", "assistant: Seven."],
    ),
    "SWE-agent": (
        SWE_AGENT,
        "swe-agent",
        [
            "system: You fix code.",
            "user: How many boats?",
            "assistant: I look.",
            "user: boats = 7",
            "assistant: Seven.",
        ],
    ),
    "SWE-agent, steps alone": (
        SWE_AGENT_STEPS,
        "swe-agent",
        ["assistant: I look.", "user: boats = 7", "assistant: Seven."],
    ),
    "SWE-agent with calls": (
        SWE_AGENT_CALLS,
        "swe-agent",
        ["system: You fix code.", "user: How many boats?", "assistant: I look. c1", "tool: c1", "assistant: Seven."],
    ),
    "Copilot CLI": (COPILOT, "copilot", WITH_CALLS),
    "OpenHands": (OPENHANDS, "openhands", WITH_CALLS),
    "OpenHands, older": (
        OPENHANDS_OLDER,
        "openhands",
        [
            "system: You fix code.",
            "user: How many boats?",
            "assistant: Let me look. event-3",
            "tool: event-3",
            "assistant: c2",
            "tool: c2",
            "assistant: Seven.",
        ],
    ),
}
CASES = pytest.mark.parametrize(("raw", "fmt", "told"), OUTLINES.values(), ids=OUTLINES)


@CASES
def test_the_conversation_is_read_and_an_untouched_file_is_written_as_it_was(
    raw: Json, fmt: str, told: list[str]
) -> None:
    document = document_of(raw)
    assert (document.fmt, outline(document.messages)) == (fmt, told)
    assert not document.warnings
    assert value_of(document) == raw


@CASES
def test_a_changed_conversation_is_written_in_its_format(raw: Json, fmt: str, told: list[str]) -> None:
    document = document_of(raw)
    more = Message(Role.USER, (Text("And tomorrow?"),))
    changed = replace(document, messages=(*document.messages, more))
    again = read(write(changed))
    assert again.fmt == fmt
    assert said(again.messages) == said(changed.messages)
    assert outline(again.messages) == [*told, "user: And tomorrow?"]


@CASES
def test_the_command_opens_it(raw: Json, fmt: str, told: list[str], tmp_path: Path) -> None:
    path = tmp_path / "work.traj"
    path.write_text(json.dumps(raw))
    ran = everlong("inspect", str(path), "--json")
    assert ran.code == 0, ran.err
    shown = json.loads(ran.out)
    assert (shown["format"], len(shown["messages"])) == (fmt, len(told))


def test_what_OpenCode_says_of_a_session() -> None:
    document = document_of(OPENCODE)
    marks = marks_of(document)
    assert (marks.session_id(document), marks.title(document), document.model) == ("ses_1", "Boats", "model-x")
    asked, answered, results, _ = document.messages
    assert asked.text == "How many boats?\n[file: a.py]"
    assert [part.text for part in answered.parts if isinstance(part, Reasoning)] == ["I should look."]
    assert [(result.text, result.failed) for result in results.results] == [
        ("boats = 7", False),
        ("no such file", True),
    ]


def test_a_call_of_OpenCode_that_never_ended_has_no_result() -> None:
    call: JsonObject = {"type": "tool", "callID": "c9", "tool": "run", "state": {"status": "running", "input": {}}}
    row: JsonObject = {"info": {"id": "m", "role": "assistant"}, "parts": [call]}
    assert outline(document_of({"info": {}, "messages": [row]}).messages) == ["assistant: c9"]


def test_what_Gemini_CLI_says_of_a_session() -> None:
    document = document_of(GEMINI_CLI)
    marks = marks_of(document)
    assert (marks.session_id(document), document.model) == ("g-1", "model-x")
    assert document.messages[0].text == "How many\nboats?"
    assert [part.text for part in document.messages[1].parts if isinstance(part, Reasoning)] == [
        "Looking\nI should look."
    ]
    assert document.messages[2].results[0].text == "boats = 7"


def test_what_Copilot_CLI_says_of_a_session() -> None:
    document = document_of(COPILOT)
    assert (marks_of(document).session_id(document), document.model) == ("co-1", "model-x")
    assert [(result.text, result.failed) for message in document.messages for result in message.results] == [
        ("boats = 7", False),
        ("no such file", True),
    ]


def test_a_call_of_OpenHands_is_the_one_that_the_model_made_where_the_event_kept_it() -> None:
    calls = [call for message in document_of(OPENHANDS_OLDER).messages for call in message.calls]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("run", {"command": "cat a.py"}),
        ("str_replace_editor", {"old_str": "7"}),
    ]


@pytest.mark.parametrize("events", [COPILOT, OPENHANDS, OPENHANDS_OLDER], ids=["Copilot", "OpenHands", "older"])
def test_events_may_stand_a_line_each(events: list[Json]) -> None:
    data = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    document = read(data)
    assert document.messages == document_of(events).messages
    assert [json.loads(line) for line in write(document).splitlines()] == events


@st.composite
def spoiled_files(draw: st.DrawFn) -> bytes:
    raw, _, _ = draw(st.sampled_from(list(OUTLINES.values())))
    return json.dumps(spoiled(raw, draw)).encode()


@given(spoiled_files())
@settings(max_examples=150, deadline=None)
def test_whatever_is_in_a_file_it_is_read_or_refused_in_one_line(data: bytes) -> None:
    told, documents = "", ()
    try:
        documents = read_all(data)
    except InputError as error:
        told = str(error)
    assert "\n" not in told
    for document in documents:
        with suppress(InputError):
            assert read(write(document)).messages == document.messages
