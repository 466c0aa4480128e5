"""A long task stays at its place, with its beginning, its end and what is needed between."""

import pytest

from everlong.compress.steps.trims.long_task import SMALLEST, long_task
from everlong.core import Action, Message, Protection, Role, Text, original_in
from tests.compress.talks import COUNTER, assert_accounted, draft, task
from tests.core.build import assistant, calls, result, system, user

OPENING = "Mend the accounts of the harbour: every berth is to be let once."
CLOSING = "Write the report when all of that is done."
RULES = "\n".join(f"Rule {n}: the ledger of quay {n} is written in ink of colour {n}." for n in range(400))
NEEDED = "Rule 217b: the lighthouse keeper's tariff is 4711 crowns."
LONG = f"{OPENING}\n{RULES}\n{NEEDED}\n{RULES}\n{CLOSING}"
END = (calls("1", arguments='{"query": "lighthouse keeper tariff"}'), result("1", "found"), assistant("I look it up."))


def history(first: str = LONG) -> tuple[Message, ...]:
    return (system("s"), user(first), assistant("begun"), user("what of the lighthouse keeper's tariff?"), *END)


WHAT = task(6_000, limit=10_000, keeps_task=True, recall="recall")


def test_it_keeps_beginning_end_and_what_is_needed_at_its_place() -> None:
    before = draft(*history(), what=WHAT)
    after = long_task(before, WHAT)
    assert [slot.at for slot in after.slots] == [slot.at for slot in before.slots]
    shortened = after.slots[1].message
    assert shortened.role is Role.USER
    assert shortened.text.startswith(OPENING)
    assert shortened.text.endswith(CLOSING)
    assert NEEDED in shortened.text
    assert after.slots[1].tokens <= 1_000
    assert_accounted(after, WHAT)


def test_the_reference_returns_all_of_it_and_is_named_to_the_model() -> None:
    after = long_task(draft(*history(), what=WHAT), WHAT)
    (edit,) = after.edits
    assert (edit.at, edit.action, edit.step) == (1, Action.SHORTEN, "long_task")
    assert edit.ref is not None
    assert f'ref {edit.ref}; recall("{edit.ref}") returns it' in after.slots[1].message.text
    assert original_in(history()[1], 0, edit.ref) == LONG.encode()


def test_every_line_that_stays_is_a_line_of_the_task() -> None:
    text = long_task(draft(*history(), what=WHAT), WHAT).slots[1].message.text
    lines = [line for line in text.split("\n") if not line.startswith("[")]
    assert set(lines) <= set(LONG.split("\n"))
    assert text.count("characters left out here") == 1


@pytest.mark.parametrize(
    ("messages", "what"),
    [
        pytest.param(history("Mend the accounts."), WHAT, id="a short one"),
        pytest.param((system("s"), user(LONG), assistant("begun")), WHAT, id="the last user message"),
        pytest.param(history(), task(6_000, limit=10_000), id="a preset that does not keep it"),
        pytest.param(history(), task(600_000, limit=900_000, keeps_task=True), id="no more than a tenth"),
        pytest.param(history(), task(6_000, limit=10_000, keeps_task=True, pins=frozenset({1})), id="pinned"),
    ],
)
def test_what_stays_whole(messages: tuple[Message, ...], what: object) -> None:
    before = draft(*messages, what=what)  # type: ignore[arg-type]
    assert long_task(before, what) is before  # type: ignore[arg-type]


def test_texts_beside_it_and_pictures_stay() -> None:
    first = Message(Role.USER, (Text("See below."), Text(LONG)))
    after = long_task(draft(system("s"), first, *history()[2:], what=WHAT), WHAT)
    assert after.slots[1].message.parts[0] == Text("See below.")
    assert len(after.slots[1].message.parts) == 2
    assert after.slots[1].tokens <= 1_000


def test_one_long_line_and_a_small_window_end_too() -> None:
    what = task(900, limit=1_000, keeps_task=True)
    after = long_task(draft(*history("word " * 9_000), what=what), what)
    assert after.slots[1].tokens <= SMALLEST + 8
    assert after.slots[1].message.text.startswith("word word")


def test_the_task_before_a_nudge_is_shortened_as_well() -> None:
    messages = (user("hello"), assistant("hi"), user(LONG), *END, user("continue"))
    before = draft(*messages, what=WHAT)
    assert before.protected[2] is Protection.TASK
    assert COUNTER.message(long_task(before, WHAT).slots[2].message) <= 1_000
