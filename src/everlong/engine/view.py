"""The view of a history: what would be sent, and how it came about.

The one path that every caller takes: shape on arrival, cut where the limit is passed, repair last, count
again. A later view of a longer history repeats the earlier one byte for byte until the next cut.
"""

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from everlong.compress import OURS, Draft, Preset, Task, arrive, by_need, cut, draft_of
from everlong.core import (
    CallId,
    Edit,
    History,
    Image,
    Message,
    Part,
    Role,
    Text,
    ToolCall,
    ToolResult,
    message_ref,
    user_text,
)
from everlong.errors import BudgetImpossible
from everlong.relevance import Index, language_of
from everlong.tokens import Counter
from everlong.wire import Repaired, repair_history, rules_of

__all__ = [
    "Placed",
    "View",
    "Wish",
    "arrived",
    "assembled",
    "cut_view",
    "flattened",
    "grown_view",
    "mended",
    "view_of",
    "without_images",
]


@dataclass(frozen=True, slots=True)
class Placed:
    """Messages to be sent, for each its index in the history (`OURS` if we added it), and what repairs changed."""

    messages: History
    places: tuple[int, ...]
    edits: tuple[Edit, ...] = ()

    def __add__(self, other: "Placed") -> "Placed":
        return Placed(self.messages + other.messages, self.places + other.places, self.edits + other.edits)


def mended(said: Placed, history: History, counter: Counter, fmt: str) -> Placed:
    """The messages as the provider of `fmt` accepts them."""
    repaired = repair_history(said.messages, fmt)
    if not repaired.edits:
        return said
    places = tuple(said.places[at] if said.places else OURS for at in repaired.places)
    return Placed(repaired.messages, places, tuple(_edits(repaired, said, history, counter)))


def _edits(repaired: Repaired, said: Placed, history: History, counter: Counter) -> Iterator[Edit]:
    """The edits with their tokens; where one message has several, the first accounts for all of them."""
    after: Tally[int] = Tally()
    for at, message in zip(repaired.places, repaired.messages, strict=True):
        after[at] += counter.message(message)
    told: set[int] = set()
    for edit in repaired.edits:
        now = after[edit.at]
        before = now if edit.at in told else counter.messages(said.messages[edit.at : edit.at + 1])
        told.add(edit.at)
        at = _in_history(edit.at, said.places)
        yield replace(edit, at=at, before=before, after=now, ref=message_ref(history[at]))


def _in_history(position: int, places: tuple[int, ...]) -> int:
    """The message that stands there; for one of ours the next that is not."""
    later = (at for at in places[position:] if at != OURS)
    earlier = (at for at in reversed(places[:position]) if at != OURS)
    return next(later, next(earlier, 0))


ATTEMPTS = 4  # a repair may add a few tokens; each attempt aims lower by what was too much
SLACK = 16  # tokens
SPOKEN_BACK = 12  # user messages that decide the language of our own words
#: Stands before a step that is repaired by itself, where the user's words would stand; it is not sent.
WORD = Message(Role.USER, (Text("…"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a view is asked for. `limit` may not be passed; a cut goes down to `target`.

    A cut that becomes due while a history grows goes down to `later`, where that is given.
    """

    counter: Counter
    limit: int
    target: int
    preset: Preset
    window: int
    fmt: str
    pins: frozenset[int] = frozenset()
    recall: str = ""
    later: int | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What would be sent for `history`. `tokens` are those of the messages; `cuts` counts the cuts so far."""

    history: History
    messages: History
    tokens: int
    edits: tuple[Edit, ...]
    cuts: int
    index: Index
    #: Where each message that is sent stands in the history, OURS if we added it; () if all are sent as they are.
    places: tuple[int, ...] = ()

    def extends_to(self, history: Sequence[Message]) -> bool:
        """Whether the history only grew since."""
        known = len(self.history)
        return len(history) >= known and all(a is b or a == b for a, b in zip(self.history, history, strict=False))


def view_of(history: Sequence[Message], wish: Wish, previous: View | None = None) -> View:
    """The view of a history; with the view of its beginning, the same bytes first and only more after."""
    given = tuple(history)
    if previous is None or wish.preset.every_call or not previous.extends_to(given):
        return _fresh(given, wish, Index())
    grown = _grown(given, wish, previous)
    if grown is not None and grown.tokens <= wish.limit:
        return grown
    # An index that knows more than the earlier view was taken on by another continuation of it.
    index = previous.index if previous.index.messages <= len(previous.history) else Index()
    if wish.later is not None and len(given) > len(previous.history):
        wish = replace(wish, target=wish.later)
    return replace(_fresh(given, wish, index), cuts=previous.cuts + 1)


def cut_view(history: Sequence[Message], wish: Wish, index: Index) -> View:
    """The view of a history brought down to the target, whether or not it would fit. `index` holds what left before."""
    return _fresh(tuple(history), wish, index, must_cut=True)


def assembled(front: History, since: History, wish: Wish, index: Index) -> View:
    """What stands, put together: `front` was shaped before, `since` takes its arrival form, all is repaired; no cut."""
    offset = len(front)
    pins = frozenset(pin - offset for pin in wish.pins)
    task = replace(_task(since, wish), pins=pins)
    new = arrive(draft_of(since, task), task, wish.preset)
    history = (*front, *since)
    places = (*range(offset), *(slot.at + offset for slot in new.slots))
    sent = mended(Placed((*front, *new.messages), places), history, wish.counter, wish.fmt)
    edits = (*(replace(edit, at=edit.at + offset) for edit in new.edits), *sent.edits)
    return View(history, sent.messages, wish.counter.messages(sent.messages), edits, 0, index, sent.places)


def grown_view(history: History, wish: Wish, previous: View) -> View | None:
    """The earlier view with what is new at its end, however long that is; None if it would not begin as before."""
    return _grown(history, wish, previous) if previous.extends_to(history) else None


def arrived(history: Sequence[Message], wish: Wish) -> History:
    """Each message in its arrival form, nothing cut and nothing repaired."""
    task = _task(tuple(history), wish)
    return arrive(draft_of(tuple(history), task), task, wish.preset).messages


def _grown(history: History, wish: Wish, previous: View) -> View | None:
    """The earlier view with what is new at its end; None if what was sent before would not stay as it was."""
    offset = len(previous.history)
    if len(history) == offset:
        return previous
    pins = frozenset(pin - offset for pin in wish.pins)
    task = replace(_task(history, wish), pins=pins)
    new = arrive(draft_of(history[offset:], task), task, wish.preset)
    places = previous.places or tuple(range(len(previous.messages)))
    said = (*previous.messages, *new.messages)
    stand = (*places, *(slot.at + offset for slot in new.slots))
    for start in dict.fromkeys((_closed_before(previous.messages), 0)):
        front = Placed((WORD,), (OURS,)) if start else Placed((), ())
        tail = mended(front + Placed(said[start:], stand[start:]), history, wish.counter, wish.fmt)
        sent = (*front.messages, *previous.messages[start:])
        added = tail.messages[len(sent) :]
        clash = rules_of(wish.fmt).unique_ids and _calls_again(previous.messages[:start], added)
        if tail.messages[: len(sent)] == sent and not clash:
            return View(
                history,
                (*previous.messages, *added),
                previous.tokens + wish.counter.messages(added),
                (*previous.edits, *(replace(edit, at=edit.at + offset) for edit in new.edits), *tail.edits),
                previous.cuts,
                previous.index,
                (*places, *tail.places[len(sent) :]),
            )
    return None


def _closed_before(sent: History) -> int:
    """Where the last step begins: calls before it have their results, so a repair seldom has to look further back."""
    start = next((at for at in range(len(sent) - 1, -1, -1) if sent[at].role is Role.ASSISTANT), 0)
    while start and sent[start - 1].role is Role.ASSISTANT:  # some providers read these as one
        start -= 1
    return start


def _calls_again(before: History, added: History) -> bool:
    """Whether the id of a call comes again."""
    ids = {call.id for message in added for call in message.calls}
    return bool(ids) and any(call.id in ids for message in before for call in message.calls)


def _fresh(history: History, wish: Wish, index: Index, *, must_cut: bool = False) -> View:
    """The view of a history from its raw messages: as it is if it fits, else cut."""
    if not history:
        return View((), (), 0, (), 0, index)
    task = _task(history, wish)
    preset = _with_index(wish.preset, index)
    draft = shaped = arrive(draft_of(history, task), task, preset)
    must_cut = must_cut or shaped.total > wish.limit or preset.every_call
    too_much = 0
    for _ in range(ATTEMPTS):
        if must_cut:
            draft = _cut(shaped, task, preset, wish, too_much)
        view = _repaired(draft, wish, index, cuts=int(must_cut))
        if view.tokens <= wish.limit:
            return view
        must_cut = True
        too_much += view.tokens - wish.limit + SLACK
    raise BudgetImpossible(wish.limit, [("messages that must stay, once repaired", view.tokens)])


def _cut(shaped: Draft, task: Task, preset: Preset, wish: Wish, too_much: int) -> Draft:
    """Down to the target, or as far as what must stay allows; `too_much` is what a repair would add."""
    try:
        return cut(shaped, replace(task, target=wish.target - too_much), preset)
    except BudgetImpossible:
        try:
            return cut(shaped, replace(task, target=wish.limit - too_much), preset)
        except BudgetImpossible as error:
            repairs = [("repairs", too_much)] if too_much else []
            raise BudgetImpossible(wish.limit, [*error.parts, *repairs]) from None


def _repaired(draft: Draft, wish: Wish, index: Index, *, cuts: int) -> View:
    said = Placed(draft.messages, tuple(slot.at for slot in draft.slots))
    sent = mended(said, draft.history, wish.counter, wish.fmt)
    tokens = wish.counter.messages(sent.messages)
    return View(draft.history, sent.messages, tokens, (*draft.edits, *sent.edits), cuts, index, sent.places)


def _task(history: History, wish: Wish) -> Task:
    return Task(
        target=wish.target,
        counter=wish.counter,
        window=wish.window,
        fmt=wish.fmt,
        model=wish.counter.model,
        pins=wish.pins,
        recall=wish.recall,
        language=language_of(_newest_words(history)),
    )


def _newest_words(history: History) -> Iterator[str]:
    """What users said last; a long tool loop in between does not change their language."""
    said = (user_text(message) for message in reversed(history))
    return islice((text for text in said if text), SPOKEN_BACK)


def _with_index(preset: Preset, index: Index) -> Preset:
    """The preset whose selection uses the conversation's own index instead of making one."""
    steps = tuple(partial(by_need, index=index) if step is by_need else step for step in preset.cut)
    return replace(preset, cut=steps)


IMAGE_NOTE = "[image left out: the provider did not accept it]"


def flattened(messages: History) -> History:
    """Every message as plain text.

    Example: assistant calls read(a.py), tool answers "x" -> assistant "[called read: …]", user "[result of read] x"
    """
    names = {call.id: call.name for message in messages for call in message.calls}
    said = (_flat(message, names) for message in messages)
    return tuple(message for message in said if message.parts)


def without_images(messages: History) -> History:
    """A note in place of every picture, also inside results."""
    return tuple(message.with_parts(tuple(map(_without_image, message.parts))) for message in messages)


def _flat(message: Message, names: dict[CallId, str]) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        match part:
            case Text(text):
                parts.append(Text(text))
            case Image():
                parts.append(part)
            case ToolCall(_, name, arguments):
                parts.append(Text(f"[called {name}: {arguments}]"))
            case ToolResult(call=call):
                parts.append(Text(f"[result of {part.name or names.get(call, 'a tool')}]\n{part.text}"))
            case _:
                continue
    role = Role.USER if message.role is Role.TOOL else message.role
    return Message(role, tuple(parts), name=message.name, time=message.time)


def _without_image(part: Part) -> Part:
    match part:
        case Image():
            return Text(IMAGE_NOTE)
        case ToolResult(call, content, name, failed, extra):
            kept = tuple(Text(IMAGE_NOTE) if isinstance(inner, Image) else inner for inner in content)
            return ToolResult(call, kept, name, failed, extra)
        case _:
            return part
