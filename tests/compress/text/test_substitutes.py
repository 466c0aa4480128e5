"""Where a part stood in the history, after other steps took parts out or changed them."""

from everlong.compress.text.substitutes import Shorter, is_stub, original, shorten, with_stub
from everlong.core import CallId, Message, Reasoning, Role, Text, ToolResult, ref_of
from tests.compress.lossless import ENDING, PICTURE, SOURCE, draft, task

THOUGHT = Message(Role.ASSISTANT, (Reasoning("hm"), Text("first words"), Text(SOURCE)))
SHORT = Text("short")


def test_parts_are_found_after_others_went() -> None:
    start = draft((THOUGHT, *ENDING))
    without = start.with_messages([(0, THOUGHT.with_parts(THOUGHT.parts[1:]), 99)], ())
    assert original(start, 0, 2) == (2, ref_of(SOURCE))
    assert original(without, 0, 1) == (2, ref_of(SOURCE))
    assert original(without, 0, 0) == (1, ref_of("first words"))


def test_a_changed_part_keeps_the_reference_of_what_was_given() -> None:
    start = draft((THOUGHT, *ENDING))
    changed = start.with_messages([(0, THOUGHT.with_parts((*THOUGHT.parts[:2], Text("other"))), 99)], ())
    assert original(changed, 0, 2) == (2, ref_of(SOURCE))


def test_results_are_found_by_their_call() -> None:
    results = tuple(ToolResult(CallId(name), (Text(f"{name} said"),)) for name in "abc")
    start = draft((Message(Role.TOOL, results), *ENDING))
    last = start.with_messages([(0, Message(Role.TOOL, (ToolResult(CallId("c"), (Text("c, cleaned"),)),)), 9)], ())
    assert original(last, 0, 0) == (2, ref_of("c said"))


def test_what_was_never_given_has_its_own_reference() -> None:
    start = draft((Message(Role.USER, (PICTURE,)), *ENDING))
    other = start.with_messages([(0, Message(Role.USER, (SHORT, PICTURE)), 9)], ())
    assert original(other, 0, 0) == (None, ref_of("short"))


def test_several_changes_of_one_message_add_up_and_what_gains_nothing_is_not_made() -> None:
    start = draft((Message(Role.USER, (Text(SOURCE), Text("ok"), Text(SOURCE))), *ENDING))
    after = shorten(
        start, task(), "test", [Shorter(0, 0, SHORT, "a"), Shorter(0, 1, SHORT, "b"), Shorter(0, 2, SHORT, "c")]
    )
    assert after.messages[0].parts == (SHORT, Text("ok"), SHORT)
    first, second = after.edits
    assert (first.before, first.after, second.after) == (start.slots[0].tokens, second.before, after.slots[0].tokens)
    assert (first.part, second.part) == (0, 2)


def test_nothing_gained_is_nothing_changed() -> None:
    start = draft(ENDING)
    assert shorten(start, task(), "test", [Shorter(0, 0, Text("Done. Or not?"), "no gain")]) is start


def test_a_stub_stands_for_all_words_and_keeps_the_first_ones_fields() -> None:
    result = ToolResult(CallId("a"), (PICTURE, Text("one", '{"cache_control":1}'), Text("two")))
    assert with_stub(result, "stub").content == (PICTURE, Text("stub", '{"cache_control":1}'))


def test_stubs_are_known_in_both_languages() -> None:
    assert is_stub("[same text; ref 0123456789abcdef]")
    assert is_stub('[内容相同；引用 0123456789abcdef；可用 recall("0123456789abcdef") 取回]')
    assert not is_stub("[same text; ref 0123456789abcdef]\nand more")
    assert not is_stub("see ref 0123456789abcdef")
