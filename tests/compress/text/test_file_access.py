from dataclasses import dataclass

import pytest

from everlong.compress.text.file_access import Access, Span, Use, accesses, looks_failed, looks_partial
from everlong.core import CallId, Text, ToolCall, ToolResult


@dataclass(frozen=True)
class Case:
    name: str
    arguments: str
    path: str
    use: Use = Use.READ
    span: Span | None = None


READS = [
    Case("read_file", '{"path": "src/app.py"}', "src/app.py"),
    Case("Read", '{"file_path": "/repo/a.py", "offset": 100, "limit": 50}', "/repo/a.py", span=Span(100, 149)),
    Case("Read", '{"file_path": "/repo/a.py", "limit": 50}', "/repo/a.py", span=Span(0, 49)),
    Case("Read", '{"file_path": "/repo/a.py", "offset": 100}', "/repo/a.py", span=Span(100)),
    Case("Read", '{"file_path": "/repo/a.py", "offset": null}', "/repo/a.py"),
    Case("readFile", '{"filePath": "./a//b.py", "startLine": "3", "endLine": "9"}', "a/b.py", span=Span(3, 9)),
    Case("mcp__fs__read_text_file", '{"path": "a.py", "head": 10}', "a.py", span=Span(0, 9)),
    Case("mcp__fs__read_text_file", '{"path": "a.py", "tail": 10}', "a.py", span=Span(None)),
    Case("view", '{"path": "src\\\\win\\\\a.py", "view_range": [5, -1]}', "src/win/a.py", span=Span(5)),
    Case("view", '{"path": "a.py", "view_range": [5, 20]}', "a.py", span=Span(5, 20)),
    Case("open", '{"file": "a.py", "lines": "5-20"}', "a.py", span=Span(5, 20)),
    Case("open", '{"file": "a.py", "lines": "some"}', "a.py", span=Span(None)),
    Case("read_file", '{"path": "a.py", "start_line": -5}', "a.py", span=Span(None)),
    Case("read_file", '{"path": "a.py", "start_line": true, "end_line": 5}', "a.py", span=Span(None)),
    Case("cat", '{"filename": "a.py"}', "a.py"),
    Case("读取文件", '{"路径": "甲/乙.py", "起始行": 1, "行数": 10}', "甲/乙.py", span=Span(1, 10)),
    Case("查看文件", '{"文件路径": "甲.py"}', "甲.py"),
    Case("str_replace_based_edit_tool", '{"command": "view", "path": "a.py"}', "a.py"),
]
WRITES = [
    Case("edit_file", '{"path": "a.py", "old": "x", "new": "y"}', "a.py", use=Use.EDIT),
    Case("write_file", '{"path": "a.py", "content": "x", "offset": 5}', "a.py", use=Use.WRITE),
    Case("write_file", '{"path": "a.py", "chunks": 7}', "a.py", use=Use.EDIT),
    Case("写入文件", '{"路径": "甲.py", "内容": "x"}', "甲.py", use=Use.WRITE),
    Case(
        "str_replace_based_edit_tool", '{"command": "create", "path": "a.py", "file_text": ""}', "a.py", use=Use.WRITE
    ),
    Case("MultiEdit", '{"file_path": "a.py", "edits": []}', "a.py", use=Use.EDIT),
    Case("create", '{"path": "a.py"}', "a.py", use=Use.EDIT),
    Case("str_replace_based_edit_tool", '{"command": "str_replace", "path": "a.py"}', "a.py", use=Use.EDIT),
    Case("NotebookEdit", '{"notebook_path": "a.ipynb"}', "a.ipynb", use=Use.EDIT),
    Case("编辑文件", '{"文件": "甲.py"}', "甲.py", use=Use.EDIT),
    Case("apply_patch", '{"input": "*** Begin Patch\\n*** Update File: a.py\\n@@\\n-x\\n+y\\n"}', "a.py", use=Use.EDIT),
    Case("apply_patch", "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n", "a.py", use=Use.EDIT),
]


@pytest.mark.parametrize("case", READS + WRITES, ids=lambda case: f"{case.name} {case.arguments[:60]}")
def test_what_a_call_does(case: Case) -> None:
    (found,) = accesses(ToolCall(CallId("1"), case.name, case.arguments))
    assert found == Access(case.name, case.path, case.use, case.span)


def test_a_patch_of_several_files() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@\n+x\n*** Add File: b.py\n+y\n*** Delete File: c.py\n*** End Patch"
    )
    assert [access.path for access in accesses(ToolCall(CallId("1"), "apply_patch", patch))] == ["a.py", "b.py"]


OTHERS = {
    "no path": ("read_file", "{}"),
    "a path that is no text": ("read_file", '{"path": ["a", "b"]}'),
    "a blank path": ("read_file", '{"path": " "}'),
    "a directory": ("read_directory", '{"path": "src"}'),
    "a search": ("find_in_file", '{"path": "src"}'),
    "a shell": ("bash", '{"command": "cat a.py"}'),
    "mail": ("read_email", '{"file": "inbox"}'),
    "broken arguments": ("read_file", '{"path": "a'),
    "arguments that are a list": ("read_file", "[1]"),
    "a name that merely contains the letters": ("thread_spread", '{"path": "a.py"}'),
    "a patch that names no file": ("apply_patch", "nothing here"),
}


@pytest.mark.parametrize(("name", "arguments"), OTHERS.values(), ids=OTHERS)
def test_what_cannot_be_told_is_no_access(name: str, arguments: str) -> None:
    assert accesses(ToolCall(CallId("1"), name, arguments)) == ()


@pytest.mark.parametrize(
    ("newer", "older", "covered"),
    [
        (Span(1, 20), Span(5, 10), True),
        (Span(1, 20), Span(1, 20), True),
        (Span(5, 20), Span(1, 10), False),
        (Span(1, 20), Span(5, 30), False),
        (Span(1), Span(5, 30), True),
        (Span(1), Span(5), True),
        (Span(1, 20), Span(5), False),
        (Span(None), Span(5, 6), False),
        (Span(1), Span(None), False),
        (Span(None), Span(None), False),
    ],
    ids=str,
)
def test_covers(newer: Span, older: Span, covered: bool) -> None:
    assert newer.covers(older) is covered


def result(text: str, *, failed: bool = False) -> ToolResult:
    return ToolResult(CallId("1"), (Text(text),), failed=failed)


FAILURES = [
    "Error: ENOENT",
    "FileNotFoundError: a.py",
    '{"error": "no"}',
    "<error>x",
    "File does not exist.",
    "Permission denied",
]
FAILURES += [
    "错误：文件不存在",
    "无法读取文件",
    "Failed to read",
    '{"success": false}',
    '{"status": "error"}',
    "❌ cannot open a.py",
]


@pytest.mark.parametrize("text", FAILURES)
def test_failures_are_known_by_their_words(text: str) -> None:
    assert looks_failed(result(text), Use.READ)


@pytest.mark.parametrize("text", ["import errors\nraise Error", "1\tdef fail(): ...", "# 错误处理", "", "errors = []"])
def test_files_about_failures_are_none(text: str) -> None:
    assert not looks_failed(result(text), Use.READ)
    assert looks_failed(result(text, failed=True), Use.READ)


def test_a_tool_that_writes_says_so_in_its_first_line() -> None:
    assert looks_failed(result("The old text was not found in a.py"), Use.EDIT)
    assert not looks_failed(result("Updated a.py. Around it:\n12\traise Error('not found')"), Use.EDIT)


@pytest.mark.parametrize(
    "text", ["x\n" * 900 + "[truncated: 3000 more lines]", "(showing lines 1-50)\nx", "内容\n" * 500 + "（已截断）"]
)
def test_tools_say_when_they_did_not_show_everything(text: str) -> None:
    assert looks_partial(result(text))
    assert not looks_partial(result("x\n" * 900 + "truncated" + "x\n" * 900))
