"""Files as they were before the agent changed them."""

from pathlib import Path

import pytest

from everlong.agent.changes import LARGEST, MOST, MOST_BYTES, Changes
from everlong.agent.definitions import Place
from everlong.agent.tools.files import edit_file, write_file
from everlong.core import JsonObject
from everlong.errors import Refused
from tests.agent.acting import run


def place(folder: Path, thread: str = "t") -> Place:
    return Place(thread=thread, call="c", workspace=folder)


def change(folder: Path, path: str, content: str, thread: str = "t") -> None:
    assert not run(write_file.run({"path": path, "content": content}, place(folder, thread))).failed


def test_each_change_can_be_taken_back_and_a_new_file_is_removed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"first\r\n")
    (tmp_path / "a.txt").chmod(0o640)
    change(tmp_path, "a.txt", "second\n")
    edit: JsonObject = {"path": "a.txt", "old_text": "second", "new_text": "third"}
    run(edit_file.run(edit, place(tmp_path)))
    change(tmp_path, "sub/new.txt", "new\n")
    changes = Changes(tmp_path)
    listed = changes.listed("t")
    assert [(each.path, each.tool, each.new) for each in listed] == [
        ("sub/new.txt", "write_file", True),
        ("a.txt", "edit_file", False),
        ("a.txt", "write_file", False),
    ]
    changes.restore("t", listed[1].id)
    assert (tmp_path / "a.txt").read_text() == "second\n"
    changes.restore("t", listed[2].id)
    assert (tmp_path / "a.txt").read_bytes() == b"first\r\n"
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640
    changes.restore("t", listed[0].id)
    assert not (tmp_path / "sub/new.txt").exists()
    assert changes.listed("t") == []


def test_the_oldest_change_brings_the_first_content_back_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("first")
    for content in ("second", "third"):
        change(tmp_path, "a.txt", content)
    changes = Changes(tmp_path)
    changes.restore("t", changes.listed("t")[-1].id)
    assert (tmp_path / "a.txt").read_text() == "first"
    assert changes.listed("t") == []


@pytest.mark.parametrize("gone", [False, True])
def test_what_somebody_else_changed_since_is_not_lost_unless_forced(gone: bool, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("first")
    change(tmp_path, "a.txt", "second")
    if gone:
        (tmp_path / "a.txt").unlink()
    else:
        (tmp_path / "a.txt").write_text("a person's work")
    changes = Changes(tmp_path)
    (kept,) = changes.listed("t")
    with pytest.raises(Refused, match="has been changed since then"):
        changes.restore("t", kept.id)
    assert (tmp_path / "a.txt").exists() is not gone
    changes.restore("t", kept.id, force=True)
    assert (tmp_path / "a.txt").read_text() == "first"


def test_changes_belong_to_their_thread(tmp_path: Path) -> None:
    change(tmp_path, "a.txt", "one", thread="one")
    changes = Changes(tmp_path)
    assert changes.listed("two") == []
    with pytest.raises(Refused, match="does not exist"):
        changes.restore("two", changes.listed("one")[0].id)


def test_they_are_for_the_user_alone_and_not_for_git(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("secret")
    change(tmp_path, "a.txt", "public")
    folder = tmp_path / ".everlong" / "changes"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert (folder / ".gitignore").read_text() == "*\n"


def test_their_number_is_bounded(tmp_path: Path) -> None:
    async def change_many() -> None:
        for number in range(MOST + 2):
            await write_file.run({"path": f"{number}.txt", "content": "x"}, place(tmp_path))

    run(change_many())
    listed = [each.path for each in Changes(tmp_path).listed("t")]
    assert listed == [f"{number}.txt" for number in range(MOST + 1, 1, -1)]
    assert len(list((tmp_path / ".everlong" / "changes").iterdir())) == MOST + 1  # and what git ignores


def test_their_bytes_are_bounded_and_the_newest_stays(tmp_path: Path) -> None:
    for number in range(MOST_BYTES // LARGEST + 2):
        with (tmp_path / f"{number}.txt").open("wb") as file:
            file.truncate(LARGEST)
        change(tmp_path, f"{number}.txt", "x")
    assert [each.path for each in Changes(tmp_path).listed("t")] == ["5.txt", "4.txt", "3.txt", "2.txt"]
    kept = (tmp_path / ".everlong" / "changes").glob("*.before")
    assert sum(path.stat().st_size for path in kept) == MOST_BYTES


def test_what_is_too_large_to_keep_is_said_to_be_lost(tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("wb") as file:
        file.truncate(LARGEST + 1)
    done = run(write_file.run({"path": "a.txt", "content": "x"}, place(tmp_path)))
    assert done.text.endswith("(the previous content could not be saved)")
    changes = Changes(tmp_path)
    with pytest.raises(Refused, match="too large to keep a copy"):
        changes.restore("t", changes.listed("t")[0].id)


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    outside.mkdir()
    (work / ".everlong").symlink_to(outside)
    (work / "a.txt").write_text("first")
    done = run(write_file.run({"path": "a.txt", "content": "x"}, place(work)))
    assert done.text.endswith("could not be saved)")
    assert list(outside.iterdir()) == []


def test_a_record_that_names_a_file_outside_restores_nothing(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside.txt"
    work.mkdir()
    change(work, "a.txt", "x")
    (record,) = (work / ".everlong" / "changes").glob("*.json")
    record.write_text(record.read_text().replace('"a.txt"', '"../outside.txt"'))
    outside.write_text("x")
    changes = Changes(work)
    with pytest.raises(Exception, match="outside the workspace"):
        changes.restore("t", changes.listed("t")[0].id, force=True)
    assert outside.read_text() == "x"
