"""Histories for property tests: well-formed ones, and ones with everything that goes wrong in the field.

Cheap to draw: one integer a message, spent like dice on pools of ready parts, so that long histories
cost little and shrink towards plain words of the user. `conversations` are what a careful client keeps;
`histories` add missing, second, misplaced and early results, ids that come again, words between calls
and results, empty texts, broken arguments, halves of surrogate pairs, parts in the wrong message.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

from hypothesis import strategies as st

from everlong.core import (
    CallId,
    History,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from everlong.wire.repair.pairs import NO_RESULT

__all__ = ["FORMATS", "Dice", "conversations", "histories"]

FORMATS = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")
ORIGINS = ("", *FORMATS)

WORDS = (
    "hello",
    "Please read src/app.py and fix the bug in line 42.",
    "请把配置文件里的端口改成 8080，然后重启服务。",
    "日本語のテキストです。",
    "👩‍👩‍👧‍👦 family, 🇨🇳 flag, é and é",
    "done\n\n```python\nprint('x')\n```\n",
    "x" * 300,
)
BAD_WORDS = (
    "",
    " \n\t",
    NO_RESULT,
    "cut in \ud83d",
    "\ude00 the wrong half",
    "\ud83d\ude00 not joined",
    "ends in white space \n",
)
NAMES = ("read_file", "bash", "search", "mcp__db__query")
BAD_NAMES = ("", "mcp.db/query", "读取文件", "9lives", "a" * 200)
ARGUMENTS = ("{}", '{"path": "a.py"}', '{"q": "天气", "n": 3}', '{"emoji": "\\ud83d\\ude00"}')
BAD_ARGUMENTS = (
    "",
    '{"path": "a.py", "text": "def f(',
    '{"a": [1, {"b',
    "{'path': 'a.py'}",
    "null",
    '["a"]',
    '"{\\"a\\": 1}"',
    '{"a": "\\ud83d"}',
    '{"a": "\ud83d"}',
    '{"a": NaN}',
    "ls -l",
    "[" * 2_000,
)
IDS = ("0", "call_1", "toolu_01", "fc-7")
BAD_IDS = ("", " ", "functions.bash:0", "x" * 80, "é", "\ud800")
PICTURES = (
    Image(data="aGk=", media_type="image/png"),
    Image(url="https://example.org/cat.png", detail="low"),
)
BAD_PICTURES = (Image(), Image(data="aGk=", media_type="image/tiff"), Image(url="file-123"))
THOUGHTS = (
    Reasoning("I should read the file first."),
    Reasoning("", signature='"c2VhbGVk"'),
    Reasoning("先看文件。", signature='"c2lnbmVk"'),
    Reasoning(""),
)
BAD_THOUGHTS = (Reasoning("half \ud83d", signature='"c2VhbGVk"'), Reasoning("half \ud83d"))
CARRIED = (
    Opaque("input_audio", '{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}'),
    Opaque("web_search_call", '{"type":"web_search_call","id":"ws_1","status":"completed"}'),
)
EXTRAS = ("", "", '{"cache_control":{"type":"ephemeral"}}')
BAD_EXTRAS = ('{"note":"\ud83d"}', '{"note":"\\ud83d"}')

T = TypeVar("T")


@dataclass
class Dice:
    """An integer, spent a throw at a time; 0 always throws the first of everything."""

    left: int

    def throw(self, sides: int) -> int:
        self.left, thrown = divmod(self.left, sides)
        return thrown

    def pick(self, pool: Sequence[T]) -> T:
        return pool[self.throw(len(pool))]

    def often(self, good: Sequence[T], bad: Sequence[T], *, broken: bool) -> T:
        """One of the good ones, and in a broken history one time in four a bad one."""
        return self.pick(bad) if broken and self.throw(4) == 3 else self.pick(good)


@st.composite
def conversations(draw: st.DrawFn, max_rounds: int = 6, *, origins: Sequence[str] = ORIGINS) -> History:
    """Well-formed: system text, then rounds of a question, tool steps with all their results, an answer."""
    origin = origins[draw(st.integers(0, len(origins) - 1))]
    throws = draw(st.lists(st.integers(0, 2**40), min_size=1, max_size=max_rounds))
    numbers = count(1)
    system = (_message(Role.SYSTEM, Text("You are a careful assistant.")),) if draw(st.booleans()) else ()
    spoken = [message for throw in throws for message in _round(Dice(throw), numbers)]
    return (*system, *(replace(message, origin=origin) for message in spoken))


@st.composite
def histories(draw: st.DrawFn, max_messages: int = 12, *, origins: Sequence[str] = ORIGINS) -> History:
    """Anything at all, the empty history included; one origin for all messages, or one for each."""
    throws = draw(st.lists(st.integers(0, 2**56), max_size=max_messages))
    mixed = draw(st.integers(0, len(origins)))
    messages: list[Message] = []
    for throw in throws:
        dice = Dice(throw)
        origin = dice.pick(origins) if mixed == len(origins) else origins[mixed]
        messages.append(replace(_anything(dice, messages), origin=origin))
    return tuple(messages)


# --- well-formed ---------------------------------------------------------------------------------


def _round(dice: Dice, numbers: "count[int]") -> list[Message]:
    messages = [_message(Role.USER, Text(dice.pick(WORDS)), *_some(dice, PICTURES))]
    for _ in range(dice.throw(4)):
        ids = [CallId(f"call_{next(numbers)}") for _ in range(1 + dice.throw(3))]
        made = [ToolCall(call, dice.pick(NAMES), dice.pick(ARGUMENTS)) for call in ids]
        messages.append(_message(Role.ASSISTANT, *_some(dice, (Text("Let me look."),)), *made))
        messages += [_message(Role.TOOL, ToolResult(call.id, (Text(dice.pick(WORDS)),), call.name)) for call in made]
    return [*messages, _message(Role.ASSISTANT, Text(dice.pick(WORDS)))]


def _some(dice: Dice, pool: Sequence[T]) -> list[T]:
    return [dice.pick(pool)] if dice.throw(3) == 2 else []


def _message(role: Role, *parts: Part) -> Message:
    return Message(role, parts)


# --- anything ------------------------------------------------------------------------------------


def _anything(dice: Dice, before: Sequence[Message]) -> Message:
    kind = dice.throw(16)
    if kind <= 3:
        return _message(Role.USER, *_words(dice))
    if kind <= 8:
        return _message(Role.ASSISTANT, *_said(dice, calls=dice.throw(4)))
    if kind <= 12:
        return _answers(dice, before)
    if kind == 13:
        return _message(Role.SYSTEM, *_words(dice))
    if kind == 14:
        return replace(
            _message(Role.ASSISTANT, *_said(dice, calls=0)), extra=dice.often(EXTRAS, BAD_EXTRAS, broken=True)
        )
    return _misplaced(dice)


def _words(dice: Dice) -> list[Part]:
    parts: list[Part] = [Text(dice.often(WORDS, BAD_WORDS, broken=True), dice.often(EXTRAS, BAD_EXTRAS, broken=True))]
    if dice.throw(4) == 3:
        parts.append(dice.often(PICTURES, BAD_PICTURES, broken=True))
    if dice.throw(8) == 7:
        parts.append(dice.pick(CARRIED))
    return parts[1:] if dice.throw(16) == 15 else parts


def _said(dice: Dice, calls: int) -> list[Part]:
    thought: list[Part] = [dice.often(THOUGHTS, BAD_THOUGHTS, broken=True)] if dice.throw(3) == 2 else []
    words = _words(dice) if not calls or dice.throw(2) else []
    made = [_call(dice) for _ in range(calls)]
    return [*words, *made, *thought] if dice.throw(8) == 7 else [*thought, *words, *made]


def _call(dice: Dice) -> Part:
    call = CallId(dice.often(IDS, BAD_IDS, broken=True))
    name = dice.often(NAMES, BAD_NAMES, broken=True)
    return ToolCall(call, name, dice.often(ARGUMENTS, BAD_ARGUMENTS, broken=True))


def _answers(dice: Dice, before: Sequence[Message]) -> Message:
    """Results of the newest calls, of some of them, or of none there is; perhaps with words beside."""
    newest = next((message.calls for message in reversed(before) if message.calls), ())
    how = dice.throw(6)
    asked = [call.id for call in newest] if how <= 3 else [call.id for call in newest[:1]]
    ids = asked if asked and how != 5 else [CallId(dice.often(IDS, BAD_IDS, broken=True))]
    results: list[Part] = [ToolResult(call, _output(dice), failed=dice.throw(4) == 3) for call in ids]
    beside = _words(dice) if dice.throw(8) == 7 else []
    return _message(Role.TOOL, *beside, *results) if dice.throw(4) == 3 else _message(Role.TOOL, *results, *beside)


def _output(dice: Dice) -> tuple[ResultPart, ...]:
    words = Text(dice.often(WORDS, BAD_WORDS, broken=True))
    return ((words,), (words, dice.pick(PICTURES)), (), (dice.pick(CARRIED),))[
        dice.often((0, 0, 1), (2, 3), broken=True)
    ]


def _misplaced(dice: Dice) -> Message:
    """Parts where they do not belong, and messages without any."""
    result = ToolResult(CallId(dice.pick(IDS)), _output(dice))
    role = dice.pick(tuple(Role))
    return _message(role, *dice.pick(((), (result, *_words(dice)), (*_said(dice, calls=1),), (_call(dice), result))))
