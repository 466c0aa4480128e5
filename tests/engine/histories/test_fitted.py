"""`fit`: dicts in, the same style out; fits, valid, explained, and stable from call to call."""

import copy
import json
from itertools import pairwise

import pytest

from everlong import Fitted, count, fit
from everlong.compress import Preset, step_from
from everlong.core import Action, ref_of
from everlong.errors import BudgetImpossible, InputError
from everlong.wire import document_of, problems

TALE = "The miller said nothing, but his eldest daughter had already counted the sacks twice that morning. " * 15
SYSTEM = {"role": "system", "content": "You are a careful engineer."}
TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]


def call(n: int, path: str = "") -> dict[str, object]:
    arguments = json.dumps({"path": path or f"src/module_{n}.py"})
    function = {"name": "read_file", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
    }


def result(n: int, lines: int = 40) -> dict[str, object]:
    text = "\n".join(f"def function_{n}_{line}(value): return value * {n + line}" for line in range(lines))
    return {"role": "tool", "tool_call_id": f"c{n}", "content": text}


def work(steps: int, lines: int = 40) -> list[dict[str, object]]:
    messages = [SYSTEM, {"role": "user", "content": "Find out what function_3_7 does and fix it."}]
    for n in range(steps):
        messages += [call(n), result(n, lines)]
    return messages


def test_what_fits_is_given_back_as_it_is() -> None:
    messages = work(3)
    fitted = fit(messages, model="gpt-4o", budget=100_000, tools=TOOLS)
    assert fitted.messages == messages
    assert fitted.edits == ()
    assert fitted.tokens == count(messages, model="gpt-4o", tools=TOOLS)


def test_a_cut_fits_fills_and_quotes_what_is_asked_for() -> None:
    messages = [*work(40), {"role": "assistant", "content": "I have read them all."}]
    messages.append({"role": "user", "content": "Now explain function_3_7 again."})
    fitted = fit(messages, model="gpt-4o", budget=8_000, tools=TOOLS)
    assert 0.95 * 8_000 <= fitted.tokens <= 8_000
    assert fitted.tokens == count(fitted.messages, model="gpt-4o", tools=TOOLS)
    assert "def function_3_7(value)" in json.dumps(fitted.messages)
    assert problems("openai-chat", {"messages": fitted.messages}) == []
    assert fitted.messages[0] == SYSTEM
    assert fitted.messages[-1] == messages[-1]


def test_the_input_is_not_touched() -> None:
    messages = work(30)
    before = copy.deepcopy(messages)
    fit(messages, model="gpt-4o", budget=3_000)
    assert messages == before


def test_every_reference_returns_bytes_that_hash_to_it() -> None:
    fitted = fit(work(30), model="gpt-4o", budget=3_000)
    gone = [edit for edit in fitted.edits if edit.action is Action.DROP]
    assert gone
    assert all(ref_of(fitted.original(edit.ref or "")) == edit.ref for edit in gone)


def test_an_unknown_reference_is_an_error_in_words() -> None:
    with pytest.raises(InputError, match="no edit has the reference 'beef'"):
        fit(work(2), model="gpt-4o").original("beef")


def grow(turns: int, budget: int) -> list[Fitted]:
    messages, fitted = work(1), []
    for n in range(1, turns):
        messages = [*messages, call(n), result(n, 20)]
        fitted.append(fit(messages, model="gpt-4o", budget=budget, previous=fitted[-1] if fitted else None))
    return fitted


def test_between_cuts_each_request_starts_with_the_one_before() -> None:
    cuts = 0
    views = grow(30, 6_000)
    for before, after in pairwise(views):
        if after.view.compactions > before.view.compactions:
            cuts += 1
            continue
        assert after.messages[: len(before.messages)] == before.messages
        assert after.edits[: len(before.edits)] == before.edits
    assert 0 < cuts < len(views)


def test_a_changed_beginning_is_noticed() -> None:
    messages = work(20)
    first = fit(messages, model="gpt-4o", budget=4_000)
    changed = [{**SYSTEM, "content": "Be brief."}, *messages[1:]]
    again = fit(changed, model="gpt-4o", budget=4_000, previous=first)
    assert again.messages[0]["content"] == "Be brief."
    assert again.messages == fit(changed, model="gpt-4o", budget=4_000).messages


def test_pins_stay() -> None:
    messages = work(30)
    messages[4] = {"role": "assistant", "content": "Remember: ticket LB-124 stays open."}
    del messages[5]
    fitted = fit(messages, model="gpt-4o", budget=2_500, pins=[4])
    assert messages[4] in fitted.messages


@pytest.mark.parametrize("pin", [-1, 99])
def test_a_pin_that_names_nothing_is_an_error(pin: int) -> None:
    with pytest.raises(InputError, match="there is no message"):
        fit(work(2), model="gpt-4o", pins=[pin])


def test_what_must_stay_and_does_not_fit_is_listed_with_its_size() -> None:
    messages = [{"role": "system", "content": "rules " * 3_000}, {"role": "user", "content": "question " * 500}]
    with pytest.raises(BudgetImpossible) as caught:
        fit(messages, model="gpt-4o", budget=1_000)
    assert dict(caught.value.parts)["system text"] > 3_000
    assert dict(caught.value.parts)["last user message"] > 500


def test_schemas_larger_than_the_budget_are_named() -> None:
    with pytest.raises(BudgetImpossible, match="tool schemas"):
        fit(work(2), model="gpt-4o", budget=30, tools=TOOLS * 50)


def test_an_estimated_count_leaves_room_for_its_error() -> None:
    fitted = fit(work(40), model="claude-opus-4-5", budget=8_000)
    assert 0.9 * 8_000 / 1.15 <= fitted.tokens <= 8_000 / 1.15


BODIES = {
    "anthropic": {
        "model": "claude-opus-4-5",
        "system": "Be careful.",
        "max_tokens": 500,
        "messages": [
            {
                "role": "user" if n % 2 == 0 else "assistant",
                "content": [{"type": "text", "text": f"turn {n}: " + TALE}],
            }
            for n in range(21)
        ],
    },
    "openai-responses": {
        "model": "gpt-4o",
        "instructions": "Be careful.",
        "input": [{"role": "user" if n % 2 == 0 else "assistant", "content": f"turn {n}: " + TALE} for n in range(21)],
    },
    "gemini": {
        "contents": [
            {"role": "user" if n % 2 == 0 else "model", "parts": [{"text": f"turn {n}: " + TALE}]} for n in range(21)
        ],
    },
}


@pytest.mark.parametrize("fmt", BODIES)
def test_every_format_comes_back_in_its_own(fmt: str) -> None:
    fitted = fit(BODIES[fmt], budget=3_000)
    body = fitted.body
    assert isinstance(body, dict)
    assert document_of(body).fmt == fmt
    assert problems(fmt, body) == []
    assert {key: body.get(key) for key in ("model", "max_tokens") if key in BODIES[fmt]} == {
        key: BODIES[fmt][key] for key in ("model", "max_tokens") if key in BODIES[fmt]
    }
    assert len(json.dumps(body)) < len(json.dumps(BODIES[fmt])) / 2


def test_a_strategy_of_ones_own_is_a_preset() -> None:
    ends = Preset(name="ends", compaction=(step_from(lambda history, _target: [*history[:2], *history[-2:]], "ends"),))
    messages = work(30)
    fitted = fit(messages, model="gpt-4o", budget=4_000, preset=ends)
    assert fitted.messages == [*messages[:2], *messages[-2:]]
    assert {edit.step for edit in fitted.edits} == {"ends"}


def test_an_unknown_preset_names_those_that_exist() -> None:
    with pytest.raises(InputError, match="unknown preset 'best'; the presets are auto, "):
        fit(work(2), preset="best")


def test_our_words_follow_the_users_language_also_after_a_long_tool_loop() -> None:
    messages = [SYSTEM, {"role": "user", "content": "请检查所有模块,找出错误并修复。"}]
    for n in range(40):
        messages += [call(n), result(n)]
    background = next(
        m for m in fit(messages, model="gpt-4o", budget=5_000).messages if "<background-" in str(m["content"])
    )
    assert "仅作背景" in str(background["content"])


def test_in_a_loop_a_cut_goes_deep_so_that_cuts_are_rare() -> None:
    views = grow(60, 8_000)
    cut = [after for before, after in pairwise(views) if after.view.compactions > before.view.compactions]
    assert cut
    assert all(0.4 * 8_000 <= view.tokens <= 0.55 * 8_000 for view in cut)
    assert len(cut) <= len(views) // 6


def test_a_budget_may_be_nothing_but_not_less() -> None:
    assert fit([], model="gpt-4o", budget=0).messages == []
    with pytest.raises(InputError, match="an integer of at least 0, not -1"):
        fit([], model="gpt-4o", budget=-1)


@pytest.mark.parametrize("budget", [2_000, 8_000, 12_000, 20_000])
def test_the_one_line_with_the_code_that_is_asked_for_is_found(budget: int) -> None:
    messages: list[dict[str, object]] = [{"role": "user", "content": "Check the logs."}]
    for page in range(40):
        lines = (f"12:{n % 60} ERROR code E{1000 + n} in mod_{n % 13}" for n in range(50 * page, 50 * page + 50))
        messages += [call(page), {"role": "tool", "tool_call_id": f"c{page}", "content": "\n".join(lines)}]
    messages += [
        {"role": "assistant", "content": "I have read the logs."},
        {"role": "user", "content": "What was with code E1207?"},
    ]
    fitted = fit(messages, model="gpt-4o", budget=budget)
    assert "12:27 ERROR code E1207 in mod_12" in json.dumps(fitted.messages)
    assert fitted.tokens <= budget
