"""nanobot's sessions continued by us, and ours by nanobot, on files of its format."""

import json
from pathlib import Path
from typing import Any

import pytest

from everlong.core import Message, Point, Withdrawal
from everlong.errors import InputError, StoreError
from everlong.store.jsonl import JsonlThreads
from tests.core.build import assistant, calls, result, system, user
from tests.store.contract.entries import EVERYTHING, HOSTILE_TEXTS, point, talk
from tests.store.jsonl.session_files import MOMENT, NanobotSession, path_of, replayed

KEY = "telegram:42"


def written_by_nanobot(folder: Path, **more: Any) -> NanobotSession:
    session = NanobotSession(KEY, **more)
    session.say("user", "The lamp is blue.", media=["/pictures/lamp.png"])
    session.say("assistant", "", tool_calls=[{"id": "c", "type": "function", "function": {"name": "look"}}])
    session.say("tool", "blue", tool_call_id="c", name="look")
    session.say("assistant", "Blue it is.", reasoning_content="hm")
    session.save(folder)
    return session


def texts(store: JsonlThreads, key: str = KEY) -> list[str]:
    return [row.entry.text for row in store.read(key) if isinstance(row.entry, Message)]


def test_a_session_of_nanobot_is_a_thread(tmp_path: Path) -> None:
    written_by_nanobot(tmp_path, metadata={"title": "Lamps", "model_preset": "fast"})
    with JsonlThreads(tmp_path) as store:
        (thread,) = store.threads()
        assert (thread.id, thread.title, thread.length) == (KEY, "Lamps", 4)
        assert json.loads(thread.metadata) == {"model_preset": "fast"}
        assert thread.created == thread.updated
        assert texts(store)[-1] == "Blue it is."


def test_continuing_leaves_what_nanobot_wrote_byte_for_byte(tmp_path: Path) -> None:
    written_by_nanobot(tmp_path)
    before = path_of(tmp_path, KEY).read_bytes()
    with JsonlThreads(tmp_path) as store:
        store.append(KEY, [*talk(2), point(3)])
    after = path_of(tmp_path, KEY).read_bytes()
    assert len(after) > len(before)
    stamp = before.index(MOMENT.encode(), before.index(b"updated_at"))
    end = stamp + len(MOMENT)
    assert after[:stamp] + before[stamp:end] + after[end : len(before)] == before


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_nanobot_saves_what_we_wrote_without_changing_a_row(tmp_path: Path, text: str) -> None:
    with JsonlThreads(tmp_path) as store:
        store.create(KEY)
        said = [
            system(text),
            user(text),
            EVERYTHING,
            calls("1", "2", arguments=text),
            result("1", text),
            point(2, text),
        ]
        rows = list(store.append(KEY, said))
        thread = store.change(KEY, title=text, settings=json.dumps({"text": text}))
        pins = store.pin(KEY, 1), store.pin(KEY, None, f"pin {text}")
        NanobotSession.load(tmp_path, KEY).save(tmp_path)
        assert list(store.read(KEY)) == rows
        assert [row.entry for row in rows] == said
        assert (store.thread(KEY), store.pins(KEY)) == (thread, pins)
        assert store.warnings == ()


def test_SB_4_the_summary_is_in_the_metadata_and_what_it_covers_stays_in_the_file(tmp_path: Path) -> None:
    written_by_nanobot(tmp_path)
    with JsonlThreads(tmp_path) as store:
        store.append(KEY, [*talk(1), point(4, "The lamp is blue.")])
    session = NanobotSession.load(tmp_path, KEY)
    assert session.metadata["_last_summary"]["text"] == "The lamp is blue."
    assert session.last_consolidated == 4
    assert session.messages[0]["content"] == "The lamp is blue."
    assert replayed(session) == ["turn 0, question", "turn 0, answer"]
    with JsonlThreads(tmp_path) as store:
        assert store.open(KEY).messages == (user("The lamp is blue."), *talk(1))


def test_SB_4_the_summary_survives_what_nanobot_does_next(tmp_path: Path) -> None:
    written_by_nanobot(tmp_path)
    with JsonlThreads(tmp_path) as store:
        store.append(KEY, [*talk(1), point(4, "first"), *talk(1), point(7, "second")])
        points = store.points(KEY)
    session = NanobotSession.load(tmp_path, KEY)
    session.say("user", "from nanobot")
    session.save(tmp_path)
    with JsonlThreads(tmp_path) as store:
        assert store.points(KEY) == points
        assert store.open(KEY).messages[0].text == "second"
        assert texts(store)[-1] == "from nanobot"


@pytest.mark.parametrize("place", ["_last_summary", "metadata", "top"])
def test_N1_8_summaries_of_old_files_are_points(tmp_path: Path, place: str) -> None:
    session = written_by_nanobot(tmp_path, last_consolidated=2)
    if place == "_last_summary":
        session.metadata = {"_last_summary": {"text": "old", "last_active": MOMENT}}
    elif place == "metadata":
        session.metadata = {"summary": "old"}
    session.save(tmp_path)
    if place == "top":
        path = path_of(tmp_path, KEY)
        first, rest = path.read_text(encoding="utf-8").split("\n", 1)
        path.write_text(json.dumps(json.loads(first) | {"summary": "old"}) + "\n" + rest, encoding="utf-8")
    with JsonlThreads(tmp_path) as store:
        opened = store.open(KEY)
        assert opened.point is not None
        assert isinstance(opened.point.entry, Point)
        assert (opened.point.order, opened.point.entry.boundary) == (4, 2)
        assert "old" in opened.messages[0].text
        (row,) = store.append(KEY, [user("next")], expected=5)
        assert (row.order, store.points(KEY)) == (5, [(opened.point, True)])


def test_N1_8_an_old_file_without_a_summary_loads(tmp_path: Path) -> None:
    path_of(tmp_path, KEY).write_text('{"role": "user", "content": "bare"}\n', encoding="utf-8")
    with JsonlThreads(tmp_path) as store:
        assert store.open(KEY).messages[0].text == "bare"
        store.append(KEY, [assistant("yes"), point(1, "said bare")])
        assert texts(store) == ["bare", "yes"]
    assert NanobotSession.load(tmp_path, KEY).metadata["_last_summary"]["text"] == "said bare"


def test_nanobots_own_summary_after_ours_is_the_newest_point_and_can_be_withdrawn(tmp_path: Path) -> None:
    written_by_nanobot(tmp_path)
    with JsonlThreads(tmp_path) as store:
        store.append(KEY, [*talk(1), point(4, "ours")])
    session = NanobotSession.load(tmp_path, KEY)
    session.metadata["_last_summary"] = {"text": "its own", "last_active": MOMENT}
    session.last_consolidated = 6
    session.save(tmp_path)
    with JsonlThreads(tmp_path) as store:
        own = store.open(KEY).point
        assert own is not None
        assert "its own" in store.open(KEY).messages[0].text
        store.append(KEY, [Withdrawal(own.order)])
        assert store.open(KEY).messages[0].text == "ours"
    session = NanobotSession.load(tmp_path, KEY)
    assert (session.metadata["_last_summary"]["text"], session.last_consolidated) == ("ours", 4)


def test_a_withdrawn_point_is_no_summary_for_nanobot(tmp_path: Path) -> None:
    written_by_nanobot(tmp_path)
    with JsonlThreads(tmp_path) as store:
        store.append(KEY, [point(4, "wrong")])
        store.append(KEY, [Withdrawal(4)])
    session = NanobotSession.load(tmp_path, KEY)
    assert "_last_summary" not in session.metadata
    assert session.last_consolidated == 0


def test_a_point_inside_a_round_lets_nanobot_start_at_its_question(tmp_path: Path) -> None:
    written_by_nanobot(tmp_path)
    with JsonlThreads(tmp_path) as store:
        store.append(KEY, [user("q"), calls("1"), result("1", "r"), point(6, "asked q")])
    assert replayed(NanobotSession.load(tmp_path, KEY)) == ["q", None, "r"]


def test_system_text_points_and_withdrawals_are_never_sent_by_nanobot(tmp_path: Path) -> None:
    with JsonlThreads(tmp_path) as store:
        store.create(KEY)
        store.append(KEY, [system("secret"), *talk(1), point(1, "secret"), Withdrawal(3)])
    assert replayed(NanobotSession.load(tmp_path, KEY)) == ["turn 0, question", "turn 0, answer"]


def test_a_row_that_nanobot_puts_in_between_moves_points_and_pins_along(tmp_path: Path) -> None:
    with JsonlThreads(tmp_path) as store:
        store.create(KEY)
        store.append(KEY, [*talk(2), point(2, "sum"), *talk(1)])
        store.pin(KEY, 3)
        session = NanobotSession.load(tmp_path, KEY)
        session.messages.insert(1, {"role": "user", "content": "put in", "timestamp": MOMENT})
        session.save(tmp_path)
        assert store.open(KEY).messages == (user("sum"), *talk(2)[2:], *talk(1))
        assert [pin.order for pin in store.pins(KEY)] == [4]
        assert store.warnings == ()


def test_a_session_that_nanobot_cleared_is_empty_and_goes_on(tmp_path: Path) -> None:
    with JsonlThreads(tmp_path) as store:
        store.create(KEY, title="kept")
        store.append(KEY, [*talk(2), point(2)])
        store.pin(KEY, 0)
        session = NanobotSession.load(tmp_path, KEY)
        session.messages, session.last_consolidated = [], 0
        session.metadata.pop("_last_summary")
        session.save(tmp_path)
        assert (store.thread(KEY).length, store.pins(KEY), store.thread(KEY).title) == (0, (), "kept")
        store.append(KEY, talk(1))
        assert store.open(KEY).messages == talk(1)


def test_what_nanobot_changes_in_the_first_line_alone_counts(tmp_path: Path) -> None:
    written_by_nanobot(tmp_path, metadata={"title": "old"})
    path = path_of(tmp_path, KEY)
    with JsonlThreads(tmp_path) as store:
        store.append(KEY, [point(2, "sum")])
        first, rest = path.read_text(encoding="utf-8").split("\n", 1)
        fields = json.loads(first)
        fields["metadata"] |= {"title": "new", "session_handle": "h"}
        path.write_text(json.dumps(fields) + "\n" + rest, encoding="utf-8")
        assert store.thread(KEY).title == "new"
        store.append(KEY, [user("next")])
    session = NanobotSession.load(tmp_path, KEY)
    assert (session.metadata["title"], session.metadata["session_handle"]) == ("new", "h")
    assert session.metadata["_last_summary"]["text"] == "sum"


def test_a_new_title_stands_in_the_line_that_nanobot_lists(tmp_path: Path) -> None:
    written_by_nanobot(tmp_path, metadata={"title": "old"})
    with JsonlThreads(tmp_path) as store:
        store.append(KEY, [point(2, "sum")])
        store.change(KEY, title="new")
    first = json.loads(path_of(tmp_path, KEY).read_text(encoding="utf-8").split("\n", 1)[0])
    assert (first["metadata"]["title"], first["metadata"]["title_user_edited"]) == ("new", True)


def test_commands_to_nanobot_are_no_rows_and_stay(tmp_path: Path) -> None:
    session = written_by_nanobot(tmp_path)
    session.say("user", "/status", _command=True)
    session.say("user", "after")
    session.save(tmp_path)
    with JsonlThreads(tmp_path) as store:
        assert texts(store)[-2:] == ["Blue it is.", "after"]
        store.append(KEY, [point(4, "sum")])
    session = NanobotSession.load(tmp_path, KEY)
    assert [message["content"] for message in session.messages][4:6] == ["/status", "after"]
    assert replayed(session) == ["after"]


# --- where the files lie -------------------------------------------------------------------------


def test_files_with_the_old_names_are_found(tmp_path: Path) -> None:
    written_by_nanobot(tmp_path)
    path_of(tmp_path, KEY).rename(tmp_path / "telegram_42.jsonl")
    with JsonlThreads(tmp_path) as store:
        assert store.thread(KEY).length == 4
        store.append(KEY, talk(1))
    assert [path.name for path in tmp_path.glob("*.jsonl")] == ["telegram_42.jsonl"]


@pytest.mark.parametrize("layout", ["sessions", "0123456789abcdef0123456789abcdef"])
def test_both_layouts_of_nanobots_folders_are_found(tmp_path: Path, layout: str) -> None:
    (tmp_path / layout).mkdir()
    (tmp_path / ".nanobot").mkdir()
    written_by_nanobot(tmp_path / layout)
    with JsonlThreads(tmp_path) as store:
        assert [thread.id for thread in store.threads()] == [KEY]


def test_of_several_workspaces_one_has_to_be_named(tmp_path: Path) -> None:
    for digit in "ab":
        (tmp_path / (digit * 32)).mkdir()
    with pytest.raises(InputError, match="several workspaces"):
        JsonlThreads(tmp_path)


def test_a_session_of_a_newer_version_is_refused_and_the_others_are_listed(tmp_path: Path) -> None:
    written_by_nanobot(tmp_path)
    newer = NanobotSession("newer", metadata={"everlong": {"version": 99}})
    newer.save(tmp_path)
    with JsonlThreads(tmp_path) as store:
        with pytest.raises(StoreError, match="newer Everlong"):
            store.thread("newer")
        assert [thread.id for thread in store.threads()] == [KEY]
