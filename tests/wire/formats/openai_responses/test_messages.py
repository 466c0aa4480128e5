"""OpenAI Responses: items become messages and the same items again; other formats as far as items can say them."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import (
    CallId,
    Image,
    Json,
    JsonObject,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    decode,
    encode,
    pairs_of,
)
from everlong.errors import WireError
from everlong.wire import OPENAI_CHAT
from everlong.wire.document import Document
from everlong.wire.formats.openai_responses.messages import (
    NAME,
    read_body,
    read_items,
    write_body,
    write_history,
    write_message,
)


def exact(value: Json) -> str:
    """JSON text in one key order: unlike ==, it tells 1 from 1.0 and from true."""
    return json.dumps(value, sort_keys=True)


def items_of(messages: tuple[Message, ...]) -> list[Json]:
    return [item for message in messages for item in write_message(message)]


# --- what was read is written again ---------------------------------------------------------------

ASK: JsonObject = {"role": "user", "content": "read a.txt"}
THINK: JsonObject = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "look"}, {"type": "summary_text", "text": "then tell"}],
    "encrypted_content": "gAAAA",
}
CALL: JsonObject = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "read",
    "arguments": '{"path": "a.txt"}',
    "status": "completed",
}
RESULT: JsonObject = {"type": "function_call_output", "call_id": "call_1", "output": "hello"}
ANSWER: JsonObject = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "It says hello.", "annotations": [], "logprobs": []}],
}
SEARCH: JsonObject = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
SCREENSHOT: JsonObject = {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="}

ITEMS: dict[str, JsonObject] = {
    "user string": ASK,
    "user blocks": {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "high"},
            {"type": "input_image", "file_id": "file-1", "image_url": None},
            {"type": "input_file", "file_id": "file-2"},
            {"type": "input_image"},
            "odd",
        ],
    },
    "developer": {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be brief"}]},
    "null type": {"type": None, "role": "system", "content": "x"},
    "no content": {"role": "user"},
    "answer": ANSWER,
    "answer as a string": {"role": "assistant", "content": "hi"},
    "answer in two blocks": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "no"}],
    },
    "answer with an unknown block": {
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a"}, {"type": "output_audio", "data": "aGk="}],
    },
    "answer without words": {"type": "message", "role": "assistant", "content": []},
    "call": CALL,
    "call, least": {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""},
    "call, odd": {"type": "function_call", "arguments": {"a": 1.0}, "name": None},
    "result": RESULT,
    "result in blocks": {
        "type": "function_call_output",
        "call_id": "c",
        "output": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "https://example.org/a"}],
        "id": "fco_1",
    },
    "result, odd": {"type": "function_call_output", "call_id": None, "output": {"content": "x"}},
    "custom tool": {
        "type": "custom_tool_call",
        "call_id": "c",
        "name": "patch",
        "input": '*** "Begin"\n',
        "id": "ctc_1",
    },
    "custom result": {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
    "shell": {
        "type": "local_shell_call",
        "id": "l",
        "call_id": "c",
        "action": {"command": ["ls"]},
        "name": "local_shell",
    },
    "shell result by id": {"type": "local_shell_call_output", "id": "c", "output": "{}"},
    "new shell result": {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a", "stderr": ""}]},
    "patch result": {"type": "apply_patch_call_output", "call_id": "c", "status": "failed"},
    "computer": {"type": "computer_call", "id": "cu_1", "call_id": "c", "action": {"type": "click", "x": 1}},
    "computer result": {"type": "computer_call_output", "call_id": "c", "output": SCREENSHOT},
    "reasoning": THINK,
    "reasoning, one summary": {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "a"}]},
    "reasoning, plain": {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}, 5],
        "encrypted_content": None,
    },
    "reasoning, odd": {"type": "reasoning", "id": 4, "content": None, "summary": None},
    "web search": SEARCH,
    "reference": {"type": "item_reference", "id": "msg_9"},
    "bare reference": {"id": "msg_9"},
    "compaction": {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"},
    "mcp": {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True},
    "future": {"type": "telepathy", "role": "user", "thought": "\ud83d"},
}


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS.keys())
def test_an_untouched_item_comes_back(item: JsonObject) -> None:
    before = exact(item)
    messages = read_items([item])
    assert exact(items_of(messages)) == f"[{before}]"
    assert exact(item) == before
    assert all(decode(encode(message)) == message for message in messages)


LEAVES: list[Json] = [None, True, 0, 1.5, "", "x", "词", "\ud83d", [], {}, {"a": [1, {"b": None}]}]
odd = st.sampled_from(LEAVES)
names = st.sampled_from(["", "a", "b"])
words = st.sampled_from(["", "a", "two\nlines", "长文", '{"input":"x"}'])
unknown = st.dictionaries(st.sampled_from(["x", "phase"]), odd, max_size=1)


def objects(kind: st.SearchStrategy[Json], **known: st.SearchStrategy[Json]) -> st.SearchStrategy[JsonObject]:
    """Objects of a kind with any of the known fields and some unknown ones."""
    made = st.fixed_dictionaries({"type": kind}, optional=known)
    return st.builds(lambda fields, more: {**more, **fields}, made, unknown)


block_kinds = st.sampled_from(["input_text", "output_text", "refusal", "input_image", "computer_screenshot", "file"])
blocks = odd | objects(
    block_kinds | odd, text=words | odd, refusal=words | odd, image_url=words | odd, file_id=words | odd, detail=names
)
contents = words | odd | blocks | st.lists(blocks, max_size=3)
call_kinds = [
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "computer_call",
    "apply_patch_call",
]
calls = objects(
    st.sampled_from(call_kinds),
    id=names | odd,
    call_id=names | odd,
    name=names | odd,
    arguments=words | odd,
    input=words | odd,
    action=odd,
    operation=odd,
)
results = objects(
    st.sampled_from([f"{kind}_output" for kind in call_kinds]), id=names, call_id=names | odd, output=contents
)
thoughts = objects(
    st.just("reasoning"),
    id=names | odd,
    summary=st.lists(blocks, max_size=2) | odd,
    content=st.lists(blocks, max_size=1) | odd,
    encrypted_content=names | odd,
)
spoken = st.builds(
    lambda role, fields: {**fields, "role": role},
    st.sampled_from(["user", "assistant", "assistant", "system", "developer"]),
    objects(st.sampled_from(["message", None]), content=contents, id=names | odd, status=odd),
)
typeless = spoken.map(lambda item: {key: value for key, value in item.items() if key != "type"})
others = objects(st.sampled_from(["web_search_call", "item_reference", "compaction", ""]), id=names | odd)
any_items = st.lists(calls | results | thoughts | spoken | typeless | others, max_size=6)


@settings(max_examples=400, deadline=None)
@given(any_items)
def test_reading_and_writing_are_inverse_for_any_items(items: list[Json]) -> None:
    messages = read_items(items)
    assert exact(items_of(messages)) == exact(items)
    assert all(decode(encode(message)) == message for message in messages)


@settings(max_examples=150, deadline=None)
@given(any_items | odd.filter(lambda value: not isinstance(value, dict | bool | int | float)), unknown, odd, odd)
def test_reading_and_writing_are_inverse_for_any_body(given_input: Json, more: JsonObject, a: Json, b: Json) -> None:
    body: JsonObject = {**more, "input": given_input, "instructions": a, "tools": b, "model": a, "store": False}
    assert exact(write_body(read_body(body))) == exact(body)
    del body["input"]
    assert exact(write_body(read_body(body))) == exact(body)


@settings(max_examples=150, deadline=None)
@given(any_items, st.integers(0, 2**12))
def test_a_history_that_lost_parts_says_just_the_others(items: list[Json], kept: int) -> None:
    fewer = [
        message.with_parts(tuple(part for at, part in enumerate(message.parts) if kept >> at & 1))
        for message in read_items(items)
    ]
    again = read_items(items_of(tuple(fewer)))
    assert [call.id for message in again for call in message.calls] == [c.id for m in fewer for c in m.calls]
    assert "".join(message.text for message in again) == "".join(message.text for message in fewer)


# --- what it means --------------------------------------------------------------------------------


def kinds(message: Message) -> list[str]:
    return [type(part).__name__ for part in message.parts]


def test_what_the_assistant_does_in_a_row_is_one_message() -> None:
    second = {**CALL, "id": "fc_2", "call_id": "call_2"}
    history = read_items([ASK, THINK, ANSWER, CALL, second, RESULT, {**RESULT, "call_id": "call_2"}, SEARCH, ANSWER])
    assert [message.role for message in history] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.ASSISTANT]
    assert kinds(history[1]) == ["Reasoning", "Text", "ToolCall", "ToolCall"]
    assert kinds(history[4]) == ["Opaque", "Text"]
    assert len(pairs_of(history)) == 2


def test_a_compaction_stands_alone() -> None:
    history = read_items([ASK, ITEMS["compaction"], THINK, ANSWER])
    assert [kinds(message) for message in history] == [["Text"], ["Opaque"], ["Reasoning", "Text"]]


@pytest.mark.parametrize(
    ("call", "result", "arguments", "answer"),
    [
        ("call", "result", {"path": "a.txt"}, (Text("hello"),)),
        ("custom tool", "custom result", {"input": '*** "Begin"\n'}, (Text("ok"),)),
        ("shell", "shell result by id", {"command": ["ls"]}, (Text("{}"),)),
        ("computer", "computer result", {"type": "click", "x": 1}, None),
    ],
)
def test_every_kind_of_call_pairs_with_its_result(
    call: str, result: str, arguments: Json, answer: tuple[Part, ...] | None
) -> None:
    history = read_items([ITEMS[call], ITEMS[result]])
    assert len(pairs_of(history)) == 1
    assert json.loads(history[0].calls[0].arguments) == arguments
    content = history[1].results[0].content
    assert content == answer if answer else isinstance(content[0], Image)


def test_reasoning_holds_its_words_and_its_seal() -> None:
    sealed, stored, plain = (
        read_items([ITEMS[name]])[0].parts[0] for name in ("reasoning", "reasoning, one summary", "reasoning, plain")
    )
    assert isinstance(sealed, Reasoning)
    assert (sealed.text, sealed.signature) == ("look\n\nthen tell", "gAAAA")
    assert isinstance(stored, Reasoning)
    assert (stored.text, stored.signature) == ("a", "r")
    assert isinstance(plain, Reasoning)
    assert (plain.text, plain.signature) == ("hm", "")


def test_changed_reasoning_is_written_as_one_summary() -> None:
    message = read_items([ITEMS["reasoning, plain"]])[0]
    assert isinstance(message.parts[0], Reasoning)
    shorter = message.with_parts((replace(message.parts[0], text="h"),))
    assert write_message(shorter) == [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "h"}], "encrypted_content": None}
    ]


def test_words_put_into_a_message_join_its_item() -> None:
    message = read_items([ANSWER])[0]
    longer = message.with_parts((*message.parts, Text("And more.")))
    (item,) = write_message(longer)
    assert item == {**ANSWER, "content": [*ANSWER["content"], {"type": "output_text", "text": "And more."}]}  # type: ignore[misc]


# --- bodies ---------------------------------------------------------------------------------------

BODY: JsonObject = {
    "model": "gpt-5",
    "instructions": "be brief",
    "input": [ITEMS["developer"], ASK, THINK, CALL, RESULT],
    "tools": [{"type": "function", "name": "read", "parameters": {}}, {"type": "web_search"}],
    "include": ["reasoning.encrypted_content"],
    "previous_response_id": None,
}


def test_a_body_gives_instructions_as_leading_system_text() -> None:
    document = read_body(BODY)
    assert (document.fmt, document.model, len(document.tools)) == (NAME, "gpt-5", 2)
    assert [(message.role, message.text) for message in document.messages[:2]] == [(Role.SYSTEM, "be brief")] * 2
    assert write_body(document) == BODY


def test_input_that_is_a_string_stays_one_while_it_is_alone() -> None:
    body: JsonObject = {"model": "m", "instructions": "be brief", "input": "hi"}
    document = read_body(body)
    assert [message.role for message in document.messages] == [Role.SYSTEM, Role.USER]
    assert write_body(document) == body
    more = replace(document, messages=(*document.messages, Message(Role.ASSISTANT, (Text("yes?"),))))
    assert write_body(more)["input"] == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes?"}]},
    ]


def test_system_text_of_ours_follows_the_instructions_of_the_caller() -> None:
    document = read_body(BODY)
    ours = Message(Role.SYSTEM, (Text("summary"),))
    sent = write_history((document.messages[0], ours, *document.messages[1:]))
    assert sent["instructions"] == "be brief"
    assert isinstance(sent["input"], list)
    assert sent["input"][0] == {
        "type": "message",
        "role": "system",
        "content": [{"type": "input_text", "text": "summary"}],
    }
    assert sent["input"][1:] == BODY["input"]


def test_a_bare_list_keeps_system_text_among_its_items() -> None:
    document = read_body([ITEMS["developer"], ASK])
    assert document.bare
    assert write_body(document) == {"input": [ITEMS["developer"], ASK]}
    ours = Message(Role.SYSTEM, (Text("summary"),))
    first = write_body(replace(document, messages=(ours, *document.messages)))
    assert list(first) == ["input"]
    assert isinstance(first["input"], list)
    assert len(first["input"]) == 3


def test_a_document_of_another_format_gives_model_instructions_and_input_only() -> None:
    document = Document(
        fmt="elsewhere",
        messages=(
            Message(Role.SYSTEM, (Text("be brief"),)),
            Message(Role.SYSTEM, (Text("be kind"),)),
            Message(Role.USER, (Text("hi"),)),
        ),
        model="m",
        tools=('{"name":"read","input_schema":{}}',),
        extra='{"max_tokens":5}',
    )
    assert write_body(document) == {
        "model": "m",
        "instructions": "be brief\n\nbe kind",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
    }


BAD: list[tuple[str, Json, str]] = [
    ("no object", 3, ""),
    ("input no list", {"input": {"role": "user"}}, "input"),
    ("item no object", {"input": [ASK, "hi"]}, "input[1]"),
    ("role unknown", {"input": [ASK, {"role": "tool", "content": "x"}]}, "input[1].role"),
    ("role missing", {"input": [{"type": "message", "content": "x"}]}, "input[0].role"),
    ("type no string", {"input": [{"type": 3, "role": "user"}]}, "input[0].type"),
    ("neither type nor role", {"input": [{"content": "x"}]}, "input[0]"),
]


@pytest.mark.parametrize(("body", "where"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_what_is_no_request_says_where(body: Json, where: str) -> None:
    with pytest.raises(WireError) as caught:
        read_body(body)
    assert (caught.value.fmt, caught.value.where) == (NAME, where)


# --- messages of other formats --------------------------------------------------------------------


def foreign(role: Role, *parts: Part) -> Message:
    return Message(role, parts, name="ann", origin="elsewhere", extra='{"uuid":"1"}')


def said(role: str, *content: JsonObject) -> JsonObject:
    return {"type": "message", "role": role, "content": list(content)}


PNG = Image(data="aGk=", media_type="image/png", detail="low", extra='{"source":1}')
PNG_BLOCK: JsonObject = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"}

FOREIGN: list[tuple[str, Message, list[JsonObject]]] = [
    (
        "user",
        foreign(Role.USER, Text("see", '{"citations":[]}'), PNG),
        [said("user", {"type": "input_text", "text": "see"}, PNG_BLOCK)],
    ),
    ("system in the middle", foreign(Role.SYSTEM, Text("x")), [said("system", {"type": "input_text", "text": "x"})]),
    (
        "assistant",
        foreign(
            Role.ASSISTANT,
            Reasoning("hm", "sig"),
            Reasoning("plain"),
            Text("so"),
            Text("then"),
            ToolCall(CallId("c"), "f", '{"a":'),
            Opaque("server_tool_use", "{}"),
        ),
        [
            said("assistant", {"type": "output_text", "text": "so"}, {"type": "output_text", "text": "then"}),
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":'},
        ],
    ),
    (
        "results, pictures in them, and words beside them",
        foreign(
            Role.TOOL,
            ToolResult(CallId("a"), (Text("1"),), failed=True, extra='{"x":1}'),
            Text("go on"),
            ToolResult(CallId("b"), (PNG,)),
        ),
        [
            {"type": "function_call_output", "call_id": "a", "output": "1"},
            {"type": "function_call_output", "call_id": "b", "output": [PNG_BLOCK]},
            said("user", {"type": "input_text", "text": "go on"}),
        ],
    ),
    (
        "picture by the assistant",
        foreign(Role.ASSISTANT, PNG),
        [said("assistant", {"type": "output_text", "text": "[image not shown: image/png]"})],
    ),
    ("nothing but thinking", foreign(Role.ASSISTANT, Reasoning("hm"), Reasoning("", "sig")), []),
    ("nothing but opaque parts", foreign(Role.USER, Opaque("document", "{}")), []),
    ("nothing but blank text", foreign(Role.ASSISTANT, Text(" ")), []),
]


@pytest.mark.parametrize(("message", "expected"), [row[1:] for row in FOREIGN], ids=[row[0] for row in FOREIGN])
def test_a_message_of_another_format(message: Message, expected: list[JsonObject]) -> None:
    assert write_message(message) == expected


def test_a_result_put_in_answers_its_call_in_the_kind_of_the_call() -> None:
    history = (*read_items([ASK, ITEMS["custom tool"]]), Message(Role.TOOL, (ToolResult(CallId("c"), (Text("?"),)),)))
    sent = write_history(history)["input"]
    assert isinstance(sent, list)
    assert sent[-1] == {"type": "custom_tool_call_output", "call_id": "c", "output": "?"}


@st.composite
def chats(draw: st.DrawFn) -> list[Json]:
    """Questions, each with calls made at once, their results in some order, and an answer."""
    messages: list[Json] = [{"role": "system", "content": "be brief"}] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": f"question {turn}"})
        count = draw(st.integers(0, 3))
        ids = [f"{turn}-{at}" + "x" * draw(st.sampled_from([0, 70])) for at in range(count)]
        if ids:
            made: list[Json] = [
                {"id": call, "type": "function", "function": {"name": "read", "arguments": f'{{"n": "{call}"}}'}}
                for call in ids
            ]
            thought: JsonObject = {"reasoning_content": "hm"} if draw(st.booleans()) else {}
            messages.append({"role": "assistant", "content": None, "tool_calls": made, **thought})
            messages += [
                {"role": "tool", "tool_call_id": call, "content": f"result {call}"}
                for call in draw(st.permutations(ids))
            ]
        messages.append({"role": "assistant", "content": f"answer {turn}"})
    return messages


def story(history: tuple[Message, ...]) -> list[str]:
    """Texts, calls and results in order, each result with the arguments of the call it answers."""
    answered = {pair.result: pair.call for pair in pairs_of(history)}
    told = []
    for at, message in enumerate(history):
        for index, part in enumerate(message.parts):
            if isinstance(part, Text):
                told.append(f"{message.role} says {part.text}")
            elif isinstance(part, ToolCall):
                told.append(f"calls {part.name} {part.arguments}")
            elif isinstance(part, ToolResult):
                call_at, call_index = answered[at, index]
                call = history[call_at].parts[call_index]
                told.append(f"{part.text} answers {call.arguments if isinstance(call, ToolCall) else None}")
    return told


@settings(max_examples=60, deadline=None)
@given(chats())
def test_a_chat_goes_through_responses_and_back_with_the_same_texts_pairs_and_order(messages: list[Json]) -> None:
    chat = OPENAI_CHAT.read_body({"messages": messages}).messages
    items = read_body(write_history(chat)).messages
    assert story(items) == story(chat)
    back = OPENAI_CHAT.read_body(OPENAI_CHAT.write_history(items)).messages
    assert story(back) == story(chat)
