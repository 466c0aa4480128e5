"""The last resort fits, or says in figures why nothing can."""

import json

import pytest

from everlong.compress.draft import Draft, draft_of
from everlong.compress.steps.emergency import emergency, floor
from everlong.core import (
    Action,
    CallId,
    Image,
    Message,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    message_ref,
    ref_of,
)
from everlong.errors import BudgetImpossible
from tests.compress.talks import COUNTER, assert_accounted, assert_pairs, draft, task
from tests.core.build import assistant, calls, result, system, user

WORDS = "word " * 300


def work(rounds: int, text: str = WORDS) -> list[Message]:
    messages = []
    for n in range(rounds):
        thought = Message(Role.ASSISTANT, (Reasoning(WORDS), ToolCall(CallId(str(n)), "run", "{}")))
        messages += [user(f"question {n}"), thought, result(str(n), text), assistant(f"answer {n}")]
    return messages


def users(after: Draft) -> list[str]:
    return [message.text for message in after.messages if message.role is Role.USER]


def test_within_the_target_the_floor_does_nothing() -> None:
    before = draft(*work(3))
    assert floor(before, task(10**6)) is before


def test_an_emergency_is_as_the_document_writes_it_whatever_would_have_sufficed() -> None:
    what = task(10**6, window=10**6)
    after = emergency(draft(system("s"), *work(12), user("and now?"), what=what), what)
    assert users(after) == [*(f"question {n}" for n in range(8, 12)), "and now?"]
    assert all(len(one.text) < 200 for message in after.messages for one in message.results)
    assert not any(isinstance(part, Reasoning) for message in after.messages for part in message.parts)


def test_results_to_one_line_thoughts_gone_last_five_rounds() -> None:
    what = task(4_000, window=8_000)
    before = draft(system("s"), *work(12), user("and now?"), what=what)
    after = emergency(before, what)
    assert users(after) == [*(f"question {n}" for n in range(8, 12)), "and now?"]
    assert all("\n" not in one.text and len(one.text) < 200 for message in after.messages for one in message.results)
    assert not any(isinstance(part, Reasoning) for message in after.messages for part in message.parts)
    assert after.messages[0] == before.messages[0]
    assert_accounted(after, what)
    assert_pairs(after)


def test_then_the_last_two_to_stay_under_sixty_percent() -> None:
    what = task(900, window=1_000)
    said = [message for n in range(6) for message in (user(f"question {n}"), assistant("long " * 200))]
    before = draft(*said, user("and now?"), what=what)
    after = emergency(before, what)
    assert users(after) == ["question 5", "and now?"]
    assert after.total <= 600


@pytest.mark.parametrize(("words", "expected"), [(10, 10), (700, 4)], ids=["about ten", "about four"])
def test_or_about_so_many_messages(words: int, expected: int) -> None:
    what = task(2_000, window=4_000)
    long = "word " * words
    steps = [message for n in range(40) for message in (calls(str(n)), result(str(n), WORDS), assistant(long))]
    before = draft(user("go"), *steps, user("and now?"), what=what)
    after = emergency(before, what, keep=(10, 4), unit="messages")
    assert len(after.messages) == expected
    assert after.total <= 2_400
    assert_pairs(after)


def test_a_long_last_round_loses_its_oldest_steps() -> None:
    what = task(600, window=1_000)
    steps = [message for n in range(60) for message in (calls(str(n)), result(str(n), WORDS))]
    before = draft(user("go"), *steps, what=what)
    after = emergency(before, what)
    assert after.messages[0] == before.messages[0]
    assert after.messages[-1] == before.messages[-1]
    assert 500 < after.total <= 600
    assert_pairs(after)


def test_the_floor_takes_no_more_than_it_must() -> None:
    before = draft(*work(3), user("and now?"))
    what = task(before.total - 200)
    assert [(edit.at, edit.action) for edit in floor(before, what).edits] == [(2, Action.SHORTEN)]


def test_long_arguments_go_out_before_messages_do() -> None:
    arguments = json.dumps({"path": "a.py", "content": "x " * 5_000})
    before = draft(user("go"), calls("1", arguments=arguments), result("1"), assistant("ok"), user("next"))
    after = floor(before, task(200))
    assert len(after.messages) == 5
    assert json.loads(after.messages[1].calls[0].arguments)["path"] == "a.py"


def test_an_unread_result_too_large_for_the_window_is_cut_and_nothing_else() -> None:
    huge = "\n".join(f"line {n}: something happened" for n in range(50_000))
    what = task(5_000, window=8_400)
    before = draft(system("s"), *work(1), user("go"), calls("x"), result("x", huge), what=what)
    after = floor(before, what)
    assert after.messages[:-1] == before.messages[:-1]
    shown = after.messages[-1].results[0].text
    assert shown.startswith("line 0:")
    assert shown.endswith("line 49999: something happened")
    assert f"ref {ref_of(huge)}" in shown
    assert 4_500 < after.total <= 5_000
    assert [edit.at for edit in after.edits] == [len(before.messages) - 1]
    assert_accounted(after, what)


def test_many_unread_results_are_cut_to_a_common_size_largest_first() -> None:
    sizes = [50, 3_000, 6_000, 9_000]
    made = calls(*map(str, sizes))
    answers = [result(str(size), "word " * size) for size in sizes]
    before = draft(user("go"), made, *answers)
    after = floor(before, task(5_000))
    now = [slot.tokens for slot in after.slots[2:]]
    assert now[0] == before.slots[2].tokens
    assert max(now[1:]) - min(now[1:]) < 200
    assert 4_500 < after.total <= 5_000
    assert_accounted(after, task())


def test_pictures_of_an_unread_result_go_when_there_is_no_room_for_them() -> None:
    shown = Message(Role.TOOL, (ToolResult(CallId("1"), (Text("see"), *[Image(data="aGk=")] * 5)),))
    before = draft(user("go"), calls("1"), shown)
    after = floor(before, task(500))
    assert "with 5 image(s)" in after.messages[2].results[0].text
    assert after.edits[0].ref == message_ref(shown)


def test_a_pinned_result_is_never_cut() -> None:
    history = (user("go"), calls("1"), result("1", "word " * 5_000))
    what = task(1_000, pins=frozenset({2}))
    with pytest.raises(BudgetImpossible):
        floor(draft_of(history, what), what)


def test_what_cannot_fit_is_named_with_its_size() -> None:
    history = (system("s " * 500), user("old"), assistant("pinned " * 300), user("u " * 2_000), calls("1"), result("1"))
    what = task(1_000, pins=frozenset({2}))
    with pytest.raises(BudgetImpossible) as caught:
        emergency(draft_of(history, what), what)
    sizes = {at: COUNTER.message(history[at]) for at in (0, 2, 3, 4)}
    assert caught.value.limit == 1_000
    assert caught.value.parts[0] == ("last user message", sizes[3])
    assert dict(caught.value.parts) == {
        "last user message": sizes[3],
        "system text": sizes[0],
        "pinned": sizes[2],
        "result not read yet": COUNTER.message(history[5]),
        "their tool calls and results": sizes[4],
    }


@pytest.mark.parametrize(("fmt", "kept"), [("anthropic", True), ("openai-chat", False)])
def test_thoughts_that_the_provider_wants_back_stay(fmt: str, *, kept: bool) -> None:
    thought = Message(Role.ASSISTANT, (Reasoning("hm " * 100), ToolCall(CallId("1"), "run", "{}")))
    history = (*work(4), user("go"), thought, result("1"))
    what = task(500, fmt=fmt)
    after = emergency(draft_of(history, what), what)
    assert any(isinstance(part, Reasoning) for part in after.messages[-2].parts) is kept


def test_an_unread_result_that_fits_alone_stays_whole_at_the_floor_but_not_in_an_emergency() -> None:
    unread = result("x", "word " * 4_500)
    what = task(5_000, window=6_000)
    before = draft(*work(2), user("go"), calls("x"), unread, what=what)
    assert floor(before, what).messages[-1] == unread
    after = emergency(before, what)
    assert after.messages[-1] != unread
    assert len(after.messages[-1].results[0].text) > 1_000, "cut, not gone: nobody has read it"
    assert after.total <= 3_600
