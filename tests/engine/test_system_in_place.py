"""System and developer messages stay where they stand, byte for byte, in every preset and format.

Where a format has no such role they stand there as marked text of the user: what is before them does not change.
"""

import json
from typing import Any

import pytest

from everlong.compress import PRESETS
from everlong.core import Message, Role
from everlong.engine import Call, Engine, Settings
from everlong.store import open_store
from everlong.wire import FORMATS, document_of, problems

FILLING = "The boats lie at the pier and wait for the tide. " * 12
FIRST, SECOND, THIRD = (
    "Answer in French from now on.",
    "The tariff of 1897 applies.",
    "The harbour master is listening.",
)
TURNS = 30


def spoken(turn: int) -> list[dict[str, Any]]:
    """A turn of a client that now and then tells the model something beside the user; each begins with an answer."""
    said: list[dict[str, Any]] = [{"role": "assistant", "content": f"Answer {turn}. {FILLING}"}] if turn else []
    beside = {2: ("developer", FIRST), 5: ("system", SECOND), 20: ("developer", THIRD)}.get(turn)
    said += [{"role": beside[0], "content": beside[1]}] if beside else []
    return [*said, {"role": "user", "content": f"Question {turn}? {FILLING}"}]


def written(fmt: str, messages: tuple[Message, ...]) -> tuple[str, list[str]]:
    """The system text of a request in its own field, and the messages as they are sent."""
    body: Any = FORMATS[fmt].write_history(messages)
    assert problems(fmt, body) == []
    listed = [json.dumps(one, ensure_ascii=False) for one in body.pop(FORMATS[fmt].api.messages)]
    return json.dumps(body), listed


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_told_beside_the_user_stays_in_its_place(preset: str, fmt: str) -> None:
    with open_store("memory:") as store:
        engine = Engine(store, settings=Settings(preset=preset, summaries="off", window=4_000)).blocking
        store.create("talk")
        store.append("talk", document_of([{"role": "system", "content": "You know boats."}]).messages)
        cut, before = 0, list[str]()
        for turn in range(TURNS):
            store.append("talk", document_of(spoken(turn)).messages)
            prepared = engine.prepare("talk", Call(model="gpt-4o", max_tokens=500, fmt=fmt))
            sent = prepared.request.messages
            told = [text for since, text in ((2, FIRST), (5, SECOND), (20, THIRD)) if turn >= since]
            assert [message.text for message in sent if message.role is Role.SYSTEM] == ["You know boats.", *told]
            front, lines = written(fmt, sent)
            for text in told:
                assert sum(text in line for line in (front, *lines)) == 1, f"turn {turn}"
            if not PRESETS[preset].every_call and prepared.compactions == cut:
                assert lines[: len(before)] == before  # nothing before them changed
            if not PRESETS[preset].every_call:
                assert not any(text in front for text in told)
            cut, before = prepared.compactions, lines
            engine.record_failure(prepared, "not sent")
        assert len(sent) < 2 * TURNS


@pytest.mark.parametrize("fmt", ["anthropic", "gemini"])
def test_where_there_is_no_such_role_it_says_what_it_is(fmt: str) -> None:
    history = document_of([{"role": "user", "content": "a"}, *spoken(2)]).messages
    assert f"<system-message>\\n{FIRST}\\n</system-message>" in json.dumps(FORMATS[fmt].write_history(history))


@pytest.mark.parametrize("fmt", ["openai-chat", "openai-responses"])
def test_where_there_is_one_the_client_finds_its_own_words_again(fmt: str) -> None:
    listed = [{"role": "developer", "content": FIRST}, *spoken(0), *spoken(2), {"role": "system", "content": SECOND}]
    if fmt == "openai-responses":
        listed = [{"type": "message", **one} for one in listed if one["role"] != "assistant"]
    body: Any = {FORMATS[fmt].api.messages: listed}
    again = FORMATS[fmt].write_history(FORMATS[fmt].read_body(body).messages)
    assert json.dumps(again) == json.dumps(body)
