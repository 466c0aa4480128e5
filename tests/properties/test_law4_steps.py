"""Law 4: the newest steps stay messages, at least three, at every budget from 8k up; small results of theirs whole."""

import json

from hypothesis import given, settings, strategies as st
from scripts.laws import broken_laws

from everlong.compress import PRESETS
from everlong.core import CallId, History, Message, Role, ToolCall, steps_of
from tests.core.build import assistant, result, system, user
from tests.properties.wishes import COUNTER, seen, wish_of

often = settings(max_examples=60, deadline=None)

NEWEST = 3
WHOLE = 300  # tokens
BUDGETS = (8_000, 12_000, 20_000, 32_000, 64_000)
LINES = (1, 8, 16, 60, 400, 1_500)  # of a result; a line has 14 tokens
LARGEST_UNREAD = 60  # lines: what has not been read stays whole, so it must fit
FORMATS = ("openai-chat", "anthropic", "gemini", "ollama", "openai-responses")


def page(number: int, lines: int) -> str:
    return "\n".join(f"def function_{number}_{line}(value): return value * {number + line}" for line in range(lines))


def agents_work(sizes: list[list[int]], ending: str) -> History:
    """A task and steps with results of so many lines; it ends unread, answered or with a question."""
    messages: list[Message] = [system("Work carefully."), user("Find out what function_3_7 does and fix it.")]
    if ending == "unread":
        sizes = [*sizes, [LARGEST_UNREAD]]
    for number, lines in enumerate(sizes):
        ids = [f"c{number}{side}" for side, _ in enumerate(lines)]
        asked = (ToolCall(CallId(call), "read_file", json.dumps({"path": f"{call}.py"})) for call in ids)
        messages.append(Message(Role.ASSISTANT, tuple(asked)))
        pages = [page(number * 10 + at, size) for at, size in enumerate(lines)]
        messages += [result(call, text) for call, text in zip(ids, pages, strict=True)]
    if ending != "unread":
        messages.append(assistant("It multiplies its value."))
    if ending == "asked again":
        messages.append(user("And who calls it?"))
    return tuple(messages)


def newest_calls(history: History) -> list[str]:
    """The calls of the three newest steps."""
    steps = [step for step in steps_of(history) if history[step.start].role is Role.ASSISTANT][-NEWEST:]
    return [call.id for step in steps for call in history[step.start].calls]


@often
@given(
    sizes=st.lists(st.lists(st.sampled_from(LINES), min_size=1, max_size=3), min_size=1, max_size=12),
    ending=st.sampled_from(["unread", "answered", "asked again"]),
    budget=st.sampled_from(BUDGETS),
    fmt=st.sampled_from(FORMATS),
)
def test_law4_the_newest_steps_stand_and_all_other_laws_hold(
    sizes: list[list[int]], ending: str, budget: int, fmt: str
) -> None:
    history, wish = agents_work(sizes, ending), wish_of(PRESETS["auto"], fmt, budget, window=128_000)
    view = seen(history, wish)
    assert view is not None
    assert [broken.said for broken in broken_laws(view, wish)] == []
    wanted = newest_calls(history)
    standing = {call.id for message in view.messages for call in message.calls}
    assert standing >= set(wanted)
    before = {part.call: part for message in history for part in message.results}
    after = {part.call: part for message in view.messages for part in message.results}
    quarters = sum(COUNTER.part(before[call]) // 4 + 100 for call in wanted)
    for call in wanted:
        tokens = COUNTER.part(before[call])
        if tokens < WHOLE:
            assert after[call].text == before[call].text
        elif quarters < budget * 0.8:
            assert COUNTER.part(after[call]) >= tokens / 4
