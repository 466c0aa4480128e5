"""Reading, writing, editing and listing files: real ones, in every encoding, size and state."""

import asyncio
import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from everlong.agent.definitions import Outcome, Place, Tool
from everlong.agent.tools.files import LARGEST_PICTURE, MOST_CHARACTERS, edit_file, read_file, write_file
from everlong.agent.tools.folders import MOST_IN_FOLDER, list_files

Call = Callable[..., Outcome]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    place = Place(thread="t", call="c", workspace=tmp_path)

    def made(tool: Tool, **arguments: Any) -> Outcome:
        return asyncio.run(tool.run(arguments, place))

    return made


TEXT = "第一行\nsecond\nthird\n"


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030"])
def test_text_is_read_in_its_encoding(tmp_path: Path, call: Call, codec: str) -> None:
    (tmp_path / "读.txt").write_bytes(TEXT.encode(codec))
    outcome = call(read_file, path="读.txt")
    assert not outcome.failed
    assert outcome.text.startswith(TEXT)
    assert ("encoding" in outcome.text) == (not codec.startswith("utf-8"))


def test_latin_text_is_read_too(tmp_path: Path, call: Call) -> None:
    (tmp_path / "a").write_bytes("café à la carte\nnaïve\n".encode("latin-1"))
    assert call(read_file, path="a").text == "café à la carte\nnaïve\n[encoding latin-1]"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"offset": 2}, "second\nthird\n[lines 2 to 3 of 3]"),
        ({"limit": 1}, "第一行\n[lines 1 to 1 of 3; continue with offset=2]"),
        ({"offset": 2, "limit": 1}, "second\n[lines 2 to 2 of 3; continue with offset=3]"),
        ({"numbers": True}, "1\t第一行\n2\tsecond\n3\tthird\n"),
        ({"offset": 3, "numbers": True}, "3\tthird\n[lines 3 to 3 of 3]"),
    ],
    ids=str,
)
def test_parts_of_a_file(tmp_path: Path, call: Call, arguments: dict[str, Any], text: str) -> None:
    (tmp_path / "a").write_text(TEXT, encoding="utf-8")
    assert call(read_file, path="a", **arguments) == Outcome(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"offset": 9}, "the file has 3 lines"), ({"offset": 0}, "at least 1"), ({"limit": 0}, "at least 1")],
    ids=str,
)
def test_parts_that_are_not_there(tmp_path: Path, call: Call, arguments: dict[str, Any], said: str) -> None:
    (tmp_path / "a").write_text(TEXT, encoding="utf-8")
    outcome = call(read_file, path="a", **arguments)
    assert outcome.failed
    assert said in outcome.text


def test_a_large_file_is_read_in_parts_that_are_all_of_it(tmp_path: Path, call: Call) -> None:
    lines = [f"line {number} 你好 {'x' * (number % 300)}\n" for number in range(5_000)]
    (tmp_path / "a").write_text("".join(lines), encoding="utf-8")
    read, offset = "", 1
    while True:
        text = call(read_file, path="a", offset=offset).text
        body, _, note = text.rpartition("\n[")
        read += body + "\n"
        if "continue" not in note:
            break
        assert len(body) <= MOST_CHARACTERS
        offset = int(note.rpartition("offset=")[2].rstrip("]"))
    assert read == "".join(lines)


def test_one_endless_line_is_cut_and_said_to_be(tmp_path: Path, call: Call) -> None:
    (tmp_path / "a").write_text("x" * 3_000_000 + "\nend\n")
    text = call(read_file, path="a").text
    assert len(text) < MOST_CHARACTERS + 300
    assert "line 1 is longer than" in text
    assert "continue with offset=2" in text
    assert call(read_file, path="a", offset=2).text.startswith("end\n")


def test_binary_empty_and_missing_files(tmp_path: Path, call: Call) -> None:
    (tmp_path / "b").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "e").touch()
    assert "a binary file of 10,240 bytes" in call(read_file, path="b").text
    assert call(read_file, path="e").text == "(the file is empty)"
    assert call(read_file, path="m") == Outcome("m: there is no such file or folder", failed=True)


def test_controls_in_a_file_are_shown_and_not_sent(tmp_path: Path, call: Call) -> None:
    (tmp_path / "a").write_bytes(b"red \x1b[31m bell \x07\r\nnext\x9b31m\rlast")
    text = call(read_file, path="a").text
    assert text.startswith("red \\x1b[31m bell \\x07\nnext")
    assert not any(ord(character) < 32 and character != "\n" for character in text)


PICTURES = {
    "image/png": b"\x89PNG\r\n\x1a\n" + bytes(20),
    "image/jpeg": b"\xff\xd8\xff\xe0" + bytes(20),
    "image/gif": b"GIF89a" + bytes(20),
    "image/webp": b"RIFF\x10\0\0\0WEBPVP8 " + bytes(20),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_pictures_are_seen(tmp_path: Path, call: Call, kind: str) -> None:
    (tmp_path / "图").write_bytes(PICTURES[kind])
    outcome = call(read_file, path="图")
    assert [(image.media_type, base64.b64decode(image.data)) for image in outcome.images] == [(kind, PICTURES[kind])]


def test_a_picture_too_large_is_said_to_be(tmp_path: Path, call: Call) -> None:
    (tmp_path / "p").write_bytes(PICTURES["image/png"] + bytes(LARGEST_PICTURE))
    outcome = call(read_file, path="p")
    assert "too large" in outcome.text
    assert outcome.images == ()


def test_writing_makes_folders_and_replaces(tmp_path: Path, call: Call) -> None:
    assert call(write_file, path="新/目录/a.txt", content="你好\n").text == "wrote 新/目录/a.txt: 1 lines, 7 bytes"
    assert call(write_file, path="新/目录/a.txt", content="").text == "replaced 新/目录/a.txt: 0 lines, 0 bytes"
    assert (tmp_path / "新/目录/a.txt").read_bytes() == b""


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "sub/.git/config", ".GIT/config"])
def test_what_git_runs_is_not_written(tmp_path: Path, call: Call, path: str) -> None:
    outcome = call(write_file, path=path, content="rm -rf /")
    assert outcome.failed
    assert "git" in outcome.text
    assert not (tmp_path / path).exists()
    assert call(edit_file, path=path, old_text="a", new_text="b").failed


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\nb\nc\n", "b", "x\ny", b"a\nx\ny\nc\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "c\r\nd", b"c\r\nd\r\n"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        ("你好，世界".encode("gb18030"), "世界", "朋友", "你好，朋友".encode("gb18030")),
        ("a你".encode("utf-16"), "你", "我", "a我".encode("utf-16")),
        (b"no end", "no end", "", b""),
        (b"a.b", "a.b", r"\1", rb"\1"),
    ],
    ids=["lines", "windows", "windows-new", "windows-given", "mark", "gb18030", "utf-16", "to-nothing", "no-pattern"],
)
def test_an_edit_changes_that_and_nothing_else(
    tmp_path: Path, call: Call, before: bytes, old: str, new: str, after: bytes
) -> None:
    (tmp_path / "a").write_bytes(before)
    outcome = call(edit_file, path="a", old_text=old, new_text=new)
    assert not outcome.failed, outcome.text
    assert (tmp_path / "a").read_bytes() == after


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("one", "two", "found 2 times, in lines 1, 3"),
        ("def ad(a, b):", "x", "most similar lines are\n1\tone\n2\tdef add(a, b):\n3\tone"),
        ("def  add(a,b):", "x", "only white space differs"),
        ("nothing of the kind whatsoever", "x", "no line resembles"),
        ("", "x", "must not be empty"),
        ("def add", "def add", "are the same"),
    ],
    ids=["ambiguous", "near", "blanks", "far", "empty", "same"],
)
def test_an_edit_that_cannot_be_made_says_why(tmp_path: Path, call: Call, old: str, new: str, said: str) -> None:
    before = "one\ndef add(a, b):\none\n"
    (tmp_path / "a").write_text(before)
    outcome = call(edit_file, path="a", old_text=old, new_text=new)
    assert outcome.failed
    assert said in outcome.text
    assert (tmp_path / "a").read_text() == before


def test_an_edit_everywhere(tmp_path: Path, call: Call) -> None:
    (tmp_path / "a").write_text("x x\nx\n")
    assert call(edit_file, path="a", old_text="x", new_text="yy", replace_all=True).text == (
        "edited a: 3 replaced, in line 1, 2"
    )
    assert (tmp_path / "a").read_text() == "yy yy\nyy\n"


def test_a_binary_file_and_a_foreign_character_are_refused(tmp_path: Path, call: Call) -> None:
    (tmp_path / "b").write_bytes(b"a\0b")
    (tmp_path / "l").write_bytes("café é".encode("latin-1"))
    assert "binary" in call(edit_file, path="b", old_text="a", new_text="c").text
    assert "latin-1" in call(edit_file, path="l", old_text="café", new_text="咖啡").text
    assert (tmp_path / "l").read_bytes() == "café é".encode("latin-1")


def test_edits_made_at_once_are_all_kept(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"<{number}>\n" for number in range(30)))
    place = Place(thread="t", call="c", workspace=tmp_path)

    async def run() -> None:
        edits = [{"path": "a", "old_text": f"<{number}>", "new_text": f"[{number}]"} for number in range(30)]
        await asyncio.gather(*(edit_file.run(dict(edit), place) for edit in edits))

    asyncio.run(run())
    assert (tmp_path / "a").read_text() == "".join(f"[{number}]\n" for number in range(30))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("ab\n\r你é"), min_size=1, max_size=30), st.integers(0, 29), st.integers(1, 8))
def test_an_edit_and_its_reverse_give_the_same_bytes(
    tmp_path: Path, call: Call, text: str, start: int, length: int
) -> None:
    old = text[start : start + length]
    (tmp_path / "a").write_bytes(text.encode())
    if old and text.count(old) == 1:
        assert not call(edit_file, path="a", old_text=old, new_text="ZZ").failed
        assert "ZZ" in (tmp_path / "a").read_text(encoding="utf-8")


def test_the_tree(tmp_path: Path, call: Call) -> None:
    for name in ("src/深/更深/最深/x.py", "node_modules/p/i.js", ".git/config", "b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("12345")
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "bad\x1b[2J\nname").touch()
    os.mkfifo(tmp_path / "pipe")
    assert call(list_files).text.splitlines() == [
        ".git/ (not listed)",
        "node_modules/ (not listed)",
        "src/",
        "  深/",
        "    更深/",
        "      …",
        "b.txt 5 B",
        "bad\\x1b[2J\\nname 0 B",
        "link (link)",
    ]
    assert call(list_files, path="src/深", depth=5).text.splitlines() == ["更深/", "  最深/", "    x.py 5 B"]
    assert call(list_files, path="link").failed
    assert call(list_files, depth=0).failed


def test_a_large_folder_hides_no_other(tmp_path: Path, call: Call) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for number in range(MOST_IN_FOLDER + 50):
            (tmp_path / folder / f"{number:04}").touch()
    lines = call(list_files).text.splitlines()
    assert len(lines) == 2 * (MOST_IN_FOLDER + 2)
    assert lines.count("  … and 50 files more") == 2
    assert call(list_files, path="a").text.count("\n") == MOST_IN_FOLDER
