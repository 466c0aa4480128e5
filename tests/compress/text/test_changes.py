"""Changes to parts, and the edits that tell of them."""

from everlong.compress.text.changes import Cause, Change, Origins, rewrite
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
    part_ref,
)
from tests.compress.talks import assert_accounted, draft, task
from tests.core.build import user

CAUSE = Cause("test", "because")
SAID = Message(
    Role.ASSISTANT,
    (Reasoning("first I think"), Text("then I talk"), ToolCall(CallId("1"), "read_file", '{"path": "a"}')),
)


def test_nothing_to_change_gives_the_same_draft() -> None:
    given = draft(user("hi"))
    assert rewrite(given, task(), CAUSE, []) is given


def test_parts_keep_the_index_they_had_in_the_history() -> None:
    once = rewrite(draft(SAID), task(), CAUSE, [Change(0, 0, None)])
    twice = rewrite(once, task(), CAUSE, [Change(0, 0, Text("shorter"))])
    assert [(edit.part, edit.action) for edit in twice.edits] == [(0, Action.DROP), (1, Action.SHORTEN)]
    assert twice.edits[1].ref == part_ref(SAID.parts[1])
    assert_accounted(twice, task())


def test_a_reference_is_of_the_original_however_often_it_was_changed() -> None:
    once = rewrite(draft(SAID), task(), CAUSE, [Change(0, 1, Text("shorter"))])
    twice = rewrite(once, task(), CAUSE, [Change(0, 1, Text("short"))])
    assert twice.edits[1].ref == part_ref(SAID.parts[1])
    assert twice.edits[1].before == twice.edits[0].after


def test_a_message_left_with_nothing_goes_as_a_whole() -> None:
    empty = Message(Role.ASSISTANT, (Text(" \n"), Reasoning("hm")))
    after = rewrite(draft(user("hi"), empty), task(), CAUSE, [Change(1, 1, None)])
    assert [slot.at for slot in after.slots] == [0]
    assert [(edit.at, edit.part, edit.ref) for edit in after.edits] == [(1, None, message_ref(empty))]


def test_what_the_content_does_not_say_is_behind_the_reference_of_the_message() -> None:
    sealed = Message(Role.ASSISTANT, (Reasoning("", signature="x"), Text("a"), ToolCall(CallId("1"), "now", "{}")))
    shown = Message(Role.TOOL, (ToolResult(CallId("1"), (Text("a"), Image(url="https://example.org/a.png"))),))
    given = draft(sealed, shown)
    origins = Origins(given)
    assert origins.ref(given.slots[0], 0, dropped=True) == message_ref(sealed)
    assert origins.ref(given.slots[0], 2, dropped=True) == message_ref(sealed)
    assert origins.ref(given.slots[0], 2) == part_ref(sealed.parts[2])
    assert origins.ref(given.slots[1], 0) == message_ref(shown)
