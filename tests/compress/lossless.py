"""What every lossless step promises, as one check, and small conversations to check it on."""

from dataclasses import replace

from hypothesis import strategies as st

from everlong.compress.draft import Draft, Step, Task, draft_of
from everlong.core import (
    Action,
    CallId,
    History,
    Image,
    Message,
    Part,
    Role,
    Text,
    ToolCall,
    ToolResult,
    part_content,
    ref_of,
)
from everlong.tokens import Counter

COUNTER = Counter("gpt-4o")
PICTURE = Image(data="aGVsbG8=", media_type="image/png")

SOURCE = "\n".join(f"def handler_{n}(request): return respond(request, {n * 17})" for n in range(12))
LOG = "\n".join(f"2026-01-02 03:04:{n:02} worker {n} finished its job" for n in range(20))
COLOURED = "".join(f"\x1b[32mpassed\x1b[0m test_{n}\x1b[K\r\n" for n in range(12)) + "1%\r50%\r100%"
RECORDS = "[" + ",".join(f'{{"id": {n}, "name": "item {n}", "open": true, "note": "\\ud83d"}}' for n in range(9)) + "]"
TEXTS = (
    "ok",
    SOURCE,
    SOURCE.replace("respond", "answer"),
    LOG,
    "tick\n" * 30 + "tock",
    COLOURED,
    "\x1b[0m" * 40,
    RECORDS,
    RECORDS.replace("name", "名称"),
    "重复的行，内容足够长，值得省略。\n" * 9,
    "lone \ud83d surrogate, said twice over so that it is long enough to matter to any of the steps\n" * 5,
)
CALLS = (
    ("read_file", '{"path": "src/app.py"}'),
    ("read_file", '{"path": "./src/app.py", "offset": 10, "limit": 5}'),
    ("edit_file", '{"path": "src/app.py", "old": "a", "new": "b"}'),
    ("读取文件", '{"路径": "src/app.py"}'),
    ("bash", '{"command": "make test"}'),
    ("bash", "not json"),
)


def task(*, target: int = 0, language: str = "en", recall: bool = False, pins: frozenset[int] = frozenset()) -> Task:
    """By default nothing fits, so every step works."""
    return Task(target=target, counter=COUNTER, language=language, recall=recall, pins=pins)


def draft(history: History, wanted: Task | None = None) -> Draft:
    return draft_of(history, wanted or task())


def said(after: Draft, position: int, index: int = 0) -> str:
    """The words of one part as it would be sent."""
    return part_content(after.slots[position].message.parts[index])


def tool_round(number: int, name: str, arguments: str, *content: str | Image, failed: bool = False) -> History:
    """A call and its result, as two messages."""
    call = CallId(f"c{number}")
    parts = tuple(Text(part) if isinstance(part, str) else part for part in content)
    return (
        Message(Role.ASSISTANT, (ToolCall(call, name, arguments),)),
        Message(Role.TOOL, (ToolResult(call, parts, failed=failed),)),
    )


def read(number: int, text: str, path: str = "src/app.py", **bounds: object) -> History:
    """A file that was read."""
    listed = "".join(f', "{key}": {bound}' for key, bound in bounds.items())
    return tool_round(number, "read_file", f'{{"path": "{path}"{listed}}}', text)


ENDING = (Message(Role.ASSISTANT, (Text("Done."),)), Message(Role.USER, (Text("What now?"),)))


@st.composite
def histories(draw: st.DrawFn) -> History:
    """System text, then turns of a few kinds with texts from the pool; some end with a result nobody has read."""
    picks = st.tuples(st.integers(0, 3), st.integers(0, len(CALLS) - 1), *[st.integers(0, len(TEXTS) - 1)] * 2)
    messages: list[Message] = [Message(Role.SYSTEM, (Text(SOURCE),))]
    for number, (kind, call, one, two) in enumerate(draw(st.lists(picks, max_size=7))):
        if kind == 0:
            messages.append(Message(Role.USER, (Text(TEXTS[one]), PICTURE)))
            messages.append(Message(Role.ASSISTANT, (Text(TEXTS[two]),)))
        elif kind == 1:
            messages += tool_round(number, *CALLS[call], TEXTS[one], PICTURE, TEXTS[two])
        else:
            messages += tool_round(number, *CALLS[call], TEXTS[one], failed=kind == 3 and two == 0)
    return tuple(messages) + draw(st.sampled_from([(), ENDING, ENDING[:1]]))


def keeps_its_promises(step: Step, history: History, wanted: Task) -> Draft:
    """Run the step and check everything that holds for each of them; gives what it made."""
    before = draft_of(history, wanted)
    after = step(before, wanted)
    assert after == step(draft_of(history, wanted), wanted), "the same in, the same out"
    assert after.history == history == before.history
    assert [slot.at for slot in after.slots] == [slot.at for slot in before.slots]
    for old, new in zip(before.slots, after.slots, strict=True):
        assert new.tokens == COUNTER.message(new.message) <= old.tokens
        assert new.message == old.message or new.at not in before.protected
        assert _frame(new.message) == _frame(old.message)
    assert after.total == sum(slot.tokens for slot in after.slots)
    assert sum(edit.saved for edit in after.edits) == before.total - after.total
    changed = {at for at, slot in enumerate(after.slots) if slot != before.slots[at]}
    assert changed == {edit.at for edit in after.edits}
    for edit in after.edits:
        assert edit.action is Action.SHORTEN
        assert edit.saved > 0
        assert edit.reason
        assert edit.part is not None
        assert edit.ref == ref_of(part_content(history[edit.at].parts[edit.part]))
        assert_says_something(after.slots[edit.at].message.parts[edit.part])
    assert step(after, wanted) == after, "a second time changes nothing"
    assert step(draft_of(after.messages, wanted), wanted).messages == after.messages, "nor on what was sent"
    fitting = replace(wanted, target=before.total)
    assert step(before, fitting) is before, "what fits is sent untouched"
    return after


def assert_says_something(part: Part) -> None:
    blocks = part.content if isinstance(part, ToolResult) else (part,)
    assert blocks
    for block in blocks:
        if isinstance(block, Text):
            assert block.text.strip()


def _frame(message: Message) -> tuple[object, ...]:
    """All but the words."""
    return (message.role, message.name, message.extra, *map(_bones, message.parts))


def _bones(part: Part) -> object:
    if isinstance(part, ToolResult):
        others = tuple(inner for inner in part.content if not isinstance(inner, Text))
        return part.call, part.name, part.failed, part.extra, others
    return "words" if isinstance(part, Text) else part
