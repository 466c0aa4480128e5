"""Find which file a tool call reads or writes, and which of its lines.

Tools are recognised by the words in their names and by a path in their arguments, in English or Chinese; nothing
depends on a particular agent. Unclear calls count as no access, or as lines that cover no others: it is better to keep
a read too many than to lose one.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from posixpath import normpath
from typing import cast

from everlong.core import Json, JsonObject, ToolCall, ToolResult

__all__ = ["Access", "Span", "Use", "accesses", "looks_failed", "looks_partial"]

#: Words in tools' names, and in the "command" of tools with several functions. The first matching pattern decides.
EDITING = re.compile(
    r"\b(?:edit(?:or)?|multiedit|replace|patch|insert|append|update|modify|undo)\b|编辑|修改|替换|插入|追加|更新"
)
WRITING = re.compile(r"\b(?:(?:over)?write|create|save)\b|写|创建|新建|保存|覆盖")
#: Tools that read something other than the text of one file.
OTHER = re.compile(
    r"\b(?:dir|directory|folder|list|ls|tree|search|grep|glob|find|image|picture|outline|symbols|info|diff|url|page"
    r"|browser|e?mail)\b|目录|文件夹|搜索|查找|列表|图片|网页|邮件"
)
READING = re.compile(r"\b(?:read|view|cat|open|show|load)\b|读|查看|打开|显示")

#: Names of arguments, without case and underscores.
PATH = re.compile(
    r"(?:absolute|abs|relative|relativeworkspace|notebook|file)?path|(?:target)?file(?:name)?|文件|(?:文件)?路径|文件名"
)
CONTENT = re.compile(r"(?:file|new)?(?:contents?|text)|code|(?:文件)?内容")
COMMANDS = re.compile(r"command|action|operation|mode|操作|命令")
FIRST = re.compile(r"offset|start|(?:start|from)line|linestart|from|startlineoneindexed|[起开]始行")
LAST = re.compile(r"end|(?:end|to)line|lineend|to|endlineoneindexed(?:inclusive)?|结束行")
COUNT = re.compile(r"limit|(?:line)?count|(?:num|max)lines|head|行数")
RANGE = re.compile(r"(?:view|line)?range|lines|行范围")
OTHER_BOUND = re.compile(r"tail|pages?|cell(?:id)?|pattern|query|symbol|regex")

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
COMMAND = re.compile(r"\w+")
PATCHED = re.compile(r"^(?:\*\*\* (?:Update|Add) File: |\+\+\+ (?:b/)?)([^\t\r\n]+)", re.MULTILINE)

EDGE = 400  # characters at each end of a result where tools report the outcome
#: How failure is reported if the format has no field for it: at the very start, or for tools that write, anywhere in
#: the first line, which is never a line of the file.
FAILED = re.compile(
    r"[\s\[({<\"'*❌✗]*(?:\w*(?:error|exception)\b|fail(?:ed|ure)?\b|traceback|cannot|can't|could ?n[o']t|unable"
    r"|no such|(?:file )?(?:not found|does not exist)|(?:permission|access) denied|invalid|is_error|success\"?: ?false"
    r"|status\"?: ?\"?(?:error|fail)|错误|出错|失败|异常|无法|不能|找不到|未找到|不存在|没有权限)",
    re.IGNORECASE,
)
UNWRITTEN = re.compile(
    r"not found|no match|did not|does not|not unique|no changes|fail|error|denied"
    r"|失败|错误|未找到|找不到|不存在|不唯一",
    re.IGNORECASE,
)
#: Phrases of a tool that did not show everything.
PARTIAL = re.compile(
    r"truncat|omitted|left out|not shown|more lines|showing (?:lines|first)|use offset|截断|省略|未显示|剩余",
    re.IGNORECASE,
)


class Use(StrEnum):
    """What a call does to a file."""

    READ = "read"
    WRITE = "write"  # the whole text, which is in the arguments
    EDIT = "edit"  # part of the text


@dataclass(frozen=True, slots=True)
class Span:
    """Lines `first` to `last`, as the tool counts them. `first` is None if unknown; `last` is None for the end."""

    first: int | None
    last: int | None = None

    def covers(self, other: "Span") -> bool:
        """Whether these lines certainly include all lines of the other span."""
        if self.first is None or other.first is None or self.first > other.first:
            return False
        return self.last is None or (other.last is not None and other.last <= self.last)


@dataclass(frozen=True, slots=True)
class Access:
    """An access to one file. `span` are the lines that were read, None for the whole file."""

    tool: str
    path: str
    use: Use
    span: Span | None = None


def accesses(call: ToolCall) -> tuple[Access, ...]:
    """Return the files that a call reads or writes.

    Example: view(path="./a.py", view_range=[1, 20]) -> Access("view", "a.py", Use.READ, Span(1, 20))
    """
    fields = _fields(call.arguments)
    use = _use(call.name, fields)
    if use is None:
        return ()
    path = _first(fields, PATH)
    if isinstance(path, str) and path.strip():
        return (Access(call.name, _plain(path), use, _span(fields) if use is Use.READ else None),)
    if use is Use.EDIT:
        return tuple(Access(call.name, _plain(path), use) for path in dict.fromkeys(_patched(fields)))
    return ()


def looks_failed(result: ToolResult, use: Use) -> bool:
    """Return whether the call failed, as far as its result shows."""
    opening = result.text[:EDGE].lstrip()
    if result.failed or FAILED.match(opening):
        return True
    return use is not Use.READ and UNWRITTEN.search(opening.partition("\n")[0]) is not None


def looks_partial(result: ToolResult) -> bool:
    """Return whether the result says that it does not show everything."""
    text = result.text
    return PARTIAL.search(text[:EDGE]) is not None or PARTIAL.search(text[-EDGE:]) is not None


def _fields(arguments: str) -> JsonObject:
    """Return the arguments by normalised name. Anything but a JSON object becomes one argument without a name."""
    try:
        value = cast(Json, json.loads(arguments))
    except (ValueError, RecursionError):
        value = arguments
    if not isinstance(value, dict):
        return {"": value}
    return {key.lower().replace("_", "").replace("-", ""): inner for key, inner in value.items()}


def _first(fields: JsonObject, names: re.Pattern[str]) -> Json:
    """Return the first argument that is given under such a name; None if there is none."""
    return next((value for key, value in fields.items() if value is not None and names.fullmatch(key)), None)


def _use(name: str, fields: JsonObject) -> Use | None:
    """Return what the tool does, by its command if that says so, otherwise by its name; None if unclear."""
    command = _first(fields, COMMANDS)
    use = _named_use(command) if isinstance(command, str) and COMMAND.fullmatch(command) else None
    use = use or _named_use(name)
    whole = isinstance(_first(fields, CONTENT), str)
    return Use.EDIT if use is Use.WRITE and not whole else use


def _named_use(name: str) -> Use | None:
    words = f"{' '.join(WORD.findall(name)).lower()} {name}"
    if EDITING.search(words):
        return Use.EDIT
    if WRITING.search(words):
        return Use.WRITE
    return Use.READ if READING.search(words) and not OTHER.search(words) else None


def _plain(path: str) -> str:
    """Return the normalised path of a file. Example: ".\\\\src\\\\a.py" -> "src/a.py" """
    return normpath(" ".join(path.split()).replace("\\", "/"))


def _patched(fields: JsonObject) -> Iterator[str]:
    for value in fields.values():
        if isinstance(value, str):
            yield from (found[1] for found in PATCHED.finditer(value))


def _span(fields: JsonObject) -> Span | None:
    """Return the requested lines; None for the whole file."""
    if _first(fields, OTHER_BOUND) is not None:
        return Span(None)
    if (bounds := _first(fields, RANGE)) is not None:
        return _range(bounds)
    given = [_first(fields, names) for names in (FIRST, LAST, COUNT)]
    if given == [None, None, None]:
        return None
    first, last, count = (_whole(value) for value in given)
    start = 0 if given[0] is None else first
    if start is None or start < 0:
        return Span(None)
    if last is None and count is not None:
        last = start + count - 1
    return Span(start, None if last is None or last < 0 else last)


def _range(value: Json) -> Span:
    """Return a range of lines. Example: [1, 20] and "1-20" -> Span(1, 20); [5, -1] -> Span(5)"""
    ends: list[Json] = value if isinstance(value, list) else []
    if isinstance(value, str):
        ends = [end for end in re.split(r"\s*[-:,]\s*", value.strip()) if end]
    numbers = [_whole(end) for end in ends]
    first, last = numbers if len(numbers) == 2 else (None, None)
    return Span(first, None if last is None or last < 0 else last) if first is not None else Span(None)


def _whole(value: Json) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value) else None
