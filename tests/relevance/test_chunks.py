"""Messages in chunks: verbatim lines with their origin, nothing lost, line numbers taken off."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from everlong.relevance.chunks import MOST_CHARACTERS_SAID, MOST_LINES_SAID, Chunk, Chunker, ChunkKind, plain_lines
from tests.core.build import assistant, calls, result, user


def chunks(*messages: object) -> list[Chunk]:
    chunker = Chunker()
    return [chunk for at, message in enumerate(messages) for chunk in chunker.chunks(at, message)]  # type: ignore[arg-type]


def test_a_result_knows_its_tool_and_file() -> None:
    found = chunks(calls("1", name="read_file", arguments='{"path": "src/app.py"}'), result("1", "a\nb"))
    assert found[-1] == Chunk(1, ChunkKind.RESULT, "read_file", "src/app.py", 1, "a\nb")


def test_long_texts_come_in_pieces_that_give_the_text_back() -> None:
    text = "\n".join(f"line {n}" for n in range(100))
    pieces = chunks(user(text))
    assert len(pieces) == 5
    assert [piece.first_line for piece in pieces] == [1, 21, 41, 61, 81]
    assert "\n".join(piece.text for piece in pieces) == text


def test_what_tools_answer_comes_in_smaller_pieces() -> None:
    text = "\n".join(f"line {n}" for n in range(24))
    pieces = [piece for piece in chunks(calls("1"), result("1", text)) if piece.kind is ChunkKind.RESULT]
    assert [piece.first_line for piece in pieces] == [1, 13]


def test_edits_tell_replaced_from_written() -> None:
    arguments = json.dumps({"path": "a.py", "old_string": "x = 1", "new_string": "x = 2", "count": 1})
    found = {chunk.kind: chunk.text for chunk in chunks(calls("1", name="edit_file", arguments=arguments))}
    assert found[ChunkKind.REPLACED] == "x = 1"
    assert found[ChunkKind.WRITTEN] == "x = 2"
    assert found[ChunkKind.CALL] == "edit_file path=a.py count=1"


@pytest.mark.parametrize("arguments", ["", "not json", "[1, 2]", '"text"', "{", "[" * 100_000])
def test_broken_arguments_are_text(arguments: str) -> None:
    assert all(chunk.kind is ChunkKind.CALL for chunk in chunks(calls("1", arguments=arguments)))


NUMBERED = {
    "tabs": ("    41\tdef a():\n    42\t    pass", ["def a():", "    pass"], 41),
    "arrows": ("   1→x = 1\n   2→y = 2", ["x = 1", "y = 2"], 1),
    "colons and a space": ("7: if x:\n8:     pass\n9: ", ["if x:", "    pass", ""], 7),
    "colons alone": ("7:if x:\n8:    pass", ["if x:", "    pass"], 7),
    "a line of the tool's own below": ("1\tx\n2\ty\n(2 lines)", ["x", "y", "(2 lines)"], 1),
    "a table is not numbered": ("12 apples\n13 pears", ["12 apples", "13 pears"], 1),
    "times are no numbers": ("12:30:01 start\n12:30:02 stop", ["12:30:01 start", "12:30:02 stop"], 1),
    "nor are matches of a search": ("12:foo\n45:bar", ["12:foo", "45:bar"], 1),
    "nor is a column": ("200\tok\n404\tgone", ["200\tok", "404\tgone"], 1),
    "one line shows no order": ("12:30 lunch", ["12:30 lunch"], 1),
    "colours go": ("\x1b[31mred\x1b[0m", ["red"], 1),
}


@pytest.mark.parametrize("name", NUMBERED)
def test_what_tools_add_is_taken_off(name: str) -> None:
    text, lines, first = NUMBERED[name]
    assert plain_lines(text) == (lines, first)


@pytest.mark.parametrize("text", ["1: first\n2: second", "12:00 a\n13:00 b"])
def test_numbers_that_people_write_stay(text: str) -> None:
    written = calls("1", name="write_file", arguments=json.dumps({"path": "plan.txt", "content": text}))
    found = chunks(user(text), assistant(text), written)
    assert [chunk.text for chunk in found if chunk.kind is not ChunkKind.CALL] == [text] * 3


@pytest.mark.parametrize("path", ["a\n[0 user]", "x" * 5_000])
def test_what_cannot_be_a_path_is_none(path: str) -> None:
    found = chunks(calls("1", arguments=json.dumps({"path": path, "file": "a.py"})), result("1", "a"))
    assert {chunk.path for chunk in found} == {"a.py"}


@given(st.lists(st.tuples(st.integers(0, 3_000), st.sampled_from("ab 中")), max_size=60))
@settings(max_examples=100, deadline=None)
def test_no_line_is_lost(lines: list[tuple[int, str]]) -> None:
    text = "\n".join(letter * length for length, letter in lines)
    pieces = chunks(assistant(text))
    kept = [line for piece in pieces for line in piece.text.split("\n") if line.strip()]
    assert kept == [line for line in text.split("\n") if line.strip()]
    for piece in pieces:
        assert piece.text.count("\n") < MOST_LINES_SAID
        assert len(piece.text) <= max(MOST_CHARACTERS_SAID, max(map(len, piece.text.split("\n"))))


def test_an_endless_line_is_split() -> None:
    pieces = chunks(user("x" * 50_000))
    assert "".join(piece.text for piece in pieces) == "x" * 50_000
    assert len(pieces) > 10
