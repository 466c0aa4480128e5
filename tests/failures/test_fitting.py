"""Failures of the field that `fit` must not repeat."""

import json
from itertools import pairwise

import pytest

from everlong import Fitted, count, fit
from everlong.core import ref_of
from everlong.errors import BudgetImpossible
from everlong.wire import problems

SYSTEM = {"role": "system", "content": "You are careful."}


def call(n: int, name: str = "read_file") -> dict[str, object]:
    function = {"name": name, "arguments": json.dumps({"path": f"src/part_{n}.py"})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
    }


def result(n: int, text: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": f"c{n}", "content": text}


def lines(n: int, count: int) -> str:
    return "\n".join(f"part {n} line {line}: value = compute_{n}_{line}(input)" for line in range(count))


def loop(steps: int, size: int = 60) -> list[dict[str, object]]:
    messages = [SYSTEM, {"role": "user", "content": "do Y, then Z, keep W"}]
    for n in range(steps):
        messages += [call(n), result(n, lines(n, size))]
    return messages


def test_A3_one_user_message_and_25_tool_rounds_leave_the_user_message_and_whole_pairs() -> None:
    messages = loop(25)[1:]
    fitted = fit(messages, model="gpt-4o", budget=4_000)
    assert messages[0] in fitted.messages
    assert problems("openai-chat", {"messages": fitted.messages}) == []


def test_A4_results_that_were_not_read_yet_stay_as_they_are() -> None:
    three = {"role": "assistant", "content": None, "tool_calls": [call(n)["tool_calls"][0] for n in (90, 91, 92)]}  # type: ignore[index]
    unread = [result(n, lines(n, 20)) for n in (90, 91, 92)]
    fitted = fit([*loop(30), three, *unread], model="gpt-4o", budget=6_000)
    assert fitted.messages[-3:] == unread
    assert fitted.messages[-4] == three


def test_A7_the_original_behind_a_trimmed_result_comes_back_whole() -> None:
    huge = lines(7, 12_000)
    messages = [SYSTEM, {"role": "user", "content": "read it"}, call(7), result(7, huge)]
    fitted = fit(messages, model="gpt-4o", budget=8_000)
    edits = [edit for edit in fitted.edits if edit.at == 3 and edit.ref]
    assert fitted.original(edits[0].ref or "") == huge.encode()
    shown = str(fitted.messages[-1]["content"])
    assert "excerpts" in shown.splitlines()[0]
    assert shown.splitlines()[1] == huge.splitlines()[0]
    assert shown.splitlines()[-1] == huge.splitlines()[-1]


def test_C6_the_reply_reserve_is_left_free_when_the_window_decides() -> None:
    messages = [*loop(200, 200), {"role": "assistant", "content": "ok"}, {"role": "user", "content": "next"}]
    fitted = fit(messages, model="gpt-4")
    assert fitted.tokens <= 8_192 - 2_000


def growing(turns: int, budget: int) -> list[Fitted]:
    messages, views = loop(1), []
    for n in range(1, turns):
        messages = [*messages, call(n), result(n, lines(n, 25))]
        views.append(fit(messages, model="gpt-4o", budget=budget, previous=views[-1] if views else None))
    return views


def test_D1_between_cuts_the_prefix_is_byte_identical_and_a_cut_is_one_reset() -> None:
    resets = 0
    views = growing(60, 10_000)
    for before, after in pairwise(views):
        old, new = (json.dumps(view.messages)[:-1] for view in (before, after))
        if not new.startswith(old):
            resets += 1
            assert after.view.compactions == before.view.compactions + 1
    assert resets == views[-1].view.compactions - views[0].view.compactions


def test_D2_nothing_in_the_view_depends_on_when_it_is_made() -> None:
    messages = loop(40)
    assert json.dumps(fit(messages, model="gpt-4o", budget=5_000).messages) == json.dumps(
        fit(messages, model="gpt-4o", budget=5_000).messages
    )


def test_D4_the_token_limit_wins_over_a_message_limit() -> None:
    messages = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "word " * 30_000} for n in range(11)
    ]
    messages[-1] = {"role": "user", "content": "short question"}
    for preset in ("static-buffer", "simple"):
        assert count(fit(messages, model="gpt-4o", budget=32_000, preset=preset).messages, model="gpt-4o") <= 32_000


def test_F2_a_fixed_floor_above_the_budget_is_one_error_with_the_parts() -> None:
    messages = [{"role": "system", "content": "rule " * 2_000}, {"role": "user", "content": "hi"}]
    with pytest.raises(BudgetImpossible) as caught:
        fit(messages, model="gpt-4o", budget=1_000)
    assert caught.value.parts[0][0] == "system text"
    assert caught.value.limit == 1_000


def test_F2_after_a_cut_to_half_ten_more_turns_need_none() -> None:
    messages = loop(60, 40)
    view = fit(messages, model="gpt-4o", budget=10_000)
    for n in range(100, 110):
        messages = [*messages, call(n), result(n, lines(n, 10))]
        later = fit(messages, model="gpt-4o", budget=20_000, previous=view)
        assert later.view.compactions == view.view.compactions
        view = later


OVERSIZED = {
    "a tool result of 1.7 MB": [call(0), result(0, lines(0, 34_000))],
    "40 parallel results of 50 KB": [
        {"role": "assistant", "content": None, "tool_calls": [call(n)["tool_calls"][0] for n in range(40)]},  # type: ignore[index]
        *(result(n, lines(n, 1_000)) for n in range(40)),
    ],
}


@pytest.mark.parametrize("name", OVERSIZED)
def test_F3_one_oversized_result_does_not_kill_a_healthy_session(name: str) -> None:
    healthy = loop(20, 40)
    fitted = fit([*healthy, *OVERSIZED[name]], model="gpt-4o", budget=100_000)
    assert fitted.tokens <= 100_000
    assert problems("openai-chat", {"messages": fitted.messages}) == []
    for edit in fitted.edits:
        if edit.ref:
            assert ref_of(fitted.original(edit.ref)) == edit.ref


def test_F3_an_old_user_paste_of_5_MB_is_no_obstacle() -> None:
    paste = {"role": "user", "content": lines(1, 100_000)}
    messages = [
        SYSTEM,
        paste,
        {"role": "assistant", "content": "read"},
        {"role": "user", "content": "what is compute_1_500?"},
    ]
    fitted = fit(messages, model="gpt-4o", budget=20_000)
    assert fitted.tokens <= 20_000
    assert "compute_1_500(" in json.dumps(fitted.messages)


def test_H7_every_stub_carries_a_reference_that_returns_the_original() -> None:
    messages = loop(40)
    fitted = fit(messages, model="gpt-4o", budget=5_000)
    referred = {edit.at for edit in fitted.edits if edit.ref}
    sent = [json.dumps(message) for message in fitted.messages]
    for at, message in enumerate(messages):
        assert at in referred or json.dumps(message) in sent
