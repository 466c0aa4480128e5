"""Facts copied out of a conversation by code: a model need not remember them and cannot change them.

Each kind is bounded (`BOUNDS`), however long the conversation is: the newest stay, and requests that still hold. Text
that we or a client added is ignored. Of users' figures, plain numbers count too; of the model's, only those with a
unit. Code, line numbers, identifiers and pasted data are left out.
"""

import json
import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from everlong.compress import Use, accesses, looks_failed
from everlong.core import CallId, Json, JsonObject, Message, Role, ToolCall, ToolResult, frames_in, is_framed, user_text
from everlong.relevance import names_in
from everlong.summarize.secrets.redaction import redacted
from everlong.summarize.summary import NO_FACTS, Facts

__all__ = ["BOUNDS", "Bound", "facts_of", "figures_in", "open_tasks", "typed_by_user"]

TASK_CHARACTERS = 20_000  # characters of one text
LARGEST_PARSED = 200_000  # characters of arguments
LISTING = re.compile(r"(?i)todo|task|plan|待办|任务|计划")
CREATING = re.compile(r"(?i)create|add|new|新建|添加|创建")
UPDATING = re.compile(r"(?i)update|complete|finish|close|edit|更新|完成")
TEXTS = ("content", "subject", "title", "step", "task", "text", "description", "name", "内容", "标题")
STATES = ("status", "state", "done", "completed", "状态")
IDS = ("id", "taskid", "task_id", "todoid", "todo_id", "编号")
DONE = frozenset({"completed", "complete", "done", "cancelled", "canceled", "finished", "deleted", "closed", "已完成"})
_NUMBER = re.compile(r"#(\d{1,6})\b")
_BOX = re.compile(r"^[ \t]{0,12}(?:[-*+]|\d{1,3}[.)])[ \t]{1,4}\[([ xX])\][ \t]{1,4}(\S[^\n]{2,1000})", re.MULTILINE)


class _Tasks:
    """The open tasks: name or number -> text."""

    def __init__(self, before: Sequence[str]) -> None:
        self.open: dict[str, str] = {}
        self.created: dict[CallId, str] = {}
        self.last = 0
        for text in before:
            number = _NUMBER.match(text)
            self.open[number[1] if number else text] = text

    def call(self, call: ToolCall) -> None:
        """Process a call that may write a list, add a task or finish one."""
        if len(call.arguments) > LARGEST_PARSED or not LISTING.search(call.name):
            return
        given = _object(call.arguments)
        listed = next((items for items in map(_items, given.values()) if items is not None), None)
        if listed is not None:
            self._list(listed, added=given.get("merge") is True)
            return
        number, text = _first(given, IDS), _first(given, TEXTS)
        if number and UPDATING.search(call.name):
            if _is_done(given):
                self.open.pop(number, None)
        elif text and CREATING.search(call.name):
            self.last += 1
            self.created[call.id] = str(self.last)
            self.open[str(self.last)] = f"#{self.last} {text}"

    def result(self, call: CallId, text: str) -> None:
        """Process a result that gives a new task its number."""
        supposed = self.created.pop(call, None)
        number = _NUMBER.search(text[:200])
        if supposed is None or number is None or supposed not in self.open:
            return
        words = self.open.pop(supposed).partition(" ")[2]
        self.open[number[1]] = f"#{number[1]} {words}"
        self.last = int(number[1])

    def boxes(self, text: str) -> None:
        """Process the checkboxes in a message."""
        ticked = _BOX.findall(text[:TASK_CHARACTERS])
        if ticked:
            self.open = {words.strip(): words.strip() for box, words in ticked if box == " "}

    def _list(self, items: Sequence[Json], *, added: bool) -> None:
        if not added:
            self.open = {}
        for item in items:
            fields: JsonObject = item if isinstance(item, dict) else {"content": item}
            text = _first(fields, TEXTS)
            name = _first(fields, IDS) if added else text
            if _is_done(fields):
                self.open.pop(name, None)
            elif text:
                self.open[name or text] = text


def open_tasks(messages: Iterable[Message], before: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the tasks that are open after these messages; `before` were open before them.

    Example: todo_write([{content: "a", status: "completed"}, {content: "b"}]) -> ("b",)
    """
    tasks = _Tasks(before)
    for message in messages:
        for call in message.calls:
            tasks.call(call)
        for result in message.results:
            tasks.result(result.call, result.text)
        if message.role in (Role.USER, Role.ASSISTANT):
            tasks.boxes(message.text)
    return tuple(tasks.open.values())


def _object(arguments: str) -> JsonObject:
    try:
        value = cast(Json, json.loads(arguments))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {"": value}


def _items(value: Json) -> list[Json] | None:
    """Return the items of a task list, also of one encoded as a string; None for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _object(value).get("", None)
    if not isinstance(value, list):
        return None
    if all(isinstance(item, dict) and _first(item, TEXTS + IDS) for item in value):
        return value
    return value if value and all(isinstance(item, str) for item in value) else None


def _first(fields: JsonObject, names: Sequence[str]) -> str:
    lower = {key.lower(): value for key, value in fields.items()}
    found = next((lower[name] for name in names if isinstance(lower.get(name), str | int) and lower[name] != ""), "")
    return " ".join(str(found).split())


def _is_done(fields: JsonObject) -> bool:
    lower = {key.lower(): value for key, value in fields.items()}
    states = [lower[name] for name in STATES if name in lower]
    return any(state is True or (isinstance(state, str) and state.lower() in DONE) for state in states)


@dataclass(frozen=True, slots=True)
class Bound:
    """The limits of one kind of fact: how many, characters of each, characters of all."""

    many: int
    each: int
    all: int


BOUNDS: dict[str, Bound] = {
    "requests": Bound(30, 1_200, 8_000),
    "files_read": Bound(30, 200, 2_500),
    "files_changed": Bound(40, 200, 3_500),
    "identifiers": Bound(60, 60, 1_500),
    "numbers": Bound(30, 200, 2_400),
    "failures": Bound(10, 240, 2_000),
    "open_tasks": Bound(24, 200, 2_400),
}
WHOLE_REQUESTS = 3  # the newest requests may be as long as `BOUNDS` allows
LONGEST_OLD_REQUEST = 400  # characters; a longer one keeps its beginning and its end
SHORTEST_REQUEST = 12  # characters; a shorter one only says yes or to continue
MOST_LASTING = 15  # requests that are kept for their content, not for their age
LOOKED_AT = 20_000  # characters of one text
TWICE = 2  # a name that occurs at least this often is kept
FEW_NAMES = 20  # in one text; a text with more names is pasted
NEW_NAMES = 40  # from these messages; the rest of the limit is for earlier names
CUT = " […] "

#: Words in requests that still hold later.
LASTING = re.compile(
    r"(?i)\b(?:remember|always|never|from now on|must(?: not|n't)?|do not|don't|prefer|important|deadline|budget"
    r"|decided?|agreed?|my name|i(?:'m| am) (?:allergic|called)|call me|make sure|rule|note that|keep in mind)\b"
    r"|记住|决定|约定|以后|总是|永远|从现在|必须|不要|不能|别用|务必|偏好|喜欢|我叫|我是|截止|预算|重要|注意|请用"
)
_ERROR = re.compile(
    r"(?i)\b(?:\w*error|\w*exception|fail(?:ed|ure)?|fatal|panic|denied|refused|undefined|cannot|not found)\b"
    r"|错误|异常|失败|无法"
)
_GENERIC = re.compile(
    r"(?i)(?:command )?exit(?:ed with)?(?: code| status)?:? -?\d+\.?$|traceback \(most recent|error:?$"
)
_ENDED_BADLY = re.compile(
    r"(?i)(?:command )?(?:exit|exited with)(?: code| status)?:? -?[1-9]\d{0,3}\b|(?:--- )?FAIL\b|command failed|fatal:"
    r"|panic:"
)
_ENDS_BADLY = re.compile(r"(?i)(?:exit(?:ed with)? (?:code|status)|returned):? -?[1-9]\d{0,3}[\])]?\.?\s*$")
#: Tool errors about how the tool was called, which the next call fixes.
_PASSING = re.compile(r"(?i)sibling tool call|has not been read yet|modified since read|no changes to make")
_WRAPPING = re.compile(r"</?[a-z_]{3,40}>")
_ENCODED = re.compile(r"[A-Za-z0-9_./-]{160,}")  # data, not a name; searching it for names is very slow
_ESCAPES = re.compile(r"\\[nrt\"\\/]")
LONGEST_ARGUMENT = 80  # characters of a call's argument in a failure
EDGE = 120


def facts_of(messages: Sequence[Message], previous: Facts = NO_FACTS) -> Facts:
    """Return the facts of these messages, added to the previous facts."""
    own = [message for message in messages if not is_framed(message.text)]
    frames = frames_in(own)
    read, changed = _files(own)
    files_changed = _newest("files_changed", (*previous.files_changed, *changed))
    files_read = [file for file in (*previous.files_read, *read) if file not in set(files_changed)]
    spoken = (message for at, message in enumerate(own) if at not in frames)
    requests = [text for text in map(typed_by_user, spoken) if text]
    return Facts(
        requests=_requests([*previous.requests, *requests]),
        files_read=_newest("files_read", files_read),
        files_changed=files_changed,
        identifiers=_newest("identifiers", (*previous.identifiers, *_names(own, {*read, *changed}))),
        numbers=_newest("numbers", (*previous.numbers, *figures_in(own))),
        failures=_newest("failures", tuple(_failures(own, previous.failures))),
        open_tasks=_newest("open_tasks", open_tasks(own, previous.open_tasks)),
    )


def _requests(requests: Sequence[str]) -> tuple[str, ...]:
    """Return requests in the users' own words. Priority: the newest, the first and lasting ones, then recent ones.

    A repeated request appears once, at its last position.
    """
    bound = BOUNDS["requests"]
    once = list(reversed(dict.fromkeys(reversed([redacted(text) for text in requests]))))
    newest = len(once) - WHOLE_REQUESTS
    lasting = [at for at, text in enumerate(once[: max(newest, 0)]) if at == 0 or LASTING.search(text[:LOOKED_AT])]
    first_and_lasting = lasting[:1] + lasting[1:][-(MOST_LASTING - 1) :]
    recent = [at for at in range(len(once)) if at >= newest or len(once[at]) >= SHORTEST_REQUEST]
    places: dict[int, str] = {}
    left = bound.all
    for at in (*range(len(once) - 1, max(newest, 0) - 1, -1), *first_and_lasting, *reversed(recent)):
        text = _clipped(once[at], bound.each if at >= newest else LONGEST_OLD_REQUEST)
        if at not in places and len(places) < bound.many and len(text) <= left:
            places[at] = text
            left -= len(text)
    return tuple(places[at] for at in sorted(places))


def _files(messages: Iterable[Message]) -> tuple[list[str], list[str]]:
    """Return the files read and the files changed."""
    read: list[str] = []
    changed: list[str] = []
    for message in messages:
        for call in message.calls:
            for access in accesses(call):
                (read if access.use is Use.READ else changed).append(access.path)
    return read, changed


def _failures(messages: Iterable[Message], before: Iterable[str]) -> Iterator[str]:
    """Yield the failures of calls that did not succeed later."""
    calls: dict[CallId, ToolCall] = {}
    wrong: dict[str, str] = {}
    well: set[str] = set()
    for message in messages:
        calls |= {call.id: call for call in message.calls}
        for result in message.results:
            made = calls.get(result.call)
            name = result.name if made is None else _named(made)
            wrong.pop(name, None)
            line = _failure_line(result)
            if line and not _PASSING.search(line):
                wrong[name] = f"{name}: {line}".removeprefix(": ")
            elif not line:
                well.add(f"{name}: ")
    yield from (failure for failure in before if failure.partition("): ")[0] + "): " not in well)
    yield from wrong.values()


def _failure_line(result: ToolResult) -> str:
    """Return the most informative line of a failed result, mostly the first that names an error; "" if it succeeded."""
    text = result.text
    ended = _ENDED_BADLY.match(text[:EDGE].lstrip()) is not None
    if not (looks_failed(result, Use.READ) or ended or _ENDS_BADLY.search(text[-EDGE:])):
        return ""
    shown = (_WRAPPING.sub("", line).strip() for line in redacted(text[: 2 * LOOKED_AT])[:LOOKED_AT].split("\n"))
    lines = [line for line in shown if line] or ["…"]
    first = lines[0]
    if first.lower().startswith("traceback"):
        return next((line for line in reversed(lines) if _ERROR.search(line[:EDGE])), first)
    if looks_failed(result, Use.READ) and not _GENERIC.match(first):
        return first
    telling = next((line for line in lines if _ERROR.search(line[: 2 * EDGE])), lines[-1])
    return f"{first}: {telling}" if _GENERIC.match(first) and telling != first else telling


def _named(call: ToolCall) -> str:
    """Return the tool and its first argument. Example: bash({"command": "make"}) -> "bash (make)" """
    given = next(_strings(call.arguments), "")
    return f"{call.name} ({_clipped(_one_line(given), LONGEST_ARGUMENT)})" if given else call.name


def _strings(arguments: str) -> Iterator[str]:
    """Yield the decoded texts in a call's arguments. Secrets are removed before decoding, while names are there."""
    arguments = redacted(arguments)
    try:
        value = cast(Json, json.loads(arguments))
    except (ValueError, RecursionError):
        value = _ESCAPES.sub(" ", arguments)
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            waiting += reversed(list(value.values()) if isinstance(value, dict) else value)


def _names(messages: Iterable[Message], files: set[str]) -> list[str]:
    """Return names that a user used, or that occur more than once in messages or calls; results do not count."""
    often: Tally[str] = Tally()
    for message in messages:
        if message.role is Role.ASSISTANT:
            called = (text for call in message.calls for text in _strings(call.arguments))
            for text in (redacted(message.text), *called):
                often.update(names_in(_ENCODED.sub(" ", text[:LOOKED_AT])))
        else:
            names = names_in(_ENCODED.sub(" ", redacted(typed_by_user(message))[:LOOKED_AT]))
            often.update(names * (TWICE if len(names) <= FEW_NAMES else 1))
    known = {known for file in files for known in (file, file.lstrip("/"), file.rpartition("/")[2])}
    worth = [name for name, times in often.items() if times >= TWICE and name not in known]
    best = set(sorted(worth, key=lambda name: -often[name])[:NEW_NAMES])
    return [name for name in worth if name in best]


def _newest(kind: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return each value once, at its last position, clipped, within the bounds of its kind."""
    bound = BOUNDS[kind]
    texts: dict[str, None] = {}
    left = bound.all
    for value in reversed(values):
        text = _clipped(redacted(_one_line(value)), bound.each)
        if text and text not in texts:
            left -= len(text)
            if left < 0 or len(texts) == bound.many:
                break
            texts[text] = None
    return tuple(reversed(texts))


def _one_line(text: str) -> str:
    return " ".join(text[: 2 * LOOKED_AT].split())


def _clipped(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = (most - len(CUT)) * 2 // 3
    return text[:head] + CUT + text[len(text) - (most - len(CUT) - head) :]


# Figures, with the words around them

LONGEST_LINE = 400  # characters; longer ones are data
MOST_OF_USER, MOST_OF_MODEL = 6, 2  # figures from one message
AROUND = 60  # characters before a figure, and twice as many after it
FENCE = re.compile(r"^[ \t]{0,8}(```|~~~)")
DATA = re.compile(r"^\s{0,40}(?:---|===|at |File |\d{4}-\d\d-\d\dT)|^\s{0,40}[{}\[\]<>|\"'/#$@]|[;{}]\s*$|\":|\\n")

_UNITS = (
    r"%|％|‰|(?:ms|s|sec|min|hours?|days?|weeks?|months?|years?|h|[kKMGT]i?B|[kKMG]?Hz|km|kg|cm|mm|°C|px|USD|EUR|CNY|RMB|GBP"
    r"|dollars?|euros?|percent|tokens?|million|billion|[kMx])(?![A-Za-z0-9_])"
    r"|元|万|亿|美元|个|次|天|小时|分钟|秒|年|月|日|号|点|周|岁|人|公里|公斤|斤|米|条|页|台|件|折|倍|块"
)
_EDGE = r"(?<![A-Za-z0-9_.,:/#@+=-])(?<!line )(?<!lines )(?<!line ~)(?<!行 )"
_END = r"(?![A-Za-z0-9_/:-]|\.\d)"
_DATE = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d{2})?|\d{4}年\d{1,2}月(?:\d{1,2}日)?|\d{1,2}月\d{1,2}[日号]"
_AMOUNT = r"(?:[$€£¥￥]|USD |EUR |RMB )\s?\d[\d,]{0,20}(?:\.\d{1,6})?[kKmMbB万亿]?"
_VERSION = r"v?\d{1,4}\.\d{1,4}\.\d{1,6}"
_SIZED = rf"\d[\d,]{{0,20}}(?:\.\d{{1,6}})?[ -]?(?:{_UNITS})"
WITH_UNIT = re.compile(rf"{_EDGE}(?:(?:{_DATE}|{_AMOUNT}|{_VERSION}){_END}|{_SIZED})")
ANY = re.compile(rf"{_EDGE}(?:(?:{_DATE}|{_AMOUNT}|{_VERSION}|\d{{1,3}}(?:,\d{{3}}){{1,6}}|\d{{3,20}}){_END}|{_SIZED})")


def figures_in(messages: Iterable[Message]) -> Iterator[str]:
    """Yield each line with a figure, clipped around it, oldest first.

    Example: "the limit is 4 MB" -> "the limit is 4 MB"
    """
    for message in messages:
        if message.role is Role.ASSISTANT:
            yield from _figures(message.text, WITH_UNIT, MOST_OF_MODEL)
        else:
            yield from _figures(typed_by_user(message), ANY, MOST_OF_USER)


def _figures(text: str, pattern: re.Pattern[str], most: int) -> Iterator[str]:
    count = 0
    fenced = False
    for line in redacted(text)[:LOOKED_AT].split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        if fenced or len(line) > LONGEST_LINE or DATA.search(line):
            continue
        figure = pattern.search(line)
        if figure is not None and count < most:
            count += 1
            yield _around(line, figure)


def _around(line: str, figure: re.Match[str]) -> str:
    """Return the line, or whole words around its first figure."""
    start, end = max(0, figure.start() - AROUND), min(len(line), figure.end() + 2 * AROUND)
    if start > 0:
        start = line.find(" ", start, figure.start()) + 1 or start
    if end < len(line):
        space = line.rfind(" ", figure.end(), end)
        end = space if space > 0 else end
    return line[start:end].strip(" \t\r-*>•")


# What a user typed, without what a client added

#: Blocks that clients add to users' messages, by tag name.
BLOCKS = re.compile(
    r"<(system-reminder|local-command-(?:caveat|stdout|stderr)|bash-(?:input|stdout|stderr)|task-notification"
    r"|command-(?:name|message|args|contents)|ide_(?:opened_file|selection|diagnostics)|environment_(?:context|details)"
    r"|user_instructions|user-prompt-submit-hook|additional_data|open_and_recently_viewed_files|turn_aborted|INSTRUCTIONS)"
    r"(?: [^<>\n]{0,200})?>"
)
#: Beginnings of messages in the user role that no user wrote.
NOT_TYPED = re.compile(
    r"This session is being continued from a previous conversation|\[Request interrupted by user"
    r"|Caveat: The messages below were generated by|Base directory for this skill:|\[Archived Context Summary\]"
    r"|# AGENTS\.md instructions for |(?:Call id: \S{1,80}\s{1,4})?Observation:\s|\[image omitted\]\s*$"
)
COMMAND = re.compile(
    r"<command-name>(/?[\w:.-]{1,80})</command-name>(?:[\s\S]{0,2000}?<command-args>([\s\S]{0,4000}?)</command-args>)?"
)
#: Commands to the client itself, not to the model.
LOCAL = re.compile(
    r"/?(?:exit|quit|clear|compact|model|ide|help|cost|context|config|login|logout|resume|status|mcp|hooks|permissions"
    r"|doctor|memory|vim|theme|usage|rewind|agents|plugin|export)$"
)


def typed_by_user(message: Message) -> str:
    """Return what a user typed in a message, word for word; "" if a client, a tool or Everlong wrote it.

    Example: "fix it<system-reminder>be brief</system-reminder>" -> "fix it"
    """
    text = user_text(message)
    if not text or is_framed(text):
        return ""
    command = COMMAND.search(text[:8_000])
    typed = _without_blocks(text).strip()
    if NOT_TYPED.match(typed):
        return ""
    if command is not None and not typed and not LOCAL.match(command[1]):
        return f"{command[1]} {command[2] or ''}".strip()
    return typed


def _without_blocks(text: str) -> str:
    pieces: list[str] = []
    at = 0
    unclosed: set[str] = set()  # tags without a closing tag in the rest of the text
    for block in BLOCKS.finditer(text):
        name = block[1]
        if block.start() < at or name in unclosed:
            continue
        closing = f"</{name}>"
        end = text.find(closing, block.end())
        if end < 0:
            unclosed.add(name)
            continue
        pieces.append(text[at : block.start()])
        at = end + len(closing)
    return "".join((*pieces, text[at:]))
