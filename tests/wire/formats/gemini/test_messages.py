"""Gemini generateContent: what came goes back as it came, in its own spelling."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import (
    CallId,
    Image,
    Json,
    JsonObject,
    Opaque,
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
from everlong.wire.fields import pack, unpack
from everlong.wire.formats import GEMINI
from everlong.wire.formats.pairs import written_id
from tests.wire.conversations import objects, same, texts, values


def user(*parts: JsonObject) -> JsonObject:
    return {"role": "user", "parts": list(parts)}


def model(*parts: JsonObject) -> JsonObject:
    return {"role": "model", "parts": list(parts)}


def call(name: str, **fields: Json) -> JsonObject:
    return {"functionCall": {"name": name, **fields}}


def response(name: str, **fields: Json) -> JsonObject:
    return {"functionResponse": {"name": name, **fields}}


CONTENTS: dict[str, JsonObject] = {
    "text": user({"text": "hello"}),
    "no role": {"parts": [{"text": "hello"}]},
    "role null": {"role": None, "parts": [{"text": "hello"}]},
    "one part that is not in a list": {"role": "user", "parts": {"text": "hello"}},
    "no parts": {"role": "model"},
    "parts null": {"role": "model", "parts": None},
    "an empty list of parts": model(),
    "an empty part": model({}),
    "signed text": model({"text": "", "thoughtSignature": "c2ln"}),
    "signed text, snake": model({"text": "a", "thought_signature": "c2ln"}),
    "thought": model({"text": "hm", "thought": True}),
    "signed thought": model({"text": "hm", "thought": True, "thoughtSignature": "c2ln"}),
    "signed thought, snake": model({"text": "hm", "thought": True, "thought_signature": "c2ln"}),
    "thought with an empty signature": model({"text": "hm", "thought": True, "thoughtSignature": ""}),
    "no thought": model({"text": "hm", "thought": False}),
    "call": model(call("read", args={"path": "a"})),
    "call with an id": model(call("read", args={"path": "a"}, id="x1")),
    "call with an empty id": model(call("read", id="")),
    "call with an id null": model(call("read", args=None, id=None)),
    "call without args": model(call("read")),
    "call with args that are not an object": model(call("read", args="x")),
    "signed call": model({**call("read", args={}), "thoughtSignature": "c2ln"}, call("read", args={})),
    "call, snake": model({"function_call": {"name": "read", "args": {}}, "thought_signature": "c2ln"}),
    "call with fields to come": model(call("read", args={}, willContinue=True)),
    "response with one string": user(response("read", response={"result": "ok"})),
    "response with an output": user(response("read", response={"output": "ok"}, id="x1")),
    "response with an error": user(response("read", response={"error": "no"})),
    "response with an error object": user(response("read", response={"error": {"code": 5}})),
    "response with more": user(response("read", response={"output": "ok", "code": 0})),
    "response that looks like JSON": user(response("read", response={"output": '{"a":1}'})),
    "empty response": user(response("read", response={})),
    "no response": user(response("read")),
    "response null": user(response("read", response=None)),
    "response that is not an object": user(response("read", response=["a"])),
    "response, snake": {"role": "function", "parts": [{"function_response": {"name": "read", "response": {"a": 1}}}]},
    "response with pictures": user(
        response(
            "shot",
            response={"output": "see"},
            parts=[{"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "a.png"}}],
        )
    ),
    "response with other parts": user(response("shot", response={"output": "see"}, parts=[{"text": "x"}, {"y": 1}])),
    "response with an empty list of parts": user(response("shot", response={"output": "see"}, parts=[])),
    "response and words": user(response("read", response={"output": "ok"}), {"text": "and now?"}),
    "picture": user({"inlineData": {"mimeType": "image/png", "data": "aGk="}, "mediaResolution": {"level": "LOW"}}),
    "picture, snake": user({"inline_data": {"mime_type": "image/png", "data": "aGk=", "display_name": "a"}}),
    "picture in a file": user({"fileData": {"mimeType": "image/png", "fileUri": "https://example.com/a"}}),
    "picture in a file, snake": user({"file_data": {"mime_type": "image/png", "file_uri": "gs://b/a"}}),
    "sound": user({"inlineData": {"mimeType": "audio/mp3", "data": "aGk="}}),
    "film": user({"fileData": {"fileUri": "https://example.com/v"}, "videoMetadata": {"startOffset": "1s"}}),
    "code": model(
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "c2ln"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    ),
    "every key of a typed client": model(
        {"text": "hi", "thought": None, "function_call": None, "inline_data": None, "thought_signature": None}
    ),
    "fields to come": {**user({"text": "a", "partMetadata": {"k": 1}}), "new": [1]},
}


@pytest.mark.parametrize("raw", CONTENTS.values(), ids=CONTENTS.keys())
def test_an_untouched_content_gives_back_its_json(raw: JsonObject) -> None:
    message = GEMINI.read_message(raw)
    assert [same(out, raw) for out in GEMINI.write_message(message)] == [True]
    assert decode(encode(message)) == message


def test_parts_say_what_was_said() -> None:
    message = GEMINI.read_message(
        model(
            {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
            {"text": "I look"},
            {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
            {**call("read", args={"path": "é"}), "thoughtSignature": "c2ln"},
            {"executableCode": {"code": "1"}, "thoughtSignature": "c2ln"},
        )
    )
    thought, text, image, made, code = message.parts
    assert message.role is Role.ASSISTANT
    assert thought == Reasoning("hm", "c2ln")
    assert text == Text("I look")
    assert image == Image(data="aGk=", media_type="image/png")
    assert message.calls == (made,)
    assert (message.calls[0].name, message.calls[0].arguments) == ("read", '{"path":"é"}')
    assert isinstance(code, Opaque)
    assert code.kind == "executableCode"


@pytest.mark.parametrize("name", ["sound", "film", "an empty part"])
def test_what_is_no_picture_is_carried_along(name: str) -> None:
    assert [type(part) for part in GEMINI.read_message(CONTENTS[name]).parts] == [Opaque]


RESPONSES: dict[str, tuple[Json, str, bool]] = {
    "one string": ({"result": "ok"}, "ok", False),
    "an error": ({"error": "no"}, "no", True),
    "an error with more to it": ({"error": {"code": 5}}, '{"error":{"code":5}}', True),
    "several fields": ({"out": "é", "code": 0}, '{"out":"é","code":0}', False),
    "one field that is no string": ({"rows": [1]}, '{"rows":[1]}', False),
}


@pytest.mark.parametrize(("raw", "text", "failed"), RESPONSES.values(), ids=RESPONSES.keys())
def test_a_response_has_words(raw: Json, text: str, failed: bool) -> None:
    message = GEMINI.read_message(user(response("read", response=raw), {"text": "beside"}))
    assert message.role is Role.TOOL
    assert message.text == "beside"
    assert message.results[0].name == "read"
    assert message.results[0].text == text
    assert message.results[0].failed is failed


BAD: dict[str, tuple[Json, str]] = {
    "a content that is a string": ("hello", "contents[1]"),
    "an unknown role": ({"role": "assistant", "parts": []}, "contents[1]"),
    "parts that are a string": ({"role": "user", "parts": "x"}, "contents[1].parts"),
    "a part that is a string": ({"role": "user", "parts": [{"text": "a"}, "x"]}, "contents[1].parts[1]"),
    "text that is a number": (user({"text": 5}), "contents[1].parts[0]"),
    "a call that is a string": (model({"functionCall": "read"}), "contents[1].parts[0]"),
    "a call without a name": (model({"functionCall": {"args": {}}}), "contents[1].parts[0]"),
    "a response without a name": (user({"functionResponse": {"response": {}}}), "contents[1].parts[0]"),
    "a picture that is a string": (user({"inlineData": "aGk="}), "contents[1].parts[0]"),
    "a nested part that is a string": (user(response("f", parts=["x"])), "contents[1].parts[0].parts[0]"),
}


@pytest.mark.parametrize(("raw", "where"), BAD.values(), ids=BAD.keys())
def test_a_bad_shape_is_named_with_its_place(raw: Json, where: str) -> None:
    with pytest.raises(WireError) as caught:
        GEMINI.read_body({"contents": [user({"text": "a"}), raw]})
    assert caught.value.where == where
    assert caught.value.fmt == "gemini"


BODIES: dict[str, JsonObject] = {
    "only contents": {"contents": [user({"text": "hi"})]},
    "one content that is not in a list": {"contents": {"parts": {"text": "hi"}}},
    "system and tools": {
        "systemInstruction": {"role": "system", "parts": [{"text": "a"}, {"text": "b"}]},
        "contents": [user({"text": "hi"})],
        "tools": [{"functionDeclarations": [{"name": "read"}]}, {"googleSearch": {}}],
        "generationConfig": {"maxOutputTokens": 5},
        "cachedContent": None,
    },
    "system and tools, snake and single": {
        "system_instruction": {"parts": {"text": "a"}},
        "contents": [user({"text": "hi"})],
        "tools": {"function_declarations": []},
        "generation_config": {},
    },
    "system as a string": {"system_instruction": "a", "contents": []},
    "system without words": {"systemInstruction": {"parts": []}, "contents": []},
    "null everything": {"systemInstruction": None, "contents": [], "tools": None, "model": None},
    "empty everything": {"system_instruction": "", "contents": [], "tools": [], "model": ""},
    "a model": {"model": "models/gemini-3-pro", "contents": []},
    "responses in contents of their own": {
        "contents": [
            user({"text": "go"}),
            model(call("f", args={}), call("f", args={})),
            user(response("f", response={"output": "1"})),
            user(response("f", response={"output": "2"})),
        ]
    },
    "an answer with an id to a call without": {
        "contents": [model(call("f")), user(response("f", id="made-up", response={"output": "1"}))]
    },
}


@pytest.mark.parametrize("raw", BODIES.values(), ids=BODIES.keys())
def test_an_untouched_body_gives_back_its_json(raw: JsonObject) -> None:
    assert same(GEMINI.write_body(GEMINI.read_body(raw)), raw)


def test_system_text_leads_the_messages() -> None:
    document = GEMINI.read_body(BODIES["system and tools"])
    assert [message.role for message in document.messages] == [Role.SYSTEM, Role.USER]
    assert document.messages[0].text == "a\nb"
    assert len(document.tools) == 2


@pytest.mark.parametrize(("field", "value"), [("contents", "hi"), ("tools", "all"), ("systemInstruction", 5)], ids=str)
def test_a_bad_body_is_named(field: str, value: Json) -> None:
    with pytest.raises(WireError) as caught:
        GEMINI.read_body({"contents": [], field: value})
    assert caught.value.where == field


F1, F2, G1 = (response(name, response={"output": text}) for name, text in (("f", "1"), ("f", "2"), ("g", "3")))

#: Contents, and for each result in order which call answers it, as (content, part).
PAIRINGS: dict[str, tuple[list[JsonObject], list[tuple[int, int]]]] = {
    "by order within a name": ([model(call("f"), call("g"), call("f")), user(G1, F1, F2)], [(0, 1), (0, 0), (0, 2)]),
    "in contents of their own": ([model(call("f"), call("f")), user(F1), user(F2)], [(0, 0), (0, 1)]),
    "past words of the user": ([model(call("f")), user({"text": "wait"}), user(F1)], [(0, 0)]),
    "calls in contents of their own": ([model(call("f")), model(call("f")), user(F1, F2)], [(0, 0), (1, 0)]),
    "in every round anew": (
        [model(call("f")), user(F1), model(call("f")), user(F2)],
        [(0, 0), (2, 0)],
    ),
    "never with a call that was left open": (
        [model(call("f"), call("g")), user(G1), model(call("f")), user(F1)],
        [(0, 1), (2, 0)],
    ),
    "by id before order": (
        [model(call("f", id="a"), call("f", id="b")), user(response("f", id="b"), response("f", id="a"))],
        [(0, 1), (0, 0)],
    ),
    "by name where the answer lost its id": ([model(call("f", id="a")), user(F1)], [(0, 0)]),
    "by name where only the answer has an id": ([model(call("f")), user(response("f", id="z"))], [(0, 0)]),
    "not at all without a call": ([user(F1), model(call("f"))], []),
}


@pytest.mark.parametrize(("contents", "expected"), PAIRINGS.values(), ids=PAIRINGS.keys())
def test_results_without_ids_are_paired(contents: list[Json], expected: list[tuple[int, int]]) -> None:
    messages = GEMINI.read_body({"contents": contents}).messages
    assert [pair.call for pair in pairs_of(messages)] == expected


def test_ids_of_ours_stay_when_the_conversation_grows() -> None:
    contents: list[Json] = [model(call("f"), call("f")), user(F1, F2), model(call("f")), user(F1)]
    longer = GEMINI.read_body({"contents": contents}).messages
    assert GEMINI.read_body({"contents": contents[:2]}).messages == longer[:2]
    assert [made.id for message in longer for made in message.calls] == ["call_f_0", "call_f_1", "call_f_2"]


EDITED: dict[str, tuple[JsonObject, JsonObject]] = {
    "one string": ({"result": "long"}, {"result": "cut"}),
    "an error": ({"error": "long"}, {"error": "cut"}),
    "an object": ({"a": "long", "b": 1}, {"output": "cut"}),
    "an error object": ({"error": {"code": 5}}, {"error": "cut"}),
}


@pytest.mark.parametrize(("before", "after"), EDITED.values(), ids=EDITED.keys())
def test_a_shortened_response_is_still_an_object(before: Json, after: Json) -> None:
    message = GEMINI.read_message(user(response("read", response=before)))
    shorter = message.with_parts((replace(message.results[0], content=(Text("cut"),)),))
    assert same(GEMINI.write_message(shorter), [user(response("read", response=after))])


def test_a_message_whose_parts_all_went_is_not_sent() -> None:
    assert GEMINI.write_message(GEMINI.read_message(user({"text": "hi"})).with_parts(())) == []


# --- what always holds ---------------------------------------------------------------------------

unknown = st.dictionaries(st.sampled_from(["partMetadata", "x_new", "thoughtSignature"]), values, max_size=2)
media = st.sampled_from(["image/png", "image/x", "audio/mp3"])
names = st.sampled_from(["read", "fs.写", "f"])


def spelled(*spellings: str, inside: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    return st.builds(lambda key, inner, more: {**more, key: inner}, st.sampled_from(spellings), inside, unknown)


def either(*spellings: str, of: st.SearchStrategy[str]) -> st.SearchStrategy[JsonObject]:
    return st.builds(lambda key, value: {key: value}, st.sampled_from(spellings), of)


def merged(*pieces: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    return st.tuples(*pieces).map(lambda found: {key: value for piece in found for key, value in piece.items()})


blobs = spelled(
    "inlineData",
    "inline_data",
    inside=merged(either("mimeType", "mime_type", of=media), st.fixed_dictionaries({"data": texts}), unknown),
)
files = spelled(
    "fileData",
    "file_data",
    inside=merged(either("mimeType", "mime_type", of=media), either("fileUri", "file_uri", of=texts)),
)
identities = st.fixed_dictionaries({"name": names}, optional={"id": st.sampled_from([None, "", "a", "call_f_0"])})
parts = st.one_of(
    st.builds(lambda text, more: {**more, "text": text}, texts, unknown),
    st.builds(
        lambda text, signed: {"text": text, "thought": True, **signed},
        texts,
        st.just({}) | either("thoughtSignature", "thought_signature", of=texts),
    ),
    blobs,
    files,
    spelled(
        "functionCall",
        "function_call",
        inside=merged(identities, st.fixed_dictionaries({}, optional={"args": objects | values})),
    ),
    spelled(
        "functionResponse",
        "function_response",
        inside=merged(
            identities,
            st.fixed_dictionaries(
                {},
                optional={
                    "response": st.builds(lambda key, value: {key: value}, st.sampled_from("ab"), texts)
                    | objects
                    | values,
                    "parts": st.lists(blobs | files, max_size=2),
                },
            ),
        ),
    ),
    st.just({}),
    spelled("executableCode", inside=objects),
)
raw_contents = st.builds(
    lambda role, content, more: {**more, **role, **content},
    st.sampled_from([{}, {"role": None}, {"role": "user"}, {"role": "model"}, {"role": "function"}]),
    st.sampled_from([{}, {"parts": None}])
    | parts.map(lambda part: {"parts": part})
    | st.lists(parts, max_size=4).map(lambda items: {"parts": items}),
    unknown,
)
raw_bodies = st.builds(
    lambda known, more: {**more, **known},
    st.fixed_dictionaries(
        {"contents": st.lists(raw_contents, max_size=5) | raw_contents},
        optional={
            "systemInstruction": st.none() | texts | raw_contents,
            "system_instruction": raw_contents,
            "model": st.sampled_from([None, "", "gemini"]),
            "tools": st.none() | objects | st.lists(objects, max_size=2),
        },
    ),
    unknown,
)


@settings(max_examples=300, deadline=None)
@given(raw_contents)
def test_parse_and_render_are_inverse(raw: JsonObject) -> None:
    message = GEMINI.read_message(raw)
    assert [same(out, raw) for out in GEMINI.write_message(message)] == [True]
    assert decode(encode(message)) == message


@settings(max_examples=200, deadline=None)
@given(raw_bodies)
def test_parse_body_and_render_body_are_inverse(raw: JsonObject) -> None:
    assert same(GEMINI.write_body(GEMINI.read_body(raw)), raw)


@given(
    extra=objects,
    shape=st.fixed_dictionaries({}, optional={"id": st.just("absent"), "written": texts, "wrap": texts}),
    result=st.booleans(),
)
def test_the_id_as_it_was_written_is_that_of_the_hints(extra: JsonObject, shape: JsonObject, result: bool) -> None:
    carried = pack(extra, **shape)
    part = ToolResult(CallId("ours"), (), extra=carried) if result else ToolCall(CallId("ours"), "read", "{}", carried)
    hints = unpack(carried)[1]
    assert written_id(part) == (None if hints.get("id") == "absent" else hints.get("written", "ours"))
