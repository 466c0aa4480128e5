"""Sessions of other programs become threads: names, titles, times and compactions kept, nothing twice."""

import json
from datetime import UTC, datetime

import pytest

from everlong.core import Message, Point, Withdrawal
from everlong.store.exports import exported
from everlong.store.imports import import_session
from everlong.store.memory import MemoryThreads
from everlong.store.sessions import Session, sessions_in
from tests.wire.sessions import samples

CHATBOX = {
    "id": "chat-1",
    "name": "Ships",
    "type": "chat",
    "settings": {"modelId": "gpt-4o"},
    "messages": [
        {"id": "m1", "role": "user", "contentParts": [{"type": "text", "text": "What floats?"}], "timestamp": 1_000},
        {"id": "m2", "role": "assistant", "contentParts": [{"type": "text", "text": "Boats."}], "timestamp": 2_000},
        {"id": "s1", "role": "assistant", "contentParts": [{"type": "text", "text": "They spoke of boats."}]},
        {"id": "m3", "role": "user", "contentParts": [{"type": "text", "text": "And 船?"}], "timestamp": 3_000},
    ],
    "compactionPoints": [{"summaryMessageId": "s1", "boundaryMessageId": "m2", "createdAt": 2_500}],
    "threads": [
        {
            "id": "old-thread",
            "name": "Earlier",
            "messages": [{"id": "o1", "role": "user", "contentParts": [{"type": "text", "text": "Hello"}]}],
        }
    ],
}


def lines(records: list[dict[str, object]]) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()


def kept(session: Session) -> tuple[MemoryThreads, str]:
    store = MemoryThreads()
    return store, import_session(store, session).thread


def test_chatbox_keeps_ids_times_points_and_archived_threads() -> None:
    current, older = sessions_in(json.dumps(CHATBOX).encode(), "export")
    assert (current.id, current.title, current.model, current.archived) == ("chat-1", "Ships", "gpt-4o", False)
    assert (older.id, older.title, older.archived) == ("old-thread", "Earlier", True)
    store, thread = kept(current)
    rows = list(store.read(thread))
    assert [row.id for row in rows] == ["m1", "m2", "s1", "m3"]
    point = rows[2].entry
    assert isinstance(point, Point)
    assert (point.boundary, [message.text for message in point.summary]) == (2, ["They spoke of boats."])
    first = rows[0].entry
    assert isinstance(first, Message)
    assert first.time == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    import_session(store, older)
    assert [one.id for one in store.threads(archived=True)] == ["old-thread"]


#: sample -> id, title, points, what is sent now begins with
SESSIONS = {
    "pi 1": (samples.PI_1, "s", "old question", 1, "We spoke."),
    "pi 3": (samples.PI_3, "s", "reading", 1, "Read a.py"),
    "claude code": (samples.CLAUDE, "s", "Reading files", 0, "read both files"),
    "claude code, compacted": (samples.CLAUDE_COMPACTED, "s", "long work", 1, "This is what happened before."),
    "codex": (samples.CODEX, "s", "read a.py", 1, "You code."),
    "nanobot": (samples.NANOBOT_NEWER, "cli:direct", "look at this [image: media/cat.png]", 1, "We saw a cat."),
}


@pytest.mark.parametrize(("records", "name", "title", "points", "begins"), SESSIONS.values(), ids=SESSIONS)
def test_every_program_s_sessions_are_understood(
    records: list[dict[str, object]], name: str, title: str, points: int, begins: str
) -> None:
    (session,) = sessions_in(lines(records), "file")
    assert (session.id, session.title) == (name, title)
    store, thread = kept(session)
    assert store.thread(thread).points == points
    assert begins in store.open(thread).messages[0].text
    again = import_session(store, session)
    assert (again.messages, again.points, again.new, again.known) == (0, 0, False, len(session.entries))


def test_a_session_without_a_name_is_named_after_its_file() -> None:
    body = [{"role": "user", "content": "  # Hello\nthere"}, {"role": "assistant", "content": "hi"}]
    (session,) = sessions_in(json.dumps(body).encode(), "notes")
    assert (session.id, session.title) == ("notes", "Hello there")
    many = sessions_in(lines([{"messages": body}, {"messages": body[:1]}]), "set")
    assert [one.id for one in many] == ["set#1", "set#2"]


def test_equal_messages_are_kept_as_often_as_they_were_said() -> None:
    body = [{"role": "user", "content": "again"}] * 3
    (session,) = sessions_in(json.dumps(body).encode(), "file")
    store, thread = kept(session)
    assert store.thread(thread).messages == 3
    (longer,) = sessions_in(json.dumps([*body, body[0]]).encode(), "file")
    assert import_session(store, longer).messages == 1
    assert store.thread(thread).messages == 4


def test_a_shorter_file_adds_and_takes_away_nothing() -> None:
    body = [{"role": "user", "content": f"{turn}"} for turn in range(5)]
    (session,), (shorter,) = (sessions_in(json.dumps(body[:end]).encode(), "file") for end in (5, 3))
    store, thread = kept(session)
    assert import_session(store, shorter).messages == 0
    assert store.thread(thread).messages == 5


def test_what_was_undone_here_stays_undone_when_the_file_grows() -> None:
    records = list(samples.NANOBOT_NEWER)
    (session,) = sessions_in(lines(records), "file")
    store, thread = kept(session)
    store.append(thread, [Withdrawal(store.points(thread)[0][0].order)])
    (grown,) = sessions_in(lines([*records, {"role": "assistant", "content": "A dog."}]), "file")
    done = import_session(store, grown)
    assert (done.thread, done.messages, done.points) == (thread, 1, 0)
    sent = [message.text for message in store.open(thread).messages]
    assert sent[0].startswith("look at this")
    assert sent[-1] == "A dog."


def test_progress_tells_every_row() -> None:
    body = [{"role": "user", "content": f"{turn}"} for turn in range(450)]
    (session,) = sessions_in(json.dumps(body).encode(), "file")
    told: list[int] = []
    import_session(MemoryThreads(), session, progress=told.append)
    assert sum(told) == 450
    assert len(told) > 1


@pytest.mark.parametrize("records", [case[0] for case in SESSIONS.values()], ids=SESSIONS)
def test_what_was_imported_can_be_exported_for_nanobot_and_read_again(records: list[dict[str, object]]) -> None:
    (session,) = sessions_in(lines(records), "file")
    store, thread = kept(session)
    (back,) = sessions_in(exported(store, thread, "nanobot"), "file")
    assert back.id == thread
    spoken = [entry.text for _, entry in session.entries if isinstance(entry, Message) and entry.role != "system"]
    assert [entry.text for _, entry in back.entries if isinstance(entry, Message)] == spoken
