"""Long messages keep their head and tail."""

import pytest

from everlong.compress.steps.trims.long_messages import long_messages
from everlong.core import Message, Role, Text, ref_of
from tests.compress.talks import assert_lawful, draft, task
from tests.core.build import assistant, calls, result, system, user

PASTE = "a" * 30_000 + "b" * 20_000


def test_head_and_tail_in_the_ratio_three_to_one_within_the_limit() -> None:
    before = draft(user(PASTE), assistant("ok"), user("next"))
    after = long_messages(before, task())
    text = after.messages[0].text
    head, marker, tail = text.split("\n")
    assert len(head) / len(tail) == pytest.approx(3, rel=0.01)
    assert 29_000 < len(text) <= 30_000
    assert marker == f"[{50_000 - len(head) - len(tail)} of 50000 characters left out here; ref {ref_of(PASTE)}]"
    assert_lawful(before, after, task())


@pytest.mark.parametrize(
    ("message", "limit"), [(user("u" * 29_999), 30_000), (assistant("a" * 19_999), 20_000)], ids=["user", "assistant"]
)
def test_each_role_has_its_limit(message: Message, limit: int) -> None:
    longer = message.with_parts((Text(message.text + "xx"),))
    assert long_messages(draft(message, user("next")), task()).edits == ()
    after = long_messages(draft(longer, user("next")), task())
    assert limit * 0.95 < len(after.messages[0].text) <= limit


def test_the_last_round_and_system_text_are_exempt() -> None:
    before = draft(system(PASTE), user("go"), Message(Role.SYSTEM, (Text(PASTE),)), user(PASTE), assistant(PASTE))
    assert long_messages(before, task()) == before
    shorter = long_messages(before, task(), keep_last_round=False)
    assert [edit.at for edit in shorter.edits] == [4]


def test_zero_switches_it_off() -> None:
    before = draft(user(PASTE), assistant(PASTE), user("next"))
    assert long_messages(before, task(), user=0, assistant=0) == before


def test_tool_results_are_not_messages() -> None:
    before = draft(user("go"), calls("1"), result("1", PASTE), user("next"))
    assert long_messages(before, task()) == before


def test_short_texts_beside_a_long_one_stay_whole() -> None:
    message = Message(Role.USER, (Text("Fix this:"), Text(PASTE), Text("Thanks!")))
    before = draft(message, user("next"))
    after = long_messages(before, task())
    first, paste, last = after.messages[0].parts
    assert (first, last) == (message.parts[0], message.parts[2])
    assert isinstance(paste, Text)
    assert 29_000 < len(paste.text) + 16 <= 30_000
    assert_lawful(before, after, task())


def test_a_signed_text_is_not_cut() -> None:
    signed = Message(Role.ASSISTANT, (Text(PASTE, extra='{"thoughtSignature":"c2ln"}'),))
    assert long_messages(draft(signed, user("next")), task()).edits == ()


def test_a_limit_too_small_for_a_marker_still_ends() -> None:
    before = draft(user(PASTE), user("next"))
    after = long_messages(before, task(), user=10)
    assert len(after.messages[0].text) <= 400
    assert long_messages(after, task(), user=10) == after
