"""Facts copied out of a conversation by code: what a model must not have to remember, and cannot change.

Bounded whatever the size (`BOUNDS`): of each kind the newest are kept, of requests also those that hold on. Text that
we or a client added to the conversation is no fact of it.
"""

import json
import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from everlong.compress import Use, accesses, looks_failed
from everlong.core import CallId, Json, Message, Role, ToolCall, ToolResult
from everlong.relevance import names_in
from everlong.summarize.figures import figures_in
from everlong.summarize.frames import is_framed
from everlong.summarize.secrets import redacted
from everlong.summarize.summary import NO_FACTS, Facts
from everlong.summarize.tasks import open_tasks
from everlong.summarize.typed import typed_by_user

__all__ = ["BOUNDS", "Bound", "facts_of"]


@dataclass(frozen=True, slots=True)
class Bound:
    """The most of one kind: how many, characters of each, characters of all."""

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
WHOLE_REQUESTS = 3  # the newest are kept at their full length
LONGEST_OLD_REQUEST = 400  # characters; a longer one keeps its beginning and its end
SHORTEST_REQUEST = 12  # characters; a shorter one says yes, or go on
MOST_LASTING = 15  # requests that are kept for what they say, not for when
LOOKED_AT = 20_000  # characters of one text
TWICE = 2  # a name that was said at least so often is worth keeping
FEW_NAMES = 20  # in one text; with more of them it is pasted
NEW_NAMES = 40  # from these messages; the rest of the places are for those before
CUT = " […] "

#: Words of users about what holds from now on.
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
#: Complaints of tools about how they were called, which the next call put right.
_PASSING = re.compile(r"(?i)sibling tool call|has not been read yet|modified since read|no changes to make")
_WRAPPING = re.compile(r"</?[a-z_]{3,40}>")
_ENCODED = re.compile(r"[A-Za-z0-9_./-]{160,}")  # data, not a name; looking for names in it takes for ever
_ESCAPES = re.compile(r"\\[nrt\"\\/]")
TOLD_OF_CALL = 80  # characters
EDGE = 120


def facts_of(messages: Sequence[Message], previous: Facts = NO_FACTS) -> Facts:
    """The facts of these messages, after those of what came before them."""
    said = [message for message in messages if not is_framed(message.text)]
    read, changed = _files(said)
    files_changed = _newest("files_changed", (*previous.files_changed, *changed))
    files_read = [file for file in (*previous.files_read, *read) if file not in set(files_changed)]
    requests = [text for text in map(typed_by_user, said) if text]
    return Facts(
        requests=_requests([*previous.requests, *requests]),
        files_read=_newest("files_read", files_read),
        files_changed=files_changed,
        identifiers=_newest("identifiers", (*previous.identifiers, *_names(said, {*read, *changed}))),
        numbers=_newest("numbers", (*previous.numbers, *figures_in(said))),
        failures=_newest("failures", tuple(_failures(said, previous.failures))),
        open_tasks=_newest("open_tasks", open_tasks(said, previous.open_tasks)),
    )


def _requests(requests: Sequence[str]) -> tuple[str, ...]:
    """In the users' own words: the newest whole, before them the first and what is to hold, then what is recent.

    Each stands once, where it was said last.
    """
    bound = BOUNDS["requests"]
    once = list(reversed(dict.fromkeys(reversed([redacted(text) for text in requests]))))
    newest = len(once) - WHOLE_REQUESTS
    lasting = [at for at, text in enumerate(once[: max(newest, 0)]) if at == 0 or LASTING.search(text[:LOOKED_AT])]
    kept = lasting[:1] + lasting[1:][-(MOST_LASTING - 1) :]
    recent = [at for at in range(len(once)) if at >= newest or len(once[at]) >= SHORTEST_REQUEST]
    places: dict[int, str] = {}
    left = bound.all
    for at in (*range(len(once) - 1, max(newest, 0) - 1, -1), *kept, *reversed(recent)):
        text = _clipped(once[at], bound.each if at >= newest else LONGEST_OLD_REQUEST)
        if at not in places and len(places) < bound.many and len(text) <= left:
            places[at] = text
            left -= len(text)
    return tuple(places[at] for at in sorted(places))


def _files(messages: Iterable[Message]) -> tuple[list[str], list[str]]:
    """Files read and files changed."""
    read: list[str] = []
    changed: list[str] = []
    for message in messages:
        for call in message.calls:
            for access in accesses(call):
                (read if access.use is Use.READ else changed).append(access.path)
    return read, changed


def _failures(messages: Iterable[Message], before: Iterable[str]) -> Iterator[str]:
    """What went wrong, in which call, and has not gone well since."""
    calls: dict[CallId, ToolCall] = {}
    wrong: dict[str, str] = {}
    well: set[str] = set()
    for message in messages:
        calls |= {call.id: call for call in message.calls}
        for result in message.results:
            made = calls.get(result.call)
            name = result.name if made is None else _named(made)
            wrong.pop(name, None)
            told = _told(result)
            if told and not _PASSING.search(told):
                wrong[name] = f"{name}: {told}".removeprefix(": ")
            elif not told:
                well.add(f"{name}: ")
    yield from (failure for failure in before if failure.partition("): ")[0] + "): " not in well)
    yield from wrong.values()


def _told(result: ToolResult) -> str:
    """The line that says most: the first, or the first that names an error; "" if all went well."""
    text = result.text
    ended = _ENDED_BADLY.match(text[:EDGE].lstrip()) is not None
    if not (looks_failed(result, Use.READ) or ended or _ENDS_BADLY.search(text[-EDGE:])):
        return ""
    shown = (_WRAPPING.sub("", line).strip() for line in redacted(text[:LOOKED_AT]).split("\n"))
    lines = [line for line in shown if line] or ["…"]
    first = lines[0]
    if first.lower().startswith("traceback"):
        return next((line for line in reversed(lines) if _ERROR.search(line[:EDGE])), first)
    if looks_failed(result, Use.READ) and not _GENERIC.match(first):
        return first
    telling = next((line for line in lines if _ERROR.search(line[: 2 * EDGE])), lines[-1])
    return f"{first}: {telling}" if _GENERIC.match(first) and telling != first else telling


def _named(call: ToolCall) -> str:
    """The tool and the first thing it was given. Example: bash({"command": "make"}) -> "bash (make)" """
    given = next(_strings(call.arguments), "")
    return f"{call.name} ({_clipped(_one_line(given), TOLD_OF_CALL)})" if given else call.name


def _strings(arguments: str) -> Iterator[str]:
    """The texts among the arguments of a call, as the tool gets them, without secrets, which their names tell."""
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
    """Names that a user said, or that came up more than once in what was said or called; results alone do not count."""
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
    """Each once, at its newest place, clipped, and no more than are worth it."""
    bound = BOUNDS[kind]
    kept: dict[str, None] = {}
    left = bound.all
    for value in reversed(values):
        text = _clipped(redacted(_one_line(value)), bound.each)
        if text and text not in kept:
            left -= len(text)
            if left < 0 or len(kept) == bound.many:
                break
            kept[text] = None
    return tuple(reversed(kept))


def _one_line(text: str) -> str:
    return " ".join(text[: 2 * LOOKED_AT].split())


def _clipped(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = (most - len(CUT)) * 2 // 3
    return text[:head] + CUT + text[len(text) - (most - len(CUT) - head) :]
