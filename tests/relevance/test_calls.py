"""Calls as texts: the file, what is replaced and what is written, in the shapes that tools have."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import JsonObject
from everlong.relevance.calls import CallText, File, TextKind, base_name, fields_of, file_of, texts_of_call

FILES: dict[str, tuple[JsonObject, File]] = {
    "a path": ({"path": "src/app.py", "limit": 20}, File("src/app.py")),
    "a path of Windows": ({"file_path": "C:\\work\\app.py"}, File("C:\\work\\app.py")),
    "cat": ({"command": "cat src/app.py"}, File("src/app.py")),
    "some lines": ({"command": "sed -n '40,80p' src/app.py"}, File("src/app.py", 40)),
    "numbered, then some lines": ({"cmd": "nl -ba src/app.py | sed -n '12,30p'"}, File("src/app.py", 12)),
    "the first lines, in a folder": ({"command": "cd web && head -n 30 app.ts"}, File("app.ts")),
    "a shell's words": ({"command": ["bash", "-lc", "cat app.ts"]}, File("app.ts")),
    "two files": ({"command": "cat a.py; cat b.py"}, File("")),
    "a file that is written": ({"command": "cat > a.py <<EOF"}, File("")),
    "a search": ({"command": "rg -n handler src/app.py"}, File("")),
    "what is not a command": ({"command": 7}, File("")),
    "no words": ({"command": []}, File("")),
    "nothing": ({}, File("")),
}


@pytest.mark.parametrize("case", FILES)
def test_the_file_of_a_call(case: str) -> None:
    fields, file = FILES[case]
    assert file_of(fields) == file


@pytest.mark.parametrize("path", ["app.py", "src/app.py", "C:\\work\\app.py", "C:\\work/app.py"])
def test_the_name_of_a_file_is_the_last_part_of_its_path(path: str) -> None:
    assert base_name(path) == "app.py"


def test_several_edits_of_one_call_are_texts_of_their_own() -> None:
    edits = [{"oldText": "x = 1", "newText": "x = 2"}, {"oldText": "y = 1\nz = 1", "newText": ""}]
    long, short = texts_of_call({"path": "a.py", "edits": edits}, "a.py")
    assert long == [
        CallText(TextKind.REPLACED, "oldText", "a.py", "x = 1"),
        CallText(TextKind.WRITTEN, "newText", "a.py", "x = 2"),
        CallText(TextKind.REPLACED, "oldText", "a.py", "y = 1\nz = 1"),
        CallText(TextKind.WRITTEN, "newText", "a.py", ""),
    ]
    assert short == ["path=a.py"]


def test_edits_of_several_files_know_theirs() -> None:
    files = [{"path": "a.py", "content": "a = 1"}, {"path": "b.py", "content": "b = 1"}]
    long, _ = texts_of_call({"files": files}, "")
    assert [(text.path, text.text) for text in long] == [("a.py", "a = 1"), ("b.py", "b = 1")]


PATCH = """*** Begin Patch
*** Update File: src/app.py
@@ def start():
 def start():
-    run(1)
+    run(2)
+    wait()
 # end
*** Add File: src/new.py
+VALUE = 1
*** End Patch"""


def test_a_patch_is_what_goes_and_what_stands_afterwards() -> None:
    long, short = texts_of_call({"input": PATCH}, "")
    assert long == [
        CallText(TextKind.REPLACED, "input", "src/app.py", "def start():\n    run(1)\n# end"),
        CallText(TextKind.WRITTEN, "input", "src/app.py", "def start():\n    run(2)\n    wait()\n# end"),
        CallText(TextKind.WRITTEN, "input", "src/new.py", "VALUE = 1"),
    ]
    assert short == []


LINES = st.lists(st.text("abc =", max_size=8), min_size=1, max_size=6)


@settings(max_examples=60)
@given(LINES, LINES, LINES, LINES)
def test_a_patch_gives_the_text_before_and_after_it(
    head: list[str], old: list[str], new: list[str], tail: list[str]
) -> None:
    body = [*(f" {line}" for line in head), *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    body += [f" {line}" for line in tail]
    patch = "\n".join(["*** Begin Patch", "*** Update File: a.py", "@@", *body, "*** End Patch"])
    texts = {text.kind: text.text for text in texts_of_call({"patch": patch}, "")[0]}
    if old != new and any((*head, *old, *tail)):
        assert texts[TextKind.REPLACED] == "\n".join([*head, *old, *tail])
    if old != new:
        assert texts[TextKind.WRITTEN] == "\n".join([*head, *new, *tail])


NESTED = st.recursive(
    st.none() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("a", "old", "content", "path")), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=80)
@given(st.dictionaries(st.sampled_from(("edits", "path", "new", "note")), NESTED, max_size=4))
def test_every_text_of_a_call_stands_in_its_arguments(fields: JsonObject) -> None:
    given_fields = fields_of(json.dumps(fields))
    strings = set(_strings(given_fields))
    for text in texts_of_call(given_fields, file_of(given_fields).path)[0]:
        assert text.text in strings or json.loads(text.text) is not None or text.text == "null"


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _strings(one)]
