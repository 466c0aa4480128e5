"""Threads as files: out and in again without loss, for people, for other programs, and many in one archive."""

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import (
    Action,
    CallId,
    Edit,
    Entry,
    Gone,
    Image,
    Json,
    Message,
    Point,
    Reasoning,
    Recalled,
    Removal,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Withdrawal,
)
from everlong.errors import InputError
from everlong.store.exports import FORMATS, archive_of, export_name, exported
from everlong.store.imports import import_session
from everlong.store.memory import MemoryThreads
from everlong.store.sessions import Passed, sessions_in, sessions_of
from everlong.wire import packed
from tests.core.build import assistant, user
from tests.wire.sessions.samples import CHATBOX, CHATGPT, EVERLONG

START = datetime(2026, 3, 18, 9, 15, tzinfo=UTC)


def zipped(files: dict[str, bytes]) -> io.BytesIO:
    return io.BytesIO(b"".join(packed(files.items())))


def a_thread(store: MemoryThreads, name: str = "boats", **fields: str) -> str:
    """A thread with everything in it: pictures, calls, thinking, a compaction that was undone, something recalled."""
    store.create(name, owner="app", title="Seven boats", at=START, **fields)  # type: ignore[arg-type]
    entries: list[Entry] = [
        Message(Role.USER, (Text("How many ```boats```?"), Image(data="aGk=", media_type="image/png"))),
        Message(Role.ASSISTANT, (Reasoning("I count."), ToolCall(CallId("c1"), "count", '{"what": "boats"}'))),
        Message(Role.TOOL, (ToolResult(CallId("c1"), (Text("seven\n```\n"),), name="count"),)),
        Message(Role.ASSISTANT, (Text("Seven 七."),), model="gpt-x", ending="stopped"),
        Point(boundary=2, summary=(assistant("They count boats."),), reason="summary", tokens_before=9, tokens_after=4),
        Withdrawal(4),
        Recalled(1, assistant("Long ago there were eight.")),
        user("And now? \ud83d"),
    ]
    for at, entry in enumerate(entries):
        store.append(name, [entry], ids=[f"r{at}"], at=START + timedelta(minutes=at + 1))
    store.pin(name, 0)
    store.pin(name, None, "Always in metres.")
    store.change(
        name, settings='{"threshold": 0.7}', metadata='{"shelf": {"folder": "Sea"}}', at=START + timedelta(days=1)
    )
    return name


WHOLE = exported(source := MemoryThreads(), a_thread(source), "everlong")


def copied(store: MemoryThreads, thread: str) -> MemoryThreads:
    other = MemoryThreads()
    (session,) = sessions_in(exported(store, thread, "everlong"), "file")
    import_session(other, session, owner="app")
    return other


def test_our_own_export_comes_back_without_loss() -> None:
    store = MemoryThreads()
    thread = a_thread(store)
    other = copied(store, thread)
    assert list(other.read(thread)) == list(store.read(thread))
    assert other.thread(thread) == store.thread(thread)
    assert [(pin.order, pin.text) for pin in other.pins(thread)] == [(0, ""), (None, "Always in metres.")]
    assert exported(other, thread, "everlong") == exported(store, thread, "everlong")


texts = st.text(max_size=20) | st.just("lone \ud83d")
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(Reasoning, texts, texts),
    st.builds(Image, st.just("aGk="), st.just("image/png")),
    st.builds(lambda call, text: ToolCall(CallId(call), text, "{}"), texts, texts),
    st.builds(lambda call, text: ToolResult(CallId(call), (Text(text),), failed=True), texts, texts),
)
messages = st.builds(
    Message,
    st.sampled_from(Role),
    st.lists(parts, max_size=3).map(tuple),
    name=texts,
    time=st.none() | st.just(START),
    origin=st.sampled_from(["", "openai-chat"]),
    extra=st.sampled_from(["", '{"a":1}']),
)


@st.composite
def logs(draw: st.DrawFn) -> list[Entry]:
    entries: list[Entry] = []
    for at in range(draw(st.integers(0, 8))):
        points = [order for order, entry in enumerate(entries) if isinstance(entry, Point)]
        kinds = ["message", "message", "point", "recalled"] + ["withdrawal"] * bool(points)
        match draw(st.sampled_from(kinds)):
            case "point":
                edits = [Edit(at=0, step="s", action=Action.DROP, reason=draw(texts), before=2, after=1)] if at else []
                summary = tuple(draw(st.lists(messages, max_size=1)))
                entries.append(
                    Point(boundary=draw(st.integers(0, at)), summary=summary, focus=draw(texts), edits=tuple(edits))
                )
            case "recalled":
                entries.append(Recalled(draw(st.integers(0, at + 1)), draw(messages)))
            case "withdrawal":
                entries.append(Withdrawal(draw(st.sampled_from(points))))
            case _:
                entries.append(draw(messages))
    return entries


@given(log=logs(), title=texts, archived=st.booleans(), split=st.integers(0, 8))
@settings(max_examples=100, deadline=None)
def test_every_thread_survives_the_way_out_and_in(log: list[Entry], title: str, archived: bool, split: int) -> None:
    """Whole at once, or first a part of it and then the rest: rows, times, title and flags are the same."""
    store = MemoryThreads()
    store.create("t", owner="app", title=title, at=START)
    part: list[bytes] = []
    for at, entry in enumerate(log):
        if at == split:
            part.append(exported(store, "t", "everlong"))
        store.append("t", [entry], ids=[f"r{at}"], at=START + timedelta(seconds=at + 1))
    store.change("t", archived=archived, at=START + timedelta(hours=1))
    whole = exported(store, "t", "everlong")
    assert exported(copied(store, "t"), "t", "everlong") == whole
    grown = MemoryThreads()
    for data in (*part, whole, whole):
        (session,) = sessions_in(data, "file")
        import_session(grown, session, owner="app")
    assert [(row.id, row.entry) for row in grown.read("t")] == [(row.id, row.entry) for row in store.read("t")]
    assert len(grown.threads(archived=None)) == 1


def test_deleted_messages_are_in_no_file_and_do_not_come_back_with_an_old_one() -> None:
    store = MemoryThreads()
    thread = a_thread(store)
    before = exported(store, thread, "everlong")
    store.append(thread, [Removal((3, 4))], ids=["removed"])
    for fmt in FORMATS:
        assert "Seven 七." not in exported(store, thread, fmt).decode("utf-8", "surrogatepass")
    other = copied(store, thread)
    assert exported(other, thread, "everlong") == exported(store, thread, "everlong")
    assert [row.entry for row in other.read(thread)][3:6] == [Gone()] * 3
    (old,) = sessions_in(before, "file")
    for known in (store, other):
        assert (import_session(known, old, owner="app").messages, len(known.threads())) == (0, 1)


def test_a_branch_comes_back_as_a_branch_of_its_thread() -> None:
    store, other = MemoryThreads(), MemoryThreads()
    thread = a_thread(store)
    store.branch(thread, 3, "branch", title="Another way", at=START + timedelta(days=2))
    store.append("branch", [assistant("Six.")], ids=["b1"], at=START + timedelta(days=3))
    archive = b"".join(archive_of(store, sorted(store.threads(), key=lambda each: each.created), "everlong"))
    for session in sessions_of(io.BytesIO(archive), "all.zip"):
        assert not isinstance(session, Passed)
        import_session(other, session, owner="app")
    assert other.thread("branch").parent == (thread, 3)
    assert exported(other, "branch", "everlong") == exported(store, "branch", "everlong")


def test_threads_of_others_are_never_touched() -> None:
    """A file may name any id; it must not lead into a conversation of somebody else."""
    store = MemoryThreads()
    thread = a_thread(store)
    (session,) = sessions_in(exported(store, thread, "everlong"), "file")
    before = list(store.read(thread))
    imported = import_session(store, session, owner="somebody else")
    assert (imported.thread, imported.new) == (f"2~{thread}", True)
    assert list(store.read(thread)) == before
    assert import_session(store, session, owner="somebody else").known == len(before)


def test_other_branches_of_ChatGPT_become_branches_and_the_same_export_adds_nothing() -> None:
    store = MemoryThreads()
    data = json.dumps([CHATGPT]).encode()
    first = [import_session(store, session) for session in sessions_in(data, "conversations")]
    assert [(each.thread, each.branch_of, each.messages) for each in first] == [
        ("conversation-1", "", 6),
        ("2~conversation-1", "conversation-1", 1),
    ]
    assert store.thread("conversation-1").title == "Seven boats"
    again = [import_session(store, session) for session in sessions_in(data, "conversations")]
    assert [(each.new, each.messages) for each in again] == [(False, 0), (False, 0)]


HOSTILE: dict[str, tuple[object, str]] = {
    "a text that is a number": ({"entry": {"role": "user", "parts": [{"type": "text", "text": 7}]}}, "parts[0].text"),
    "an unknown part": ({"entry": {"role": "user", "parts": [{"type": "x"}]}}, "'x'"),
    "an unknown kind": ({"kind": "x"}, "unknown kind"),
    "no time": ({"time": "yesterday"}, "time must be"),
    "carried fields that are none": (
        {"entry": {"role": "user", "parts": [], "extra": "[1]"}},
        "extra must be",
    ),
    "a withdrawal of the future": ({"kind": "withdrawal", "entry": {"point": 5}}, "does not come before it"),
    "a point beyond": ({"kind": "point", "entry": {"boundary": 9, "summary": []}}, "does not come before it"),
    "an id that comes twice": ({"id": "r1"}, "appears twice"),
}


@pytest.mark.parametrize(("change", "told"), HOSTILE.values(), ids=HOSTILE)
def test_a_file_that_somebody_changed_is_refused_with_the_field(change: dict[str, object], told: str) -> None:
    rows = [dict(row) for row in EVERLONG["rows"]]  # type: ignore[union-attr, arg-type]
    rows[0] |= change  # type: ignore[arg-type]
    with pytest.raises(InputError) as caught:
        sessions_in(json.dumps(EVERLONG | {"rows": rows}).encode(), "file")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
anything = leaves | st.lists(leaves, max_size=2) | st.dictionaries(st.text(max_size=6), leaves, max_size=2)


def spoiled(raw: Json, draw: st.DrawFn) -> Json:
    """The same with a few values replaced by anything."""
    if draw(st.integers(0, 15)) == 0:
        return draw(anything)
    if isinstance(raw, dict):
        return {key: spoiled(value, draw) for key, value in raw.items()}
    return [spoiled(value, draw) for value in raw] if isinstance(raw, list) else raw


@st.composite
def spoiled_exports(draw: st.DrawFn) -> bytes:
    raw = draw(st.sampled_from([json.loads(WHOLE), EVERLONG, CHATGPT, CHATBOX]))
    return json.dumps(spoiled(raw, draw)).encode()


@given(spoiled_exports())
@settings(max_examples=200, deadline=None)
def test_whatever_is_in_a_file_it_becomes_a_thread_or_is_refused_in_one_line(data: bytes) -> None:
    store, told = MemoryThreads(), ""
    try:
        for session in sessions_in(data, "file"):
            thread = import_session(store, session).thread
            exported(store, thread, "everlong")
            exported(store, thread, "markdown")
    except InputError as error:
        told = str(error)
    assert "\n" not in told


def test_settings_that_the_engine_does_not_know_are_left_out() -> None:
    (session,) = sessions_in(json.dumps(EVERLONG | {"settings": {"rockets": 7}}).encode(), "file")
    assert session.settings == "{}"
    assert "rockets" in session.warnings[0]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_markdown_for_people(language: str) -> None:
    store = MemoryThreads()
    text = exported(store, a_thread(store), "markdown", language=language).decode()
    assert text.startswith("# Seven boats\n")
    for said in (
        "How many ```boats```?",
        "Seven 七.",
        "They count boats.",
        "2026-03-18 09:16 UTC",
        "data:image/png",
        "gpt-x",
    ):
        assert said in text
    assert text.count("<details>") == text.count("</details>") == 5
    assert "````\nseven\n```\n\n````" in text  # a fence inside a result does not end its block
    assert ("You" in text, "你" in text) == ((True, False) if language == "en" else (False, True))


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if fmt != "markdown"])
def test_every_other_file_can_be_read_again(fmt: str) -> None:
    store = MemoryThreads()
    thread = a_thread(store)
    (session,) = sessions_in(exported(store, thread, fmt), "file")
    texts = "\n".join(message.text for _, message in session.messages)
    assert "Seven 七." in texts
    assert export_name(store.thread(thread), fmt).startswith("2026-03-18-seven-boats-boats.")


@given(at=st.integers(0, 400), byte=st.integers(0, 255), cut=st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_a_damaged_archive_is_read_or_refused_in_one_line(at: int, byte: int, cut: int) -> None:
    data = bytearray(zipped({"a.json": json.dumps(EVERLONG).encode(), "b.json": b"{}"}).getvalue())
    data[at % len(data)] = byte
    data = data[: len(data) - cut % 200]
    told = ""
    try:
        for session in sessions_of(io.BytesIO(bytes(data)), "x.zip"):
            if not isinstance(session, Passed):
                import_session(MemoryThreads(), session)
    except InputError as error:
        told = str(error)
    assert "\n" not in told


def test_an_archive_without_a_conversation_says_what_was_in_it() -> None:
    with pytest.raises(InputError, match=r"the archive contains no conversation: user\.json"):
        list(sessions_of(zipped({"user.json": b'{"id": "u", "email": "x"}'}), "export.zip"))
