"""Notes in memory: bounded in bytes, the ones in use stay, one client's are not another's."""

from everlong.gateway.conversations.opaque import Notes


def test_long_notes_take_no_more_than_their_room() -> None:
    notes = Notes[str](100_000, len)
    for number in range(1_000):
        notes.keep(("scope", f"call {number}"), "x" * 10_000)
    assert 5 <= len(notes) <= 10
    assert notes.get(("scope", "call 999")) == "x" * 10_000
    assert ("scope", "call 0") not in notes


def test_a_note_that_is_written_again_takes_its_room_once() -> None:
    notes = Notes[str](100_000, len)
    notes.keep(("scope", "first"), "1")
    for _ in range(1_000):
        notes.keep(("scope", "call"), "x" * 10_000)
    assert notes.get(("scope", "first")) == "1"


def test_what_is_in_use_stays() -> None:
    notes = Notes[str](100_000, len)
    notes.keep(("scope", "used"), "1")
    for number in range(1_000):
        notes.keep(("scope", f"call {number}"), "x" * 10_000)
        assert notes.get(("scope", "used")) == "1"


def test_nothing_is_a_note_too_and_scopes_are_apart() -> None:
    notes = Notes[str](16 * 1024 * 1024, len)
    notes.keep(("one", "call"), None)
    notes.keep(("two", "call"), "2")
    assert ("one", "call") in notes
    assert notes.get(("one", "call")) is None
    assert ("three", "call") not in notes
    notes.keep(("two", "call"), None)
    assert notes.get(("two", "call")) == "2"
