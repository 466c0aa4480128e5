"""pi sessions: the way from the last entry to the root, compactions where they took effect, and writing."""

from dataclasses import replace

import pytest

from everlong.core import Image, JsonObject, Message, Role, Text
from everlong.wire.sessions.agents import pi
from tests.core.build import assistant, calls, result, system, user
from tests.wire.sessions.reading import outline, read, said, written
from tests.wire.sessions.samples import PI_1, PI_2, PI_3, TIME, pi_call, pi_entry, pi_result, pi_said, pi_user

CONVERSATIONS = {
    "version 1: entries in line, a compaction before the first entry it kept": (
        PI_1,
        [
            "user: old question",
            "assistant: old answer",
            "user: ## Conversation Summary",
            "user: new question",
            "assistant: Let me look. c1",
            "tool: c1",
            "assistant: It says hello.",
        ],
        (2,),
    ),
    "version 2: what a hook said": (PI_2, ["user: question", "user: from a hook", "assistant: answer"], ()),
    "version 3: the branch that was left is not in it": (
        PI_3,
        [
            "user: question",
            "user: ## Conversation Summary",
            "assistant: Let me look. c1",
            "tool: c1",
            "user: ## Conversation Summary",
            "user: remember the tests",
            "user: $ make",
            "assistant: It says hello.",
        ],
        (4,),
    ),
}


@pytest.mark.parametrize(("lines", "expected", "boundaries"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_conversation(lines: list[JsonObject], expected: list[str], boundaries: tuple[int, ...]) -> None:
    found = read(pi, lines)
    assert outline(found.messages) == expected
    assert found.boundaries == boundaries
    assert found.warnings == ()


def test_the_model_is_the_one_in_use_last() -> None:
    change: JsonObject = {"type": "model_change", "id": "13", "parentId": "12", "modelId": "model-three"}
    assert [read(pi, lines).model for lines in (PI_1[:2], PI_1, [*PI_3, change])] == [
        "model-zero",
        "model-two",
        "model-three",
    ]


def test_the_whole_message_is_read() -> None:
    call, answer = read(pi, PI_1).messages[4:6]
    thought, _, made = call.parts
    assert (thought.text, thought.signature) == ("I should look.", "sig")
    assert (made.name, made.arguments) == ("read", '{"path":"a.py"}')
    assert answer.results[0].name == "read"
    assert call.time is not None
    assert call.time.isoformat() == "2026-03-01T09:00:00+00:00"


def test_a_command_says_how_it_ended() -> None:
    bodies = [
        {"role": "bashExecution", "command": "make", "output": "oops", "exitCode": 2},
        {"role": "bashExecution", "command": "sleep 9", "output": "", "cancelled": True},
        {"role": "bashExecution", "command": "true", "output": "", "exitCode": 0},
    ]
    told = [message.text for message in read(pi, [PI_1[0], *map(pi_entry, bodies)]).messages]
    assert told == ["$ make\noops\n[exit code 2]", "$ sleep 9\n[cancelled]", "$ true"]


def test_calls_of_a_turn_that_was_given_up_are_not_in_the_conversation() -> None:
    aborted = [pi_user("go"), pi_call("c1", stop="aborted"), pi_user("stop"), pi_said("stopped")]
    assert outline(read(pi, [PI_1[0], *aborted]).messages) == [
        "user: go",
        "assistant: Let me look.",
        "user: stop",
        "assistant: stopped",
    ]


def test_a_call_of_a_finished_turn_that_lacks_its_result_stays() -> None:
    assert outline(read(pi, [PI_1[0], pi_call("c1"), pi_user("well?")]).messages)[0] == "assistant: Let me look. c1"


def test_a_compaction_between_call_and_result_stands_behind_them() -> None:
    point: JsonObject = {"type": "compaction", "timestamp": TIME, "summary": "S", "firstKeptEntryIndex": 2}
    found = read(pi, [PI_1[0], pi_call("c1"), pi_result("c1", "text"), point, pi_said("done")])
    assert outline(found.messages)[1:3] == ["tool: c1", "user: ## Conversation Summary"]
    assert found.boundaries == (2,)


def test_a_second_compaction_never_stands_before_the_first() -> None:
    first: JsonObject = {"type": "compaction", "timestamp": TIME, "summary": "one", "firstKeptEntryIndex": 2}
    second: JsonObject = {"type": "compaction", "timestamp": TIME, "summary": "two", "firstKeptEntryIndex": 1}
    found = read(pi, [PI_1[0], pi_user("a"), pi_user("b"), first, second, pi_user("c")])
    assert [message.text.split()[-1] for message in found.messages] == ["a", "one", "two", "b", "c"]
    assert found.boundaries == (1, 2)


def test_changed_words_go_into_the_old_entry() -> None:
    found = read(pi, PI_3)
    shorter = replace(found.messages[-1], parts=(Text("Hello."),))
    lines = written(pi, replace(found, messages=(*found.messages[:-1], shorter)))
    assert lines[0] == PI_3[0]
    assert lines[-1]["id"] == "10"
    assert lines[-1]["message"] == {**PI_3[11]["message"], "content": [{"type": "text", "text": "Hello."}]}


@pytest.mark.parametrize("lines", [PI_1, PI_2, PI_3], ids=["version 1", "version 2", "version 3"])
@pytest.mark.parametrize("start", [1, 2])
def test_a_shorter_conversation_reads_back_the_same(lines: list[JsonObject], start: int) -> None:
    found = read(pi, lines)
    shorter = replace(found, messages=found.messages[start:])
    again = read(pi, written(pi, shorter))
    assert said(again.messages) == said(shorter.messages)
    assert again.boundaries == tuple(at - start for at in found.boundaries if at >= start)
    assert again.warnings == ()


def test_what_was_only_told_is_written_as_what_it_says_now() -> None:
    found = read(pi, PI_3)
    trimmed = [
        message.with_parts((Text("$ make [trimmed]"),)) if "$ make" in message.text else message
        for message in found.messages
    ]
    again = read(pi, written(pi, replace(found, messages=tuple(trimmed))))
    assert outline(again.messages)[6] == "user: $ make [trimmed]"


def test_a_conversation_from_elsewhere_becomes_a_session() -> None:
    picture = Message(Role.USER, (Text("look"), Image(data="aGk=", media_type="image/png")))
    messages = (
        system("Be brief."),
        picture,
        calls("c1", "c2"),
        result("c1"),
        result("c2", failed=True),
        assistant("ok"),
    )
    lines = written(pi, replace(read(pi, []), messages=messages, model="m"))
    assert lines[0]["version"] == 3
    assert [line.get("parentId") for line in lines[1:]] == [None, *(line["id"] for line in lines[1:-1])]
    assert said(read(pi, lines).messages) == said(messages[1:])
    assert [
        line["message"].get("toolName") for line in lines if line.get("message", {}).get("role") == "toolResult"
    ] == [
        "read_file",
        "read_file",
    ]


def test_the_same_conversation_gives_the_same_file() -> None:
    session = replace(read(pi, []), messages=(user("a"), assistant("b"), user("a")))
    assert written(pi, session) == written(pi, session)
    assert len({line["id"] for line in written(pi, session)}) == 4
