"""Keep one copy of a text that occurs more than once, byte for byte; the other copies become one line.

A protected copy stays, otherwise the newest, which is nearest to what comes next. Tool results and long texts of users
and assistants count. A text that the provider signed stays unchanged.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from everlong.compress.draft import OURS, Draft, Task
from everlong.compress.text.substitutes import Shorter, is_stub, original, shorten, with_stub
from everlong.core import Part, Ref, Role, Text, ToolCall, ToolResult, pairs_of
from everlong.relevance import in_language

__all__ = ["duplicates"]

STEP = "duplicates"
LEAST = 40  # tokens; a smaller text is not worth a marker
FEWEST_CHARACTERS = 40  # shorter texts never have enough tokens, in any language

WORDS = {
    "en": {
        "later": "[same text as {where}, later",
        "earlier": "[same text as {where}, earlier",
        "result": "the result of {tool} (message {at})",
        "user": "what the user said (message {at})",
        "assistant": "what the assistant said (message {at})",
        "tokens": "; {tokens} tokens left out; ref {ref}",
        "recall": '; {tool}("{ref}") returns it',
    },
    "zh": {
        "later": "[与后面{where}的内容相同",
        "earlier": "[与前面{where}的内容相同",
        "result": "工具 {tool} 的结果（消息 {at}）",
        "user": "用户所说（消息 {at}）",
        "assistant": "助手所说（消息 {at}）",
        "tokens": "；已省略 {tokens} tokens；引用 {ref}",
        "recall": '；可用 {tool}("{ref}") 取回',
    },
}


@dataclass(frozen=True, slots=True)
class _Copy:
    """One place where the text occurs."""

    position: int
    index: int
    at: int
    part: Text | ToolResult
    open: bool
    role: Role
    tool: str


def duplicates(draft: Draft, task: Task, *, least: int = LEAST, always: bool = False) -> Draft:
    """Keep every repeated text once; the other copies say where it is."""
    if draft.total <= task.target and not always:
        return draft
    copies: defaultdict[str, list[_Copy]] = defaultdict(list)
    for copy in _copies(draft):
        copies[copy.part.text].append(copy)
    wanted: list[Shorter] = []
    for text, places in copies.items():
        if len(places) < 2 or is_stub(text):
            continue
        tokens = task.counter.text(text)
        if tokens < least:
            continue
        stays = next((copy for copy in reversed(places) if not copy.open), places[-1])
        wanted += [
            _said_elsewhere(draft, task, copy, stays, tokens) for copy in places if copy.open and copy is not stays
        ]
    return shorten(draft, task, STEP, sorted(wanted, key=lambda change: (change.position, change.index)))


def _copies(draft: Draft) -> Iterator[_Copy]:
    """Yield every text that counts, oldest first."""
    open_positions = {position for position, _ in draft.open()}
    tools = _tools(draft)
    for position, slot in enumerate(draft.slots):
        role = slot.message.role
        if slot.at == OURS or role is Role.SYSTEM:
            continue
        for index, part in enumerate(slot.message.parts):
            if isinstance(part, Text | ToolResult) and len(part.text) >= FEWEST_CHARACTERS:
                may_change = position in open_positions and not _signed(part)
                yield _Copy(position, index, slot.at, part, may_change, role, tools.get((position, index), ""))


def _tools(draft: Draft) -> dict[tuple[int, int], str]:
    """Return the tool of each result, from its call: few formats repeat the name in the result."""
    messages = draft.messages
    named = {}
    for pair in pairs_of(messages):
        call = messages[pair.call[0]].parts[pair.call[1]]
        named[pair.result] = call.name if isinstance(call, ToolCall) else ""
    return named


def _signed(part: Part) -> bool:
    return isinstance(part, Text) and "signature" in part.extra.lower()


def _said_elsewhere(draft: Draft, task: Task, copy: _Copy, stays: _Copy, tokens: int) -> Shorter:
    _, ref = original(draft, copy.position, copy.index)
    stub = _stub(copy, stays, tokens, ref, task)
    part = with_stub(copy.part, stub) if isinstance(copy.part, ToolResult) else replace(copy.part, text=stub)
    return Shorter(copy.position, copy.index, part, f"the same {tokens:,} tokens are in message {stays.at}")


def _stub(copy: _Copy, stays: _Copy, tokens: int, ref: Ref, task: Task) -> str:
    words = in_language(WORDS, task.language)
    if isinstance(stays.part, ToolResult):
        tool = " ".join((stays.tool or stays.part.name or "?").split())
        where = words["result"].format(tool=tool, at=stays.at)
    else:
        where = words["assistant" if stays.role is Role.ASSISTANT else "user"].format(at=stays.at)
    side = "later" if (stays.position, stays.index) > (copy.position, copy.index) else "earlier"
    said = words[side].format(where=where)
    said += words["tokens"].format(tokens=f"{tokens:,}", ref=ref)
    return said + (words["recall"].format(tool=task.recall, ref=ref) if task.recall else "") + "]"
