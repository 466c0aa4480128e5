"""A conversation far from its threshold is digests and counts: the same bytes go out as if it were held whole."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from everlong.engine import Call, Prepared
from everlong.gateway.config import load_config
from everlong.gateway.conversations.forms import READ
from everlong.gateway.conversations.sketches import Sketched
from everlong.gateway.exchange.body import forwarded_body, keeps_marks, marks_itself, sketched_body
from everlong.gateway.operations.services import Services, services_for
from everlong.gateway.request import ModelRequest, parse_request
from everlong.gateway.surfaces import FORMATS, MODEL, SURFACES, Address
from everlong.gateway.upstreams.providers import routes_from

Value = dict[str, Any]
MODELS = {"openai-chat": "gpt-4.1", "anthropic": "claude-opus-4-6", "gemini": "gemini-2.5-pro"}
MARK = {"type": "ephemeral"}


def made_services() -> Services:
    config = load_config(None, {"upstream": "http://127.0.0.1:9/v1", "store": "memory:"}, {})
    return services_for(config, routes_from(config, {}), {})


def request_of(fmt: str, body: bytes) -> ModelRequest:
    usual = (each for each in SURFACES if each.format is FORMATS[fmt])
    surface = next(each for each in usual if not (each.cloud or each.counts or each.compacts or each.prompts))
    return parse_request(Address(surface=surface, values=((MODEL, MODELS[fmt]),)), body)


def call_of(request: ModelRequest) -> Call:
    return Call(
        model=request.model,
        fmt=request.fmt,
        endpoint="here",
        tools=request.tools,
        max_tokens=request.max_tokens,
        breakpoints=True,
    )


@dataclass
class Both:
    """The two ways of a request through the gateway, each with a memory of its own."""

    whole: Services = field(default_factory=made_services)
    light: Services = field(default_factory=made_services)

    def held_whole(self, request: ModelRequest) -> tuple[bytes, Prepared]:
        services = self.whole
        restore = services.opaque.restorer(request.format, "a", request.model)
        transcript = services.conversations.transcript(request, "a", restore=restore)
        conversation = services.conversations.enter("a", transcript)
        prepared = services.engine.blocking.prepare(conversation.thread, call_of(request))
        services.conversations.leave(conversation)
        return forwarded_body(request, transcript, conversation, prepared), prepared

    def sketched(self, request: ModelRequest) -> Sketched | None:
        services = self.light
        found = services.conversations.sketches.find(request, "a")
        if found is None:
            return None
        restore = services.opaque.restorer(request.format, "a", request.model)
        sketched = services.conversations.follow(found, restore, request.model)
        return sketched if sketched is not None and keeps_marks(request, sketched) else None

    def forwarded(self, request: ModelRequest) -> tuple[bytes, Prepared] | None:
        sketched = self.sketched(request)
        if sketched is None:
            return None
        engine = self.light.engine.blocking
        prepared = engine.prepare_by_sizes(sketched.sketch.thread, call_of(request), sketched.sizes)
        if prepared is None:
            return None
        self.light.conversations.sketches.keep(sketched.sketch)
        return sketched_body(request, sketched, prepared), prepared


# --- conversations as clients write them -----------------------------------------------------------

texts = st.one_of(
    st.sampled_from(["ok", "船", 'say "hi"\n\t', "a / b \\ c", "é\u2028", "\x7f\x01", '{"cache_control": 1}']),
    st.text(min_size=1, max_size=20).filter(lambda text: bool(text.strip())),
)


@dataclass(frozen=True)
class Style:
    """How a client writes JSON."""

    ascii: bool = False
    spaces: bool = False
    reverse: bool = False
    blocks: bool = False
    marks: bool = False

    def written(self, value: Value) -> bytes:
        separators = (", ", ": ") if self.spaces else (",", ":")
        return json.dumps(value, ensure_ascii=self.ascii, separators=separators).encode()

    def message(self, message: Value) -> Value:
        shown = dict(reversed(message.items())) if self.reverse else message
        if self.blocks and isinstance(shown.get("content"), str) and shown["role"] != "tool":
            shown = {**shown, "content": [{"type": "text", "text": shown["content"]}]}
        return shown


styles = st.builds(Style, *[st.booleans()] * 5)


@st.composite
def openai_messages(draw: st.DrawFn) -> list[Value]:
    messages: list[Value] = [{"role": "system", "content": "Be brief."}] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(texts)})
        for step in range(draw(st.integers(0, 2))):
            names = [f"call_{turn}_{step}_{at}" for at in range(draw(st.integers(1, 2)))]
            arguments = json.dumps({"path": draw(texts)}, ensure_ascii=draw(st.booleans()))
            calls = [
                {"id": name, "type": "function", "function": {"name": "read", "arguments": arguments}} for name in names
            ]
            messages.append({"role": "assistant", "content": draw(st.sampled_from([None, "Let me look."]))})
            messages[-1]["tool_calls"] = calls
            messages += [{"role": "tool", "tool_call_id": name, "content": draw(texts)} for name in names]
        messages.append({"role": "assistant", "content": draw(texts)})
    messages.append({"role": "user", "content": "And now?"})
    return _maybe_odd(draw, messages)


@st.composite
def anthropic_messages(draw: st.DrawFn) -> list[Value]:
    messages: list[Value] = []
    for turn in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(texts)})
        for step in range(draw(st.integers(0, 2))):
            names = [f"toolu_{turn}_{step}_{at}" for at in range(draw(st.integers(1, 2)))]
            given_ = {"path": draw(texts), "a": draw(st.sampled_from([1, 2.5, True, None]))}
            uses = [{"type": "tool_use", "id": name, "name": "read", "input": given_} for name in names]
            words = [{"type": "text", "text": "Let me look."}] if draw(st.booleans()) else []
            messages.append({"role": "assistant", "content": [*words, *uses]})
            told = draw(st.sampled_from(["plain", "block"]))
            inner: Any = draw(texts)
            inner = [{"type": "text", "text": inner}] if told == "block" else inner
            results = [{"type": "tool_result", "tool_use_id": name, "content": inner} for name in names]
            messages.append({"role": "user", "content": results})
        messages.append({"role": "assistant", "content": draw(texts)})
    messages.append({"role": "user", "content": "And now?"})
    return _maybe_odd(draw, messages)


@st.composite
def gemini_messages(draw: st.DrawFn) -> list[Value]:
    contents: list[Value] = []
    named = draw(st.booleans())  # most clients write no ids
    for turn in range(draw(st.integers(1, 4))):
        contents.append({"role": "user", "parts": [{"text": draw(texts)}]})
        for step in range(draw(st.integers(0, 2))):
            names = [draw(st.sampled_from(["read", "look"])) for _ in range(draw(st.integers(1, 2)))]
            ids = [{"id": f"{turn}_{step}_{at}"} if named else {} for at in range(len(names))]
            given_ = {"path": draw(texts), "a": draw(st.sampled_from([1, 2.5, True, None]))}
            calls = [
                {"functionCall": {"name": name, "args": given_} | id_} for name, id_ in zip(names, ids, strict=True)
            ]
            words = [{"text": "Let me look."}] if draw(st.booleans()) else []
            contents.append({"role": "model", "parts": [*words, *calls]})
            answer = draw(st.sampled_from([{"output": draw(texts)}, {"b": 1, "a": [draw(texts)]}, {"error": "no"}]))
            results = [
                {"functionResponse": {"name": name, "response": answer} | id_}
                for name, id_ in zip(names, ids, strict=True)
            ]
            contents.append({"role": "user", "parts": results})
        contents.append({"role": "model", "parts": [{"text": draw(texts)}]})
    contents.append({"role": "user", "parts": [{"text": "And now?"}]})
    return _maybe_odd(draw, contents, {"parts": [{"text": ""}]})


def _maybe_odd(draw: st.DrawFn, messages: list[Value], blank: Value | None = None) -> list[Value]:
    """Now and then as clients should not: a message missing, twice, or empty."""
    odd = draw(st.sampled_from(["", "", "", "missing", "twice", "empty"]))
    at = draw(st.integers(0, len(messages) - 1))
    if odd == "missing":
        return [*messages[:at], *messages[at + 1 :]] or messages
    if odd == "twice":
        return [*messages[: at + 1], *messages[at:]]
    if odd == "empty":
        return [*messages[:at], {**messages[at], **(blank or {"content": ""})}, *messages[at + 1 :]]
    return messages


def asks(messages: Sequence[Value]) -> list[int]:
    """After how many messages a client asks: wherever the model is to speak."""
    return [at + 1 for at, message in enumerate(messages) if message["role"] in ("user", "tool")] or [len(messages)]


def body_of(fmt: str, messages: Sequence[Value], style: Style, *, system: str = "Be brief.", tools: bool) -> bytes:
    shown = [style.message(message) for message in messages]
    if fmt == "gemini":
        value: Value = {"systemInstruction": {"parts": [{"text": system}]}, "contents": shown}
        declared = [{"functionDeclarations": [{"name": "read"}, {"name": "look"}]}]
        return style.written(value | ({"tools": declared} if tools else {}))
    value = {"model": MODELS[fmt], "max_tokens": 100}
    if fmt == "anthropic":
        value["system"] = system
    if style.marks and fmt == "anthropic" and isinstance(shown[-1]["content"], list) and shown[-1]["content"]:
        last = {**shown[-1]["content"][-1], "cache_control": MARK}
        shown[-1] = {**shown[-1], "content": [*shown[-1]["content"][:-1], last]}
    value["messages"] = shown
    if tools:
        value["tools"] = (
            [{"name": "read", "input_schema": {"type": "object"}}]
            if fmt == "anthropic"
            else [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
        )
    return style.written(value)


conversations = st.one_of(
    st.tuples(st.just("openai-chat"), openai_messages()),
    st.tuples(st.just("anthropic"), anthropic_messages()),
    st.tuples(st.just("gemini"), gemini_messages()),
)


# --- the laws --------------------------------------------------------------------------------------


@given(conversation=conversations, style=styles, tools=st.booleans(), other=styles)
@settings(deadline=None, max_examples=90)
def test_the_same_bytes_go_out_as_if_it_were_held_whole(
    conversation: tuple[str, list[Value]], style: Style, tools: bool, other: Style
) -> None:
    """Laws 5 and 6: by digests or whole, a request is forwarded byte for byte the same, with the same figures."""
    fmt, messages = conversation
    both = Both()
    counts = asks(messages)
    for number, count in enumerate(counts):
        way = other if number == len(counts) - 1 else style  # a client may write all of it in another way
        request = request_of(fmt, body_of(fmt, messages[:count], way, tools=tools))
        light = both.forwarded(request)
        if light is None:
            continue
        body, prepared = both.held_whole(request)
        assert light[0] == body
        assert (light[1].tokens, light[1].counted) == (prepared.tokens, prepared.counted)
        assert not prepared.edits


@given(conversation=conversations, style=styles)
@settings(deadline=None, max_examples=45)
def test_what_the_provider_would_refuse_is_held_whole(conversation: tuple[str, list[Value]], style: Style) -> None:
    """Law 3: what has to be repaired is never forwarded as it came."""
    fmt, messages = conversation
    request = request_of(fmt, body_of(fmt, messages, style, tools=False))
    both = Both()
    if both.sketched(request) is not None:
        assert not both.held_whole(request)[1].edits


# --- how little is read ----------------------------------------------------------------------------


def talk(turns: int, opening: str = "Hello.") -> list[Value]:
    messages: list[Value] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": opening}]
    messages.append({"role": "assistant", "content": "Hello!"})
    for turn in range(turns):
        call = {"id": f"call_{turn}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages += [
            {"role": "user", "content": f"Question {turn}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": f"Line {turn}. " * 50},
            {"role": "assistant", "content": f"Answer {turn}."},
        ]
    return [*messages, {"role": "user", "content": "And now?"}]


def openai_request(messages: Sequence[Value]) -> ModelRequest:
    return request_of("openai-chat", body_of("openai-chat", messages, Style(), tools=True))


def in_format(fmt: str, messages: Sequence[Value]) -> list[Value]:
    """The conversation of `talk` as a client of another format writes it."""
    return [
        _in_anthropic(each) if fmt == "anthropic" else _in_gemini(each) if fmt == "gemini" else {**each}
        for each in messages
        if fmt == "openai-chat" or each["role"] != "system"
    ]


def _in_anthropic(message: Value) -> Value:
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return {"role": "user", "content": [result]}
    calls = [
        {"type": "tool_use", "id": call["id"], "name": "read", "input": {}} for call in message.get("tool_calls", ())
    ]
    return {"role": message["role"], "content": calls or message["content"]}


def _in_gemini(message: Value) -> Value:
    if message["role"] == "tool":
        response = {"name": "read", "response": {"output": message["content"]}}
        return {"role": "user", "parts": [{"functionResponse": response}]}
    role = "model" if message["role"] == "assistant" else "user"
    calls = [{"functionCall": {"name": "read", "args": {}}} for _ in message.get("tool_calls", ())]
    return {"role": role, "parts": calls or [{"text": message["content"]}]}


def request_in(fmt: str, messages: Sequence[Value]) -> ModelRequest:
    return request_of(fmt, body_of(fmt, in_format(fmt, messages), Style(), tools=True))


@pytest.mark.parametrize("fmt", MODELS)
def test_only_what_is_new_is_read_and_counted(fmt: str) -> None:
    both = Both()
    assert both.forwarded(request_in(fmt, talk(50)))
    units, sketches = both.light.conversations._units, both.light.conversations.sketches
    read, counted = units.read, sketches.counted
    grown = [*talk(50), {"role": "assistant", "content": "Well."}, {"role": "user", "content": "More."}]
    assert both.forwarded(request_in(fmt, grown))
    assert (units.read - read, sketches.counted - counted) == (2, 2)
    assert both.forwarded(request_in(fmt, grown))
    assert (units.read - read, sketches.counted - counted) == (2, 2)


@pytest.mark.parametrize("fmt", MODELS)
def test_many_long_conversations_are_read_once_however_often_they_take_turns(fmt: str) -> None:
    """No message is read twice and nothing is held whole, even if all of them together do not fit into the memory."""
    both = Both()
    units = both.light.conversations._units
    units._room = 10_000
    long = {name: [{"role": "user", "content": f"I am {name}."}, *talk(40)[2:]] for name in "abcd"}
    for messages in long.values():
        assert both.forwarded(request_in(fmt, messages))
    before = units.read
    for turn in range(3):
        for messages in long.values():
            messages += [{"role": "assistant", "content": f"Well, {turn}."}, {"role": "user", "content": "More."}]
            assert both.forwarded(request_in(fmt, messages))
    # The new messages of each request, and those of the step before it, which is checked together with them.
    assert units.read - before <= 3 * len(long) * 4
    assert not both.light.conversations.all()
    assert len(both.light.conversations.sketches) == len(long)


@pytest.mark.parametrize("fmt", MODELS)
def test_a_client_that_rewrites_a_turn_when_it_is_over_goes_on(fmt: str) -> None:
    """Clients drop what only the running turn needs, such as signatures, from all of its messages at once."""
    both = Both()
    turn: list[Value] = []
    for step in range(6):
        call = {"id": f"call_new_{step}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        turn += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_new_{step}", "content": f"Row {step}."},
        ]
        messages = [*talk(20), *turn]
        signed = in_format(fmt, messages)
        for message in signed[-len(turn) :]:
            message["note"] = "running"  # a field that we do not know
        assert both.forwarded(request_of(fmt, body_of(fmt, signed, Style(), tools=True))) is not None
    (sketch,) = both.light.conversations.sketches._all.values()
    counted = both.light.conversations.sketches.counted
    after = [*messages, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "And now?"}]
    request = request_in(fmt, after)
    light = both.forwarded(request)
    assert light is not None
    assert light[0] == both.held_whole(request)[0]
    (continued,) = both.light.conversations.sketches._all.values()
    assert continued.thread == sketch.thread
    assert both.light.conversations.sketches.counted - counted == len(turn) + 2


def test_a_conversation_takes_a_byte_for_each_message_and_a_little_beside() -> None:
    both = Both()
    for turns in (10, 200):
        assert both.forwarded(openai_request(talk(turns, f"{turns} questions.")))
    small, large = both.light.conversations.sketches._all.values()
    assert large.size - small.size == len(large.forms) - len(small.forms) == 4 * 190
    assert large.size < 3_000
    assert not both.light.conversations.all()
    assert not list(both.light.engine.threads.threads())


def test_the_one_used_longest_ago_makes_room() -> None:
    both = Both()
    both.light.conversations.sketches._room = 8_000
    for name in "abcdefgh":
        messages = [{"role": "user", "content": f"I am {name}."}]
        assert both.forwarded(openai_request(messages))
    assert len(both.light.conversations.sketches) < 8
    assert both.light.conversations.sketches._held <= 8_000
    assert len(both.light.conversations.sketches._ends) == len(both.light.conversations.sketches)


def test_a_client_that_writes_its_last_messages_anew_goes_on() -> None:
    both = Both()
    assert both.forwarded(openai_request(talk(5)))
    (sketch,) = both.light.conversations.sketches._all.values()
    again = [*talk(5)[:-1], {"role": "user", "content": "And now, by the way?"}]
    assert both.forwarded(openai_request(again))
    (after,) = both.light.conversations.sketches._all.values()
    assert after.thread == sketch.thread
    assert len(after.forms) == len(sketch.forms)


def test_other_system_text_is_counted_anew_and_nothing_else_is() -> None:
    both = Both()
    first = both.forwarded(openai_request(talk(20)))
    counted = both.light.conversations.sketches.counted
    messages = [{"role": "system", "content": "Be brief. It is Monday, the second of March."}, *talk(20)[1:]]
    second = both.forwarded(openai_request(messages))
    assert first is not None
    assert second is not None
    assert second[1].counted > first[1].counted
    assert both.light.conversations.sketches.counted == counted
    assert second[0] == both.held_whole(openai_request(messages))[0]


def test_clients_share_nothing() -> None:
    both = Both()
    assert both.forwarded(openai_request(talk(3)))
    found = both.light.conversations.sketches.find(openai_request(talk(3)), "b")
    assert found is not None
    assert found.sketch is None


def test_what_another_process_compacted_is_held_whole() -> None:
    both = Both()
    assert both.forwarded(openai_request(talk(3)))
    (sketch,) = both.light.conversations.sketches._all.values()
    store = both.light.state_store
    kind = f"gateway/marks/a/{sketch.root}"
    store.store.keep_fact("gateway/newest", kind, json.dumps(["a mark"]))
    assert store.list_of_marks("a", sketch.root) == ("a mark",)
    assert both.forwarded(openai_request(talk(3))) is None
    assert not len(both.light.conversations.sketches)


def test_near_the_threshold_it_is_held_whole() -> None:
    both = Both()
    request = openai_request(talk(3))
    sketched = both.sketched(request)
    assert sketched is not None
    call = Call(model=request.model, fmt="openai-chat", endpoint="here", tools=request.tools, max_tokens=100)
    window = json.dumps({"window": sketched.sizes.counted + 400})
    engine = both.light.engine.blocking
    assert engine.prepare_by_sizes("a", call, sketched.sizes, window) is None
    assert engine.prepare_by_sizes("a", call, sketched.sizes, json.dumps({"window": 128_000})) is not None


@pytest.mark.parametrize("style", [Style(), Style(spaces=True), Style(reverse=True), Style(blocks=True)])
def test_usual_clients_need_no_message_read_again(style: Style) -> None:
    both = Both()
    assert both.forwarded(request_of("openai-chat", body_of("openai-chat", talk(5), style, tools=True)))
    (sketch,) = both.light.conversations.sketches._all.values()
    assert READ not in sketch.forms


def test_marks_of_ours_go_where_they_would() -> None:
    """A step of very many blocks gets one before it, too."""
    uses = [{"type": "tool_use", "id": f"toolu_{at}", "name": "read", "input": {}} for at in range(20)]
    results = [{"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": "x"} for at in range(20)]
    messages: list[Value] = [
        {"role": "user", "content": "Read all."},
        {"role": "assistant", "content": uses},
        {"role": "user", "content": results},
    ]
    both = Both()
    for count in (1, 3):
        request = request_of("anthropic", body_of("anthropic", messages[:count], Style(), tools=True))
        light = both.forwarded(request)
        assert light is not None
        assert light[0] == both.held_whole(request)[0]
        assert not marks_itself(request)
    assert light is not None
    assert light[0].count(b"ephemeral") == 3
