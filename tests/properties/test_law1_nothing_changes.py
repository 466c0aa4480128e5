"""Law 1: nothing stored changes. A compaction is an added point, undo an added withdrawal; what is sent is a view."""

from dataclasses import FrozenInstanceError, dataclass

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Entry, Message, Point, Role, Text, Withdrawal, encode, encode_all, head_length, view
from everlong.core.points import Log, newest_point
from tests.properties.wishes import PRESET_NAMES, ROLLING, broken, proper, seen, wishes

often = settings(max_examples=40, deadline=None)

SUMMARY = Message(Role.USER, (Text("What happened before, in short."),))


@dataclass
class Written:
    """A log as a store would write it: what was appended stays as it was."""

    log: Log = ()
    lines: tuple[str, ...] = ()

    def append(self, entry: Entry) -> None:
        self.log = (*self.log, entry)
        self.lines = (*self.lines, repr(entry))
        assert tuple(map(repr, self.log)) == self.lines


@often
@given(history=proper(), throws=st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_law1_points_and_withdrawals_are_only_ever_added(history: tuple[Message, ...], throws: list[int]) -> None:
    written = Written()
    for message in history:
        written.append(message)
    for throw in throws:
        before = view(written.log)
        point = newest_point(written.log)
        if throw == 0 and point is not None:
            written.append(Withdrawal(point[0]))
        else:
            written.append(Point(boundary=len(history) * throw // 4, summary=(SUMMARY,)))
            assert view(written.log)[: head_length(history)] == history[: head_length(history)]
            written.append(Withdrawal(len(written.log) - 1))
            assert view(written.log) == before
    assert tuple(entry for entry in written.log if isinstance(entry, Message)) == history


@often
@given(history=proper(), boundary=st.integers(0, 30))
def test_law1_undo_gives_back_the_very_same_view(history: tuple[Message, ...], boundary: int) -> None:
    at = min(boundary, len(history))
    compacted: Log = (*history, Point(boundary=at, summary=(SUMMARY,)))
    assert view((*compacted, Withdrawal(len(history)))) == history
    more = Message(Role.USER, (Text("and then?"),))
    assert view((*compacted, more))[-1] is more
    assert view((*compacted, more, Withdrawal(len(history)))) == (*history, more)


@pytest.mark.parametrize("preset", PRESET_NAMES)
@often
@given(data=st.data())
def test_law1_a_view_changes_nothing_of_what_it_is_made_from(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(proper() | broken()), data.draw(wishes(preset, deep=True))
    stored = encode_all(history)
    view_made = seen(history, wish)
    assert encode_all(history) == stored
    assert view_made is None or view_made.history == history


@pytest.mark.parametrize("preset", ROLLING)
@often
@given(data=st.data())
def test_law1_an_earlier_view_is_not_changed_by_a_later_one(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(proper()), data.draw(wishes(preset, deep=True))
    earlier = seen(history[: len(history) // 2], wish)
    if earlier is not None:
        sent, edits = encode_all(earlier.messages), earlier.edits
        seen(history, wish, earlier)
        assert (encode_all(earlier.messages), earlier.edits) == (sent, edits)


@pytest.mark.parametrize("field", ["role", "parts", "extra"])
def test_law1_a_message_cannot_be_changed(field: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(SUMMARY, field, None)
    assert encode(SUMMARY) == encode(Message(Role.USER, (Text("What happened before, in short."),)))
