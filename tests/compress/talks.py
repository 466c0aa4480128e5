"""Conversations large enough to be cut, and what must hold of every draft that a step gives back."""

import json
from collections.abc import Iterator

from hypothesis import strategies as st

from everlong.compress.draft import OURS, Draft, Task, draft_of
from everlong.core import (
    Action,
    CallId,
    History,
    Image,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    message_ref,
    pairs_of,
    part_ref,
)
from everlong.tokens import Counter
from everlong.wire import format_named
from tests.properties.histories import Dice

COUNTER = Counter("gpt-4o")

LINES = (
    "src/app.py:12: def handler(request): return None",
    "第一行：配置文件里的端口是 8080，请不要修改。",
    "👩‍👩‍👧‍👦 🇨🇳🇩🇪 e\u0301 각 क्षि",
    "error: total 3 failures",
)
REPEATS = (1, 3, 50, 400)
SPREAD = (1 << 200) // 3 | 1  # small numbers, too, throw every side of the dice
PICTURE = Image(data="aGk=" * 300, media_type="image/png")


def task(target: int = 1_000, *, fmt: str = "openai-chat", **settings: object) -> Task:
    """A task with a small window, counted exactly, by the rules of a format."""
    settings["keeps_thinking"] = format_named(fmt).rules.own_thinking
    given: dict[str, object] = {"target": target, "counter": COUNTER, "window": 2_000, **settings}
    return Task(**given)  # type: ignore[arg-type]


def draft(*messages: Message, what: Task | None = None) -> Draft:
    return draft_of(messages, what or task())


@st.composite
def talks(draw: st.DrawFn, max_rounds: int = 5) -> History:
    """Rounds of long questions, thoughts, calls with long arguments, long results, pictures and answers."""
    throws = draw(st.lists(st.integers(0, 2**60), min_size=1, max_size=max_rounds))
    messages = [Message(Role.SYSTEM, (Text("You are careful."),))] if draw(st.booleans()) else []
    number = 0
    for throw in throws:
        dice = Dice(throw * SPREAD)
        question = _text(dice) if dice.throw(3) == 2 else "and now?"
        messages.append(Message(Role.USER, (Text(question), *((PICTURE,) if dice.throw(4) == 3 else ()))))
        for _ in range(dice.throw(4)):
            made = [CallId(f"call_{number + n}") for n in range(1 + dice.throw(2))]
            number += len(made)
            messages.append(Message(Role.ASSISTANT, (*_thought(dice), *(_call(dice, call) for call in made))))
            results = tuple(_result(dice, call) for call in made)
            beside = (Text("and hurry"),) if dice.throw(8) == 7 else ()
            if dice.throw(2):
                messages.append(Message(Role.TOOL, (*results, *beside)))
            else:
                messages += [Message(Role.TOOL, (result,)) for result in results]
        if dice.throw(4) != 3:
            messages.append(Message(Role.ASSISTANT, (*_thought(dice), Text(_text(dice)))))
    return tuple(messages)


def _text(dice: Dice) -> str:
    return "\n".join([dice.pick(LINES)] * dice.pick(REPEATS))


def _thought(dice: Dice) -> tuple[Reasoning, ...]:
    return ((), (Reasoning(_text(dice)),), (Reasoning("sealed", signature='"c2VhbA=="'),))[dice.throw(3)]


def _call(dice: Dice, call: CallId) -> ToolCall:
    arguments = json.dumps({"path": "src/app.py", "content": _text(dice), "line": 12}, ensure_ascii=False)
    return ToolCall(call, dice.pick(("read_file", "bash", "write_file")), arguments)


def _result(dice: Dice, call: CallId) -> ToolResult:
    return ToolResult(call, (Text(_text(dice)), *((PICTURE,) if dice.throw(6) == 5 else ())))


# --- what must hold --------------------------------------------------------------------------------


def assert_lawful(before: Draft, after: Draft, what: Task) -> None:
    """Order, protection, pairs, references and sizes are as every step promises."""
    assert after.history == before.history
    positions = [slot.at for slot in after.slots if slot.at != OURS]
    assert positions == sorted(set(positions))
    kept = {slot.at: slot.message for slot in after.slots if slot.at != OURS}
    for at in before.protected:
        assert kept[at] == before.history[at]
    assert_accounted(after, what)
    assert_pairs(after)
    assert_readable(after)


def assert_accounted(after: Draft, what: Task) -> None:
    """Every difference has its edit, every reference returns the original, the tokens add up."""
    kept = {slot.at: slot.message for slot in after.slots if slot.at != OURS}
    dropped = {edit.at for edit in after.edits if edit.part is None and edit.action is Action.DROP}
    assert dropped == set(range(len(after.history))) - set(kept)
    for at, message in kept.items():
        edits = [edit for edit in after.edits if edit.at == at]
        gone = {edit.part for edit in edits if edit.action is Action.DROP}
        changed = {edit.part for edit in edits if edit.action is Action.SHORTEN}
        given = [(index, part) for index, part in enumerate(after.history[at].parts) if index not in gone]
        assert len(given) == len(message.parts)
        assert {index for (index, part), now in zip(given, message.parts, strict=True) if part != now} == changed - gone
    for edit in after.edits:
        assert edit.ref in set(originals(after.history[edit.at])), edit
        assert edit.step
        assert edit.reason
    assert after.total == sum(slot.tokens for slot in after.slots) == what.counter.messages(after.messages)
    assert what.counter.messages(after.history) - after.total == sum(edit.saved for edit in after.edits)


def originals(message: Message) -> Iterator[str]:
    """Every reference that can be given back from a message."""
    yield message_ref(message)
    for part in message.parts:
        yield part_ref(part)
        if isinstance(part, ToolResult):
            yield from (part_ref(inner) for inner in part.content)


def assert_pairs(after: Draft) -> None:
    """No call was parted from all of its results, and no result from its call."""
    gone = {(edit.at, edit.part) for edit in after.edits if edit.action is Action.DROP}
    places = {}
    for position, slot in enumerate(after.slots):
        if slot.at == OURS:
            continue
        left = [n for n in range(len(after.history[slot.at].parts)) if (slot.at, n) not in gone]
        places |= {(slot.at, index): (position, n) for n, index in enumerate(left)}
    now = {(pair.call, pair.result) for pair in pairs_of(after.messages)}
    pairs = pairs_of(after.history)
    for pair in pairs:
        call, result = places.get(pair.call), places.get(pair.result)
        assert result is None or (call, result) in now
        if call is not None:
            assert any((call, places.get(other.result)) in now for other in pairs if other.call == pair.call)


def assert_readable(after: Draft) -> None:
    """What a step wrote has words in it, can be sent as UTF-8 if it could before, and keeps arguments JSON."""
    for slot in after.slots:
        if slot.at == OURS or slot.message == after.history[slot.at]:
            continue
        assert slot.message.parts
        given = after.history[slot.at].parts
        known = {text for part in given for text in texts(part)}
        for part in slot.message.parts:
            if part in given:
                continue
            assert all(text.strip() for text in texts(part) if text not in known)
            assert all(map(utf8, texts(part))) or not all(map(utf8, known))
            if isinstance(part, ToolCall):
                json.loads(part.arguments)


def utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def texts(part: Part) -> list[str]:
    match part:
        case Text(text):
            return [text]
        case ToolCall(arguments=arguments):
            return [arguments]
        case ToolResult(content=content):
            return [inner.text for inner in content if isinstance(inner, Text)]
        case _:
            return []
