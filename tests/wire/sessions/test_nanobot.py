"""nanobot sessions: both layouts, the summary in the metadata, file names, and writing."""

from dataclasses import replace

import pytest

from everlong.core import JsonObject, Text
from everlong.wire.sessions.agents import nanobot
from tests.core.build import assistant, calls, result, system, user
from tests.wire.sessions.reading import outline, read, said, written
from tests.wire.sessions.samples import NANOBOT, NANOBOT_NEWER

TURN = ["user: look at this", "assistant: n1", "tool: n1", "assistant: a cat"]


def test_conversation() -> None:
    found = read(nanobot, NANOBOT)
    assert outline(found.messages) == TURN
    assert found.boundaries == ()
    assert found.messages[0].time is not None
    assert found.messages[0].time.isoformat() == "2026-03-01T09:00:00.123456"


def test_what_was_consolidated_stands_before_its_summary() -> None:
    found = read(nanobot, NANOBOT_NEWER)
    assert outline(found.messages) == [*TURN, "user: ## Conversation Summary", "user: and a dog?"]
    assert found.boundaries == (4,)
    assert found.model == "gpt-x"


def test_files_sent_along_are_named() -> None:
    assert read(nanobot, NANOBOT).messages[0].text == "look at this\n[image: media/cat.png]"
    only: JsonObject = {"role": "user", "content": "", "media": ["media/cat.png"]}
    found = read(nanobot, [NANOBOT[0], only])
    assert found.messages[0].text.strip() == "[image: media/cat.png]"
    assert written(nanobot, found)[1] == only


@pytest.mark.parametrize("offset", [-1, 99, None, "3", True], ids=str)
def test_an_offset_that_cannot_be_hides_nothing(offset: object) -> None:
    lines = [{**NANOBOT[0], "last_consolidated": offset}, *NANOBOT[1:]]
    found = read(nanobot, lines)
    assert outline(found.messages) == TURN
    assert found.boundaries == ()


def test_a_boundary_without_a_summary() -> None:
    lines = [{**NANOBOT[0], "last_consolidated": 3}, *NANOBOT[1:]]
    assert read(nanobot, lines).boundaries == (3,)


def test_a_changed_conversation_keeps_its_summary_in_the_metadata() -> None:
    found = read(nanobot, NANOBOT_NEWER)
    lines = written(nanobot, replace(found, messages=found.messages[3:]))
    assert lines[0] == {**NANOBOT_NEWER[0], "last_consolidated": 1}
    assert [line.get("content") for line in lines[1:]] == ["a cat", "and a dog?"]
    again = read(nanobot, lines)
    assert said(again.messages) == said(found.messages[3:])
    assert again.boundaries == (1,)


def test_a_summary_that_went_is_not_in_the_metadata() -> None:
    found = read(nanobot, [{**NANOBOT_NEWER[0], "summary": "old"}, *NANOBOT_NEWER[1:]])
    lines = written(nanobot, replace(found, messages=(*found.messages[:4], found.messages[5])))
    assert lines[0]["metadata"] == {}
    assert "summary" not in lines[0]
    assert lines[0]["last_consolidated"] == 0


def test_changed_words_keep_the_fields_of_their_line() -> None:
    found = read(nanobot, NANOBOT)
    first = found.messages[0].with_parts((Text("look"), *found.messages[0].parts[1:]))
    assert written(nanobot, replace(found, messages=(first, *found.messages[1:])))[1] == {
        **NANOBOT[1],
        "content": "look",
    }


def test_a_conversation_from_elsewhere_becomes_a_session() -> None:
    messages = (system("Be brief."), user("go"), calls("c1", "c2"), result("c1"), result("c2"), assistant("ok"))
    lines = written(nanobot, replace(read(nanobot, []), messages=messages))
    assert nanobot.recognises(lines)
    assert said(read(nanobot, lines).messages) == said(messages[1:])


NAMES = {
    "cli:direct": ("Y2xpOmRpcmVjdA.jsonl", "cli_direct.jsonl"),
    "telegram:12/34": ("dGVsZWdyYW06MTIvMzQ.jsonl", "telegram_12_34.jsonl"),
    "微信:张三": ("5b6u5L-hOuW8oOS4iQ.jsonl", "微信_张三.jsonl"),
}


@pytest.mark.parametrize(("key", "names"), NAMES.items(), ids=NAMES)
def test_the_file_of_a_session(key: str, names: tuple[str, str]) -> None:
    assert (nanobot.file_name(key), nanobot.legacy_file_name(key)) == names
    assert nanobot.session_key(names[0]) == key


def test_the_likeliest_key_of_an_old_name() -> None:
    assert nanobot.session_key("cli_direct.jsonl") == "cli:direct"
    assert nanobot.session_key("微信_张三.jsonl") == "微信:张三"
