"""What is most likely needed of work with tools: chunks and names."""

import json

import pytest

from everlong.core import Message
from everlong.relevance.index import Index, names_in
from everlong.relevance.query import argument_text, query_of, query_of_text
from everlong.relevance.ranking import ranked
from everlong.relevance.work import names_by_need
from tests.core.build import assistant, calls, result, user


def read(call: str, path: str, text: str) -> tuple[Message, Message]:
    return calls(call, arguments=json.dumps({"path": path})), result(call, text)


def indexed(*messages: Message) -> Index:
    index = Index()
    index.extend(messages)
    return index


def order_of(held: tuple[Message, ...], newest: tuple[Message, ...] = (), known: frozenset[str] = frozenset()) -> str:
    """All chunks of the messages held, in the order of their ranking."""
    index = indexed(*held)
    return "\n".join(index.chunks[number].text for number in ranked(index, (*held, *newest), known).numbers)


LINES = "alpha beta gamma\ndelta epsilon zeta"
OTHER = "one two three\nfour five six"
TWO_FILES = (*read("1", "src/first.py", LINES), *read("2", "src/other.py", OTHER), user("Go on."))
#: Calls on no file, so that none of those read before is the one in work.
IDLE = tuple(message for n in range(12) for message in (calls(f"run{n}", name="run"), result(f"run{n}", "ok")))
EDIT = json.dumps({"path": "a.py", "old_string": "count the old apples", "new_string": "count the new apples"})

CASES: dict[str, tuple[str, str, str]] = {
    "what the newest thought is about": (
        order_of(TWO_FILES, (assistant("Next.", reasoning="epsilon has to change"),)),
        *(LINES, OTHER),
    ),
    "what the model says it will do": (order_of(TWO_FILES, (assistant("Now for epsilon."),)), LINES, OTHER),
    "the file of the newest call": (
        order_of(TWO_FILES, (calls("3", name="edit", arguments='{"path": "src/first.py"}'), result("3"))),
        *(LINES, OTHER),
    ),
    "the file that the newest result names": (
        order_of((*TWO_FILES, *IDLE), (calls("3", name="run"), result("3", "error in first.py"))),
        *(LINES, OTHER),
    ),
    "the newer of two": (order_of(TWO_FILES), OTHER, LINES),
    "what was not read again since": (
        order_of((*TWO_FILES, *read("3", "src/other.py", f"{OTHER}!"), *IDLE)),
        *(LINES, f"{OTHER}\n"),
    ),
    "what an edit wrote, not what it replaced": (
        order_of((calls("1", name="edit", arguments=EDIT), result("1"), user("And the apples?"))),
        *("count the new apples", "count the old apples"),
    ),
    "names that stand nowhere else": (
        order_of((*read("1", "a.py", "readFile writeFile"), *read("2", "b.py", "plain words here"), *IDLE)),
        *("readFile", "plain words"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_first_comes(name: str) -> None:
    order, first, later = CASES[name]
    order = f"{order}\n"
    assert first in order
    assert later in order
    assert order.index(first) < order.index(later)


def test_names_that_are_sent_anyway_make_a_chunk_worth_no_more() -> None:
    held = (*read("1", "a.py", "readFile moveFile"), *read("2", "b.py", "plain words here"), user("Go on."))
    known = order_of(held, known=frozenset({"readFile", "moveFile"}))
    assert known.index("plain words") < known.index("readFile")


def test_names_whose_parts_are_asked_for_come_first_then_files() -> None:
    index = indexed(*read("1", "src/run.py", "openSocket closeSocket lib/net/wire.go parseHeader"))
    names = names_by_need(index, range(len(index.chunks)), query_of_text("how is the header parsed?"))
    assert [name for name, _ in names][:2] == ["parseHeader", "src/run.py"]
    assert [name for name, _ in names].index("lib/net/wire.go") < [name for name, _ in names].index("openSocket")


def test_a_name_is_listed_once_with_the_best_chunk_it_stands_in() -> None:
    index = indexed(user("openSocket"), *read("1", "a.py", "openSocket"))
    assert names_by_need(index, [2, 1, 0], {}).count(("openSocket", 2)) == 1
    assert len({name for name, _ in names_by_need(index, [2, 1, 0], {})}) == len(names_by_need(index, [2, 1, 0], {}))


def test_longer_names_tell_more() -> None:
    index = indexed(user("tmpDir parseRequestHeader"))
    assert [name for name, _ in names_by_need(index, [0], {})] == ["parseRequestHeader", "tmpDir"]


NAMES: dict[str, tuple[str, list[str]]] = {
    "of every kind": ("fix readFile in src/app.py (a1b2c3d)", ["readFile", "src/app.py", "a1b2c3d"]),
    "a file before the lines beside a match": (
        "lib/app.py-41-\tx = 1\nlib/app.py:42:\ty\nlib/app.py-43-",
        ["lib/app.py"],
    ),
    "a version is no line": ("version 3.11-4", []),
    "one long word": ("a" * 1_000_000, []),
    "one long word with underscores": ("a_" * 500_000, []),
    "beside a long word": (f"{'aB' * 5_000} readFile", ["readFile"]),
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    text, names = NAMES[name]
    assert names_in(text) == names


ARGUMENTS: dict[str, tuple[str, str]] = {
    "escapes": (r'{"path": "a.py", "new": "\tif x:\n\t\treturn \"y\""}', 'a.py\n\tif x:\n\t\treturn "y"'),
    "inside lists, in order": ('{"edits": [{"old": "a", "new": "b"}, "c"], "n": 1, "path": "d"}', "a\nb\nc\nd"),
    "no JSON": ("ls -l", "ls -l"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_text_of_arguments(name: str) -> None:
    arguments, text = ARGUMENTS[name]
    assert argument_text(arguments) == text


def test_a_name_behind_an_escape_is_asked_for() -> None:
    messages = (user("Go on."), calls("1", arguments=r'{"new": "\treadFile(x)"}'), result("1"))
    assert "readfile" in query_of(messages)
    assert "treadfile" not in query_of(messages)
