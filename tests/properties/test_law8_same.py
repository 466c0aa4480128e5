"""Law 8: same in, same out. No clock, no randomness, no trace of what was asked before."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from scripts.laws import differs

from everlong.compress import PRESETS
from everlong.core import History, Message, Role, Text
from everlong.engine import View, view_of
from everlong.errors import BudgetImpossible
from everlong.tokens import Counter
from tests.properties.test_law6_prefix import small_talk
from tests.properties.wishes import PRESET_NAMES, attempt, broken, proper, wish_of, wishes

every_preset = pytest.mark.parametrize("preset", PRESET_NAMES)
often = settings(max_examples=30, deadline=None)


@every_preset
@often
@given(data=st.data())
def test_law8_the_same_history_gives_the_same_view(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(proper() | broken()), data.draw(wishes(preset, deep=True))
    first = attempt(history, wish)
    for again in (attempt(history, wish), attempt(history, replace(wish, counter=Counter("gpt-4o")))):
        match first, again:
            case View(), View():
                assert list(differs(first, again)) == []
            case BudgetImpossible(), BudgetImpossible():
                assert (first.parts, first.limit) == (again.parts, again.limit)
            case _:
                raise AssertionError("it fits, and it does not")


def continued(word: str) -> History:
    """A long talk that took one of two turns at its end."""
    turn = tuple(
        Message(role, (Text(f"{word} number {number} " + f"about {word} and {number}, " * 20),))
        for number in range(20)
        for role in (Role.ASSISTANT, Role.USER)
    )
    return (*small_talk(rounds=20), *turn)


def test_law8_what_another_continuation_said_leaves_no_trace() -> None:
    """Two continuations of one view: neither quotes the other."""
    wish = wish_of(PRESETS["auto"], "openai-chat", 1_500, deep=True)
    start = view_of(small_talk(rounds=20), wish)
    cats = view_of(continued("cats"), wish, start)
    dogs = view_of(continued("dogs"), wish, start)
    assert cats.compactions > start.compactions
    assert not any("cats" in message.text for message in dogs.messages)
    assert list(differs(dogs, view_of(continued("dogs"), wish, view_of(small_talk(rounds=20), wish)))) == []


PROGRAM = """
import json
from everlong import fit
chat = [{"role": "system", "content": "You are kind."}]
for number in range(80):
    said = " ".join(f"file_{number}_{word}.py 配置{word}" for word in range(12))
    chat.append({"role": "user", "content": f"look at {said}"})
    chat.append({"role": "assistant", "content": f"done with {said}, see https://example.org/{number}"})
fitted = [fit(chat[:-1], model="gpt-4o", budget=3_000, preset=name) for name in PRESETS]
print(json.dumps([[each.messages, [str(edit) for edit in each.edits]] for each in fitted]))
"""


def test_law8_another_process_gives_the_same_bytes() -> None:
    """Python's hashes of texts differ from process to process; nothing may depend on them."""
    program = f"PRESETS = {list(PRESET_NAMES)!r}\n{PROGRAM}"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
    assert len(json.loads(outputs.pop())) == len(PRESET_NAMES)
