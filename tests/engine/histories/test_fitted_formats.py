"""What `fit` gives back: the list in the caller's format, the whole body beside it, and the bytes behind references."""

import json

import pytest

from everlong import fit
from everlong.core import Action, Json, JsonObject, ref_of
from everlong.errors import InputError
from tests.wire import payloads
from tests.wire.sessions.samples import CHATBOX, CLAUDE

BODIES: dict[str, tuple[JsonObject, list[Json]]] = {
    "OpenAI chat": (payloads.CHAT_BODY, payloads.CHAT),
    "Anthropic": (payloads.ANTHROPIC_BODY, payloads.ANTHROPIC),
    "Responses": (payloads.RESPONSES_BODY, payloads.RESPONSES),
    "Responses, a text as input": ({"model": "gpt-4o", "input": "hi"}, [{"role": "user", "content": "hi"}]),
    "Gemini": (payloads.GEMINI_BODY, payloads.GEMINI),
    "Chatbox": (CHATBOX, CHATBOX["messages"]),  # type: ignore[dict-item]
}


@pytest.mark.parametrize(("body", "messages"), BODIES.values(), ids=BODIES)
def test_a_body_that_fits_comes_back_with_its_list(body: JsonObject, messages: list[Json]) -> None:
    fitted = fit(body, model="gpt-4o", budget=10_000)
    assert fitted.body == body
    assert fitted.messages == messages


@pytest.mark.parametrize("name", ["OpenAI chat", "Anthropic", "Gemini"])
def test_pins_are_indexes_of_the_list(name: str) -> None:
    body, messages = BODIES[name]
    fitted = fit(body, model="gpt-4o", budget=10_000, pins=[0])
    assert fitted.options is not None
    (pinned,) = fitted.options.pins
    assert pinned == len(fitted.view.history) - len(messages)


@pytest.mark.parametrize(
    "given", [CHATBOX, CLAUDE, payloads.RESPONSES_BODY], ids=["Chatbox", "Claude Code", "Responses"]
)
def test_where_an_item_is_no_message_pins_are_refused(given: JsonObject) -> None:
    with pytest.raises(InputError, match="pins are not supported"):
        fit(given, model="gpt-4o", pins=[0])


def test_a_session_comes_back_as_its_records() -> None:
    fitted = fit(CLAUDE, model="gpt-4o", budget=10_000)
    assert fitted.messages == CLAUDE


def test_the_bytes_behind_every_kind_of_reference() -> None:
    """Of a message, of a part, of a result with a picture in it."""
    picture: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    chat: list[JsonObject] = []
    for number in range(12):
        blocks: list[Json] = [{"type": "text", "text": f"line {number}\\n" * 200}, picture]
        call: JsonObject = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": f"{number}.py"}}
        chat += [
            {"role": "user", "content": f"read file {number}"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": blocks}]},
            {"role": "assistant", "content": f"That was file {number}."},
        ]
    for preset in ("auto", "nanobot", "chatbox"):
        fitted = fit([*chat, {"role": "user", "content": "and now?"}], model="gpt-4o", budget=3_000, preset=preset)
        refs = [edit.ref for edit in fitted.edits if edit.action is not Action.INSERT and edit.ref]
        assert refs
        assert all(ref_of(fitted.original(ref)) == ref for ref in refs)
        assert json.dumps(fitted.messages)
