"""Replace outdated file reads: the file was read again, overwritten or edited later.

The older result becomes one line with the file, what happened later, and the reference. A read counts as repeated only
if the later one certainly shows all its lines; failed calls do not count. After an edit, no other message may have the
rest of the file: `after_edits=False` keeps such reads.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from everlong.compress.draft import OURS, Draft, Task
from everlong.compress.text.file_access import Access, Use, accesses, looks_failed, looks_partial
from everlong.compress.text.substitutes import Shorter, is_stub, open_results, original, shorten, with_stub
from everlong.core import Ref, ToolCall, ToolResult, pairs_of
from everlong.relevance import in_language

__all__ = ["superseded"]

STEP = "superseded"
LEAST = 40  # tokens; a smaller result is not worth a marker
MOST_SPANS = 64  # later partial reads of one file that are remembered, to bound the work
LONGEST_PATH = 200  # characters; a longer one is not a path

WORDS = {
    "en": {
        "read": "[{path} was read again later ({tool}, message {at}); this older copy, {tokens} tokens, is left out",
        "write": "[{path} was overwritten later ({tool}, message {at}); this older copy, {tokens} tokens, is left out",
        "edit": "[{path} was edited later ({tool}, message {at}); this older copy, {tokens} tokens, is left out",
        "ref": "; ref {ref}",
        "recall": '; {tool}("{ref}") returns it',
    },
    "zh": {
        "read": "[{path} 后来已重新读取（{tool}，消息 {at}）；此处省略较旧的内容，{tokens} tokens",
        "write": "[{path} 后来已重新写入（{tool}，消息 {at}）；此处省略较旧的内容，{tokens} tokens",
        "edit": "[{path} 后来已被修改（{tool}，消息 {at}）；此处省略较旧的内容，{tokens} tokens",
        "ref": "；引用 {ref}",
        "recall": '；可用 {tool}("{ref}") 取回',
    },
}

DONE = {Use.READ: "read again", Use.WRITE: "overwritten", Use.EDIT: "edited"}


@dataclass(frozen=True, slots=True)
class _Event:
    """An access and the position of its result in the history."""

    access: Access
    at: int


@dataclass(slots=True)
class _Later:
    """What happened to one file after the current message: the newest event of each kind."""

    edit: _Event | None = None
    whole: _Event | None = None
    spans: list[_Event] = field(default_factory=list)

    def repeats(self, access: Access) -> _Event | None:
        """Return the newest call that shows all lines of this read."""
        if self.whole is not None:
            return self.whole
        return next((event for event in self.spans if _covers(event.access, access)), None)

    def add(self, event: _Event, *, partial: bool) -> None:
        """Add an event that is older than all known ones."""
        if event.access.use is Use.EDIT:
            self.edit = self.edit or event
        elif partial:
            return
        elif event.access.span is None:
            self.whole = self.whole or event
        elif len(self.spans) < MOST_SPANS:
            self.spans.append(event)


def superseded(
    draft: Draft, task: Task, *, least: int = LEAST, after_edits: bool = True, always: bool = False
) -> Draft:
    """Replace each open read of a file by one line if the file was read again later or, with `after_edits`, edited."""
    if draft.total <= task.target and not always:
        return draft
    messages = draft.messages
    free = {(position, index) for position, index, _ in open_results(draft)}
    files: defaultdict[str, _Later] = defaultdict(_Later)
    wanted: list[Shorter] = []
    for pair in reversed(pairs_of(messages)):
        call = messages[pair.call[0]].parts[pair.call[1]]
        result = messages[pair.result[0]].parts[pair.result[1]]
        at = draft.slots[pair.result[0]].at
        if not isinstance(call, ToolCall) or not isinstance(result, ToolResult) or at == OURS:
            continue
        found = accesses(call)
        if not found or is_stub(result.text) or looks_failed(result, found[0].use):
            continue
        for access in found:
            later = files[access.path]
            newer = later.repeats(access) or (later.edit if after_edits else None)
            if (
                access.use is Use.READ
                and newer is not None
                and pair.result in free
                and task.counter.part(result) >= least
            ):
                wanted.append(_stubbed(draft, task, pair.result, result, newer))
            later.add(_Event(access, at), partial=looks_partial(result))
    return shorten(draft, task, STEP, sorted(wanted, key=lambda change: (change.position, change.index)))


def _covers(newer: Access, older: Access) -> bool:
    """Whether a later read shows all lines of an older one. Tools count lines differently: both need the same tool."""
    if newer.tool != older.tool or newer.span is None or older.span is None:
        return False
    return newer.span.covers(older.span)


def _stubbed(draft: Draft, task: Task, place: tuple[int, int], result: ToolResult, newer: _Event) -> Shorter:
    position, index = place
    _, ref = original(draft, position, index)
    stub = _stub(newer, task.counter.text(result.text), ref, task)
    reason = f"{newer.access.path} was {DONE[newer.access.use]} later, in message {newer.at}"
    return Shorter(position, index, with_stub(result, stub), reason)


def _stub(newer: _Event, tokens: int, ref: Ref, task: Task) -> str:
    words = in_language(WORDS, task.language)
    form = words[newer.access.use]
    path = newer.access.path if len(newer.access.path) <= LONGEST_PATH else "…" + newer.access.path[-LONGEST_PATH:]
    said = form.format(path=path, tool=" ".join(newer.access.tool.split()), at=newer.at, tokens=f"{tokens:,}")
    asking = words["recall"].format(tool=task.recall, ref=ref) if task.recall else ""
    return said + words["ref"].format(ref=ref) + asking + "]"
