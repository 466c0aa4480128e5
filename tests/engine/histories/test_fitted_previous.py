"""`fit` handed an earlier result: it repeats what is still right, and only that."""

import json
from collections.abc import Callable

import pytest

from everlong import fit
from everlong.errors import BudgetImpossible, InputError
from tests.engine.histories.test_fitted import TALE, TOOLS, call, result, work


def talk(turns: int) -> list[dict[str, object]]:
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": f"turn {n}: " + "word " * 80} for n in range(turns)]


def blocks(text: str) -> list[dict[str, object]]:
    return [{"role": "user", "content": [{"type": "text", "text": text}]}, {"role": "assistant", "content": "yes"}]


def test_a_change_inside_a_message_is_noticed() -> None:
    messages = blocks("before")
    first = fit(messages, model="gpt-4o", budget=1_000)
    messages[0]["content"][0]["text"] = "after"  # type: ignore[index]
    assert fit(messages, model="gpt-4o", budget=1_000, previous=first).view.history[0].text == "after"
    assert first.messages[0] is messages[0]  # it is the caller's own, and so changed too
    assert first.view.messages[0].text == "before"


def test_a_change_of_what_was_given_back_is_noticed() -> None:
    first = fit(blocks("before"), model="gpt-4o", budget=1_000)
    messages = first.messages
    messages[0]["content"][0]["text"] = "after"  # type: ignore[index]
    again = fit(messages, model="gpt-4o", budget=1_000, previous=first)
    assert again.messages == blocks("after")
    assert again.view.history[0].text == "after"


def test_another_model_counts_for_itself() -> None:
    messages = [{"role": "user", "content": "你好世界 hello " * 300}, {"role": "assistant", "content": "ok"}]
    first = fit(messages, model="gpt-4o")
    assert fit(messages, model="gpt-4", previous=first).tokens == fit(messages, model="gpt-4").tokens


def test_what_was_left_as_it_is_is_no_view_to_repeat() -> None:
    orphan = {"role": "tool", "tool_call_id": "lost", "content": "orphan"}
    messages = [{"role": "user", "content": "a"}, orphan, {"role": "user", "content": "go"}]
    off = fit(messages, model="gpt-4o", preset="off")
    assert fit(messages, model="gpt-4o", previous=off).messages == fit(messages, model="gpt-4o").messages


def test_law4_what_was_cut_and_is_pinned_now_comes_back() -> None:
    messages = talk(41)
    first = fit(messages, model="gpt-4o", budget=1_500)
    assert messages[7] not in first.messages
    pinned = fit(messages, model="gpt-4o", budget=1_500, pins=[7], previous=first)
    assert messages[7] in pinned.messages
    longer = [*messages, {"role": "assistant", "content": "ok"}]
    again = fit(longer, model="gpt-4o", budget=1_600, pins=[7], previous=pinned)
    assert again.messages == [*pinned.messages, longer[-1]]


def test_a_list_that_began_with_plain_words_may_turn_out_to_be_anthropic() -> None:
    asked = [{"role": "user", "content": "read it"}]
    use = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}}
    longer = [*asked, {"role": "assistant", "content": [use]}]
    longer.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x = 1"}]})
    again = fit(longer, model="gpt-4o", budget=500, previous=fit(asked, model="gpt-4o", budget=500))
    assert again.document.fmt == "anthropic"
    assert again.view.history == fit(longer, model="gpt-4o", budget=500).view.history


def test_law8_calls_in_between_change_nothing() -> None:
    messages = [*work(30), {"role": "assistant", "content": "done"}, {"role": "user", "content": "function_9_9?"}]
    first = fit(messages, model="gpt-4o", budget=100_000)
    alone = fit(messages, model="gpt-4o", budget=9_000).messages
    for budget in (2_000, 5_000, 9_000):
        between = fit(messages, model="gpt-4o", budget=budget, previous=first)
    assert between.messages == alone


@pytest.mark.parametrize(
    "messages",
    [lambda: work(3), lambda: talk(9), lambda: [*work(2), call(7), result(7)][::-1]],
    ids=["shorter", "another conversation", "another order"],
)
def test_another_conversation_is_fitted_for_itself(messages: Callable[[], list[dict[str, object]]]) -> None:
    first = fit(work(30), model="gpt-4o", budget=3_000)
    given = messages()
    again = fit(given, model="gpt-4o", budget=2_000, previous=first)
    assert json.dumps(again.messages) == json.dumps(fit(given, model="gpt-4o", budget=2_000).messages)


@pytest.mark.parametrize("change", [{"budget": 1_500}, {"budget": 3_000, "tools": TOOLS * 40}], ids=["budget", "tools"])
def test_less_room_than_before_is_a_cut(change: dict[str, object]) -> None:
    messages = talk(41)
    first = fit(messages, model="gpt-4o", budget=3_000)
    again = fit(messages, model="gpt-4o", previous=first, **change)  # type: ignore[arg-type]
    assert again.tokens <= change["budget"]  # type: ignore[operator]
    assert again.view.compactions == first.view.compactions + 1


def test_law2_the_error_is_about_the_budget_that_was_asked_for() -> None:
    messages = [{"role": "user", "content": TALE}]
    with pytest.raises(BudgetImpossible) as caught:
        fit(messages, model="claude-opus-4-5", budget=200, tools=TOOLS)
    assert caught.value.limit == 200
    assert {"last user message", "tool schemas"} == {n for n, _ in caught.value.parts}
    assert caught.value.needed > 200


def test_a_budget_below_nothing_is_an_error() -> None:
    with pytest.raises(InputError, match="not -1"):
        fit(work(1), model="gpt-4o", budget=-1)
