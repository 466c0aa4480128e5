"""What repair does to a broken history, case by case."""

import json
from dataclasses import dataclass, replace

import pytest

from everlong.core import (
    Action,
    CallId,
    History,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    message_ref,
)
from everlong.errors import InputError
from everlong.wire import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from everlong.wire.formats import FORMATS, problems
from everlong.wire.repair import repair_history, valid
from everlong.wire.repair.blanks import NO_OUTPUT
from everlong.wire.repair.pairs import NO_RESULT
from everlong.wire.repair.turns import CONTINUED
from tests.core.build import assistant, calls, result, system, user

PNG = Image(data="aGk=", media_type="image/png")


def missing(call: str, name: str = "read_file") -> Message:
    return result(call, NO_RESULT, name=name, failed=True)


def said(role: Role, *parts: Part, origin: str = "") -> Message:
    return Message(role, parts, origin=origin)


@dataclass(frozen=True)
class Case:
    id: str
    history: History
    repaired: History
    reasons: tuple[tuple[int, str], ...]
    fmt: str = "openai-chat"
    own: bool = False


CONTINUED_BY_USER = user(CONTINUED)

CASES = [
    Case("an empty history", (), (CONTINUED_BY_USER,), ((0, "first message must be from the user"),)),
    Case(
        "nobody but the system",
        (system("s"),),
        (system("s"), CONTINUED_BY_USER),
        ((0, "first message must be from the user"),),
    ),
    Case(
        "the assistant first",
        (system("s"), assistant("a"), user("u")),
        (system("s"), CONTINUED_BY_USER, assistant("a"), user("u")),
        ((1, "first message must be from the user"),),
    ),
    Case(
        "a call without a result",
        (user("u"), calls("a"), user("v")),
        (user("u"), calls("a"), missing("a"), user("v")),
        ((1, "call a had no result"),),
    ),
    Case(
        "parallel calls, one answered",
        (user("u"), calls("a", "b"), result("b")),
        (user("u"), calls("a", "b"), result("b"), missing("a")),
        ((1, "call a had no result"),),
    ),
    Case(
        "a result without a call",
        (result("a"), user("u"), assistant("x")),
        (user("u"), assistant("x")),
        ((0, "result a answers no call"),),
    ),
    Case(
        "a result before its call",
        (user("u"), result("a"), calls("a")),
        (user("u"), calls("a"), missing("a")),
        ((1, "result a answers no call"), (2, "call a had no result")),
    ),
    Case(
        "a second result: the first stays",
        (user("u"), calls("a"), result("a", "one"), result("a", "two")),
        (user("u"), calls("a"), result("a", "one")),
        ((3, "call a already has a result"),),
    ),
    Case(
        "a result that comes after the note that it is missing",
        (user("u"), calls("a"), missing("a"), user("v"), result("a", "late")),
        (user("u"), calls("a"), result("a", "late"), user("v")),
        ((2, "call a now has a result"), (4, "results now follow their calls directly")),
    ),
    Case(
        "words between call and result",
        (user("u"), calls("a"), user("wait"), system("s"), result("a"), assistant("x")),
        (user("u"), calls("a"), result("a"), user("wait"), system("s"), assistant("x")),
        ((4, "results now follow their calls directly"),),
    ),
    Case(
        "each result goes to its own call",
        (user("u"), calls("a"), calls("b"), said(Role.TOOL, *result("b").parts, *result("a").parts)),
        (user("u"), calls("a"), result("a"), calls("b"), result("b")),
        ((3, "results now follow their calls directly"),),
    ),
    Case(
        "an id twice in one message",
        (user("u"), calls("0", "0"), result("0", "one"), result("0", "two")),
        (user("u"), calls("0", "0_2"), result("0", "one"), result("0_2", "two")),
        ((1, "call id '0' is sent as '0_2'"), (3, "result '0' now has the id and the name of its call")),
    ),
    Case(
        "what the user said beside a result that goes",
        (user("u"), said(Role.TOOL, *result("a").parts, Text("and this"))),
        (user("u"), user("and this")),
        ((1, "result a answers no call"), (1, "user text next to results now follows all of them")),
    ),
    Case(
        "words beside a result that is not the last",
        (user("u"), calls("a", "b"), said(Role.TOOL, *result("a").parts, Text("and this"))),
        (user("u"), calls("a", "b"), result("a"), missing("b"), user("and this")),
        ((1, "call b had no result"), (2, "user text next to results now follows all of them")),
    ),
    Case(
        "empty messages",
        (user("u"), assistant(""), user(" \n"), said(Role.ASSISTANT), user("v")),
        (user("u"), user("v")),
        (
            (1, "the assistant message is empty"),
            (2, "the user message is empty"),
            (3, "the assistant message is empty"),
        ),
        own=True,
    ),
    Case(
        "an empty result",
        (user("u"), calls("a"), said(Role.TOOL, ToolResult(CallId("a"), (Text(" "),)))),
        (user("u"), calls("a"), result("a", NO_OUTPUT)),
        ((2, "a result is empty"),),
    ),
    Case(
        "arguments that were cut",
        (user("u"), calls("a", arguments='{"path": "a.py", "text": "de'), result("a")),
        (user("u"), calls("a", arguments='{"path":"a.py","text":"de"}'), result("a")),
        ((1, "arguments of call a could not be read"),),
    ),
    Case(
        "half a surrogate pair",
        (user("a\ud83db"),),
        (user("a\ufffdb"),),
        ((0, "half a surrogate pair cannot be sent; replaced by U+FFFD"),),
    ),
    Case(
        "a call without a name",
        (user("u"), calls("a", name=" "), result("a")),
        (user("u"), calls("a", name="tool"), result("a")),
        ((1, "the name of a tool was not acceptable"),),
    ),
    Case(
        "results in the user's message, a call in the system's",
        (system("s"), user("u"), calls("a"), said(Role.USER, Text("v"), *result("a").parts)),
        (system("s"), user("u"), calls("a"), said(Role.TOOL, *result("a").parts, Text("v"))),
        ((3, "parts were in a place where they cannot be sent"),),
    ),
    Case(
        "a result in the assistant's message",
        (user("u"), said(Role.ASSISTANT, *calls("a").parts, *result("a").parts)),
        (user("u"), calls("a"), result("a")),
        ((1, "parts were in a place where they cannot be sent"),),
    ),
    Case(
        "ids that come again",
        (user("u"), calls("0"), result("0"), calls("0"), result("0")),
        (user("u"), calls("0"), result("0"), calls("0_2"), result("0_2")),
        ((3, "call id '0' is sent as '0_2'"), (4, "result '0' now has the id and the name of its call")),
        fmt="openai-responses",
    ),
    Case(
        "white space at the very end",
        (user("u"), assistant("x \n")),
        (user("u"), assistant("x")),
        ((1, "the last assistant message must not end in white space"),),
        fmt="anthropic",
    ),
    Case(
        "a result under another name",
        (user("u"), calls("a"), result("a", name="cat")),
        (user("u"), calls("a"), result("a", name="read_file")),
        ((2, "result 'a' now has the id and the name of its call"),),
        fmt="gemini",
        own=True,
    ),
    Case(
        "a name that Gemini does not take",
        (user("u"), calls("a", name="9 lives"), result("a", name="9 lives")),
        (user("u"), calls("a", name="_9_lives"), result("a", name="_9_lives")),
        ((1, "the name of a tool was not acceptable"), (2, "the name of a tool was not acceptable")),
        fmt="gemini",
        own=True,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_repair(case: Case) -> None:
    origin = case.fmt if case.own else ""
    history, expected = (tuple(replace(m, origin=origin) for m in each) for each in (case.history, case.repaired))
    repaired = repair_history(history, case.fmt)
    assert repaired.messages == expected
    assert tuple((edit.at, edit.reason) for edit in repaired.edits) == tuple(
        (at, reason if "must be from" not in reason else f"the {reason}") for at, reason in case.reasons
    )
    assert valid(case.fmt, repaired.messages)
    assert not valid(case.fmt, history)


def test_an_edit_names_the_message_it_concerns() -> None:
    history = (user("u"), calls("a"), result("a"), result("b"))
    (edit,) = repair_history(history).edits
    assert (edit.at, edit.step, edit.action, edit.before, edit.after) == (3, "repair", Action.REPAIR, 0, 0)
    assert edit.ref == message_ref(history[3])


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_valid_history_comes_back_as_it_is(fmt: str) -> None:
    history = (system("s"), user("u"), calls("a", "b"), result("b"), result("a"), assistant("x"), user("v"))
    assert repair_history(history, fmt).messages == history
    assert repair_history(history, fmt).edits == ()


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(InputError, match="unknown format 'morse'"):
        repair_history((user("u"),), "morse")
    with pytest.raises(InputError, match="unknown format 'morse'"):
        valid("morse", (user("u"),))


# --- what only one format has --------------------------------------------------------------------


def test_ids_and_names_that_anthropic_refuses_change_in_call_and_result_alike() -> None:
    call, name = "functions.bash:0", "mcp.db/query"
    own = tuple(
        replace(message, origin="anthropic")
        for message in (
            user("u"),
            calls(call, name=name),
            result(call, name=name),
            calls(call, name=name),
            result(call),
        )
    )
    sent = repair_history(own, "anthropic").messages
    ids = [made.id for message in sent for made in message.calls]
    assert [answer.call for message in sent for answer in message.results] == ids
    assert len(set(ids)) == 2
    assert {made.name for message in sent for made in message.calls} == {"mcp_db_query"}
    assert repair_history(own[:3], "anthropic").messages == sent[:3], (
        "what is made up does not depend on what comes later"
    )


def test_a_picture_of_the_assistant_becomes_a_note() -> None:
    history = (user("u"), said(Role.ASSISTANT, Text("look"), PNG, origin="anthropic"), user("v"))
    (edit,) = repair_history(history, "anthropic").edits
    assert edit.reason == "images are not allowed in messages from assistant"
    assert repair_history(history, "anthropic").messages[1].text == "look\n[image not shown: image/png]"


def test_system_text_of_anthropic_in_the_list_stays_only_behind_the_user() -> None:
    raw = [
        {"role": "system", "content": "first"},
        {"role": "user", "content": "u"},
        {"role": "system", "content": "after the user"},
        {"role": "assistant", "content": "x"},
        {"role": "system", "content": "after the assistant"},
        {"role": "user", "content": "v"},
    ]
    history = tuple(ANTHROPIC.read_message(message) for message in raw)
    sent = ANTHROPIC.write_history(repair_history(history, "anthropic").messages)
    assert sent["system"] == "first"
    assert isinstance(sent["messages"], list)
    assert [message["role"] for message in sent["messages"] if isinstance(message, dict)] == [
        "user",
        "system",
        "assistant",
        "user",
        "user",
    ]


ODD_CHAT = {
    "an empty list of calls": {"role": "assistant", "content": "x", "tool_calls": []},
    "calls of the user": {"role": "user", "content": "x", "tool_calls": [{"id": "a"}]},
    "an entry that is no call": {"role": "assistant", "content": "x", "tool_calls": [{"id": "a", "type": "?"}]},
    "content that is a bare block": {"role": "user", "content": {"type": "text", "text": "x"}},
    "a bare word among blocks": {"role": "user", "content": ["x"]},
    "no blocks": {"role": "assistant", "content": [], "tool_calls": [{"id": "a", "function": {"name": "f"}}]},
    "a number for content": {"role": "user", "content": 5},
    "a name with a space": {"role": "user", "content": "x", "name": "A B"},
    "a number for a name": {"role": "user", "content": "x", "name": 5},
    "a function of before, unanswered": {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    },
    "arguments as an object": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}],
    },
    "no arguments": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f"}}],
    },
    "an id that is a number": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": 5, "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
}


@pytest.mark.parametrize("odd", ODD_CHAT.values(), ids=ODD_CHAT)
def test_odd_shapes_of_openai_chat_are_written_in_the_usual_way(odd: dict[str, object]) -> None:
    parsed = OPENAI_CHAT.read_message(json.loads(json.dumps(odd)))
    kept = OPENAI_CHAT.read_message({"role": "user", "content": "hi", "cache_control": {"type": "ephemeral"}})
    repaired = repair_history((kept, parsed)).messages
    assert problems("openai-chat", OPENAI_CHAT.write_history(repaired)) == []
    assert repaired[0] == kept, "nothing else is touched"


def test_empty_content_beside_calls_stays_as_it_came() -> None:
    raw = {"role": "assistant", "content": "", "tool_calls": [_call("a")]}
    history = (user("u"), OPENAI_CHAT.read_message(raw), user("v"))
    sent = OPENAI_CHAT.write_history(repair_history(history).messages)["messages"]
    assert isinstance(sent, list)
    assert sent[1] == raw


def _call(call: str) -> dict[str, object]:
    return {"id": call, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_an_item_of_responses_is_not_sent_twice() -> None:
    items = [
        {"role": "user", "content": "u"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "y"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    ]
    history = OPENAI_RESPONSES.read_messages([*items, *items])
    repaired = repair_history(history, "openai-responses").messages
    sent = OPENAI_RESPONSES.write_history(repaired)
    assert problems("openai-responses", sent) == []
    assert OPENAI_RESPONSES.write_history(repaired[:3])["input"] == items[:4]
    assert json.dumps(sent).count('"y"') == 2, "what was said is said again"


def test_the_last_resort_says_it_plainly() -> None:
    blob = Opaque("hologram", f'{{"hologram":{"[" * 200}{"]" * 200}}}')
    repaired = repair_history((said(Role.USER, Text("u"), blob, origin="gemini"),), "gemini")
    assert repaired.messages == (user("u"),)
    assert [edit.reason for edit in repaired.edits] == ["sent without fields that only its own format has"]


def test_thinking_that_cannot_be_written_goes_whole() -> None:
    signed = Reasoning("half \ud83d", signature="EqQB")
    history = (user("u"), said(Role.ASSISTANT, signed, Text("x"), origin="anthropic"), user("v"))
    assert repair_history(history, "anthropic").messages[1].parts == (Text("x"),)


def test_a_call_object_keeps_its_other_fields() -> None:
    call = ToolCall(CallId("a"), "f", "{'x': 1}", '{"index":0}')
    history = (user("u"), said(Role.ASSISTANT, call, origin="openai-chat"), result("a"))
    (mended_call,) = repair_history(history).messages[1].calls
    assert mended_call == replace(call, arguments='{"x":1}')
