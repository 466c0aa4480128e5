"""Chatbox: runs taken apart and put together, compaction points, threads, exports of many sessions."""

from dataclasses import replace

import pytest

from everlong.core import JsonObject, Text
from everlong.errors import WireError
from everlong.wire.sessions.chats import chatbox
from tests.core.build import assistant, calls, result, system, user
from tests.wire.sessions.reading import outline, said
from tests.wire.sessions.samples import CHATBOX, CHATBOX_RUN, chatbox_text


def session(*messages: JsonObject, **fields: object) -> JsonObject:
    return {"id": "s", "name": "n", "messages": list(messages), **fields}


def test_conversation() -> None:
    found = chatbox.parse_body(CHATBOX)
    assert outline(found.messages) == [
        "system: You are kind.",
        "user: find it",
        "assistant: I search. x1 x2",
        "tool: x1 x2",
        "assistant: Found it.",
        "user: [image: a cat]",
        "assistant: A cat.",
        "assistant: We found it and saw a cat.",
        "user: and now?",
    ]
    assert found.boundaries == (7,)
    assert found.model == "gpt-x"
    assert found.messages[1].text == "find it\n[file: list.pdf]"
    assert [(answer.text, answer.failed) for answer in found.messages[3].results] == [
        ('{"n":2}', False),
        ("down", True),
    ]


def test_an_untouched_session_is_written_as_it_was() -> None:
    assert chatbox.render_body(chatbox.parse_body(CHATBOX)) == CHATBOX


def test_pieces_of_a_run_are_put_together_again() -> None:
    found = chatbox.parse_body(CHATBOX)
    changed = chatbox.render_body(replace(found, messages=found.messages[1:]))
    kept = [part for part in CHATBOX_RUN["contentParts"] if part["type"] != "info"]
    assert changed["messages"][1] == {**CHATBOX_RUN, "contentParts": kept}
    assert changed["compactionPoints"] == CHATBOX["compactionPoints"]
    assert changed["threads"] == CHATBOX["threads"]
    again = chatbox.parse_body(changed)
    assert said(again.messages) == said(found.messages[1:])
    assert again.boundaries == (6,)


def test_a_shortened_result_is_written_as_words() -> None:
    found = chatbox.parse_body(session(CHATBOX_RUN))
    first, second = found.messages[1].results
    shorter = found.messages[1].with_parts((replace(first, content=(Text('{"n":…'),)), second))
    changed = chatbox.render_body(replace(found, messages=(found.messages[0], shorter, found.messages[2])))
    assert changed["messages"][0]["contentParts"][2]["result"] == '{"n":…'


def test_the_boundary_moves_with_what_stands_before_its_summary() -> None:
    found = chatbox.parse_body(CHATBOX)
    changed = chatbox.render_body(replace(found, messages=(*found.messages[:6], *found.messages[7:])))
    assert changed["compactionPoints"] == [{"summaryMessageId": "m6", "boundaryMessageId": "m3", "createdAt": 5}]
    nothing_before = chatbox.render_body(replace(found, messages=found.messages[7:]))
    assert nothing_before["compactionPoints"] == []
    assert outline(chatbox.parse_body(nothing_before).messages)[0] == "assistant: We found it and saw a cat."


def test_the_newest_point_is_the_last_boundary() -> None:
    points = [
        {"summaryMessageId": "s2", "boundaryMessageId": "b", "createdAt": 9},
        {"summaryMessageId": "s1", "boundaryMessageId": "a", "createdAt": 3},
    ]
    texts = [chatbox_text(name, "user", name) for name in ("a", "b", "c", "s1", "s2")]
    found = chatbox.parse_body(session(*texts, compactionPoints=points))
    assert [message.text for message in found.messages] == ["a", "s1", "b", "s2", "c"]
    assert found.boundaries == (1, 3)


def test_a_point_without_its_boundary_hides_nothing() -> None:
    points = [{"summaryMessageId": "a", "boundaryMessageId": "gone", "createdAt": 1}]
    found = chatbox.parse_body(session(chatbox_text("a", "user", "hi"), compactionPoints=points))
    assert outline(found.messages) == ["user: hi"]
    assert found.boundaries == ()
    assert "gone" in found.warnings[0]


def test_archived_threads_are_conversations_of_their_own() -> None:
    (thread,) = chatbox.archived_threads(chatbox.parse_body(CHATBOX))
    assert outline(thread.messages) == ["user: earlier"]
    assert thread.model == "gpt-x"


EXPORTS = {
    "one by one, in the order of the list": (
        {
            "chat-sessions-list": [{"id": "b"}, {"id": "a"}, {"id": "lost"}],
            "session:a": session(chatbox_text("1", "user", "in a"), id="a"),
            "session:b": session(chatbox_text("2", "user", "in b"), id="b"),
            "settings": {"theme": 1},
            "__exported_items": ["conversations"],
        },
        ["in b", "in a"],
    ),
    "older: all in one": (
        {
            "chat-sessions": [
                session({"id": "1", "role": "user", "content": "in a"}),
                session(chatbox_text("2", "user", "in b")),
            ]
        },
        ["in a", "in b"],
    ),
    "both, each session once": (
        {
            "chat-sessions": [session(chatbox_text("1", "user", "old a"), id="a")],
            "session:a": session(chatbox_text("1", "user", "new a"), id="a"),
        },
        ["new a"],
    ),
    "a session that is broken": (
        {"session:a": {"id": "a"}, "session:b": session(chatbox_text("2", "user", "in b"))},
        ["in b"],
    ),
    "a single session": (session(chatbox_text("1", "user", "alone")), ["alone"]),
}


@pytest.mark.parametrize(("export", "expected"), EXPORTS.values(), ids=EXPORTS)
def test_one_document_a_session(export: JsonObject, expected: list[str]) -> None:
    assert chatbox.recognises([export])
    assert [found.messages[0].text for found in chatbox.parse_export(export)] == expected


def test_a_broken_session_is_named() -> None:
    export = EXPORTS["a session that is broken"][0]
    assert "session:a" in chatbox.parse_export(export)[0].warnings[0]
    with pytest.raises(WireError, match="list of messages"):
        chatbox.parse_export({"session:a": {"id": "a"}})


def test_an_export_reads_back_the_same() -> None:
    found = chatbox.parse_body(CHATBOX)
    export = chatbox.render_export([found])
    assert export["chat-sessions-list"] == [{"id": "s1", "name": "Searching", "type": "chat", "starred": True}]
    assert chatbox.parse_export(export) == [found]


def test_a_conversation_from_elsewhere_becomes_a_session() -> None:
    messages = (
        system("Be brief."),
        user("go\non"),
        calls("c1", "c2"),
        result("c1"),
        result("c2", failed=True),
        assistant("ok"),
    )
    body = chatbox.render_body(
        replace(chatbox.parse_body(session()), fmt="anthropic", extra="", messages=messages, model="m")
    )
    assert body["name"] == "go"
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "assistant"]
    again = chatbox.parse_body(body)
    assert outline(again.messages) == [
        "system: Be brief.",
        "user: go",
        "assistant: c1 c2",
        "tool: c1 c2",
        "assistant: ok",
    ]
    assert again.model == "m"
