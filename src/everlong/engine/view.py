"""The view of a history: what would be sent, and how it came about.

Every caller takes the same path: shape on arrival, compact above the limit, repair, count again. A later view of a
longer history repeats the earlier one byte for byte until the next compaction. Pure.
"""

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from everlong.compress import OURS, Draft, Preset, Task, arrive, compact, draft_of, firm_tokens
from everlong.core import (
    CallId,
    Edit,
    History,
    Image,
    Message,
    Part,
    Protection,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    message_ref,
    said_by_users,
)
from everlong.errors import BudgetImpossible
from everlong.relevance import Index, Likeness, language_of
from everlong.tokens import Counter
from everlong.wire import Repaired, format_named, repair_history

__all__ = [
    "View",
    "ViewOptions",
    "arrived",
    "assembled_view",
    "bytes_of",
    "compacted_view",
    "flattened",
    "grown_view",
    "view_of",
    "without_images",
]

UNBOUNDED = 1 << 60
ATTEMPTS = 4  # a repair may add a few tokens; each attempt aims lower by the excess
SLACK = 16  # tokens
LARGEST_LIMIT = 4  # of the target; a limit that is further away is not used
FRAME = 40  # bytes of JSON around a text
LITTLE = 0.1  # of the target; with less beside what must stay, nothing useful fits
FREE = 0.25  # of what the limit leaves beside what must stay, if that exceeds the target: for everything else
SPOKEN_BACK = 12  # user messages that decide the language of our own texts
#: Replaces the user's message before a step that is repaired alone; it is not sent.
WORD = Message(Role.USER, (Text("…"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """The options of a view. It is never larger than `limit`, and a compaction goes down to `target`.

    A compaction that becomes due while a history grows goes down to `later`, if given. `newest` is how many of the
    newest messages stay if the preset sends only those. `index` holds what left the window at earlier compactions.
    """

    counter: Counter
    preset: Preset
    window: int
    fmt: str
    limit: int = UNBOUNDED
    target: int = UNBOUNDED
    pins: frozenset[int] = frozenset()
    recall: str = ""
    later: int | None = None
    newest: int | None = None
    index: Index | None = None
    #: How similar a question and what leaves the window are in meaning; None if that is unknown.
    likeness: Likeness | None = None
    #: Tokens kept free for the answer.
    reply: int = 0
    #: If summaries are written: the index in the history from which no summary covers a message.
    uncovered: int | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What would be sent for `history`. `tokens` is the size of its messages, `compactions` the number so far."""

    history: History
    messages: History
    tokens: int
    edits: tuple[Edit, ...] = ()
    compactions: int = 0
    #: What left the window so far; None if nothing did.
    index: Index | None = None
    #: The index in the history of each message that is sent, OURS if we added it; () if all are sent unchanged.
    places: tuple[int, ...] = ()

    def extends_to(self, history: Sequence[Message]) -> bool:
        """Return whether the history has only grown since."""
        known = len(self.history)
        return len(history) >= known and all(a is b or a == b for a, b in zip(self.history, history, strict=False))


def view_of(history: Sequence[Message], options: ViewOptions, previous: View | None = None) -> View:
    """Return the view of a history. Given the view of its beginning, it starts with the same bytes."""
    given = tuple(history)
    if previous is None or options.preset.every_call or not previous.extends_to(given):
        return _fresh(given, options)
    grown = _grown(given, options, previous)
    if grown is not None and grown.tokens <= options.limit:
        return grown
    # If the index has more than the earlier view, another continuation of that view has extended it.
    usable = previous.index is not None and previous.index.messages <= len(previous.history)
    target = options.target if options.later is None or len(given) == len(previous.history) else options.later
    options = replace(options, target=target, index=previous.index if usable else None)
    return replace(_fresh(given, options), compactions=previous.compactions + 1)


def compacted_view(history: Sequence[Message], options: ViewOptions) -> View:
    """Return the view of a history brought down to the target, whether or not it would fit."""
    return _fresh(tuple(history), options, must_compact=True)


def assembled_view(front: History, since: History, options: ViewOptions) -> View:
    """Return the view without a compaction: `front` was shaped before, `since` is shaped now, all is repaired."""
    history = (*front, *since)
    messages, places, edits = _arrivals(since, len(front), options, since)
    sent = _repaired((*front, *messages), (*range(len(front)), *places), history, options)
    tokens = options.counter.messages(sent.messages)
    return View(history, sent.messages, tokens, (*edits, *sent.edits), places=sent.places)


def grown_view(history: History, options: ViewOptions, previous: View) -> View | None:
    """Return the earlier view with the new messages at its end, however long; None if it would not begin as before."""
    return _grown(history, options, previous) if previous.extends_to(history) else None


def arrived(history: Sequence[Message], options: ViewOptions) -> History:
    """Return each message in its arrival form, nothing compacted and nothing repaired."""
    task = _task(tuple(history), options)
    return arrive(draft_of(tuple(history), task), task, options.preset).messages


def _grown(history: History, options: ViewOptions, previous: View) -> View | None:
    """The earlier view with the new messages at its end; None if what was sent before would change."""
    offset = len(previous.history)
    if len(history) == offset:
        return previous
    new, new_places, edits = _arrivals(history[offset:], offset, options, history)
    places = previous.places or tuple(range(len(previous.messages)))
    messages, all_places = (*previous.messages, *new), (*places, *new_places)
    for start in dict.fromkeys((_closed_before(previous.messages), 0)):
        front, front_places = ((WORD,), (OURS,)) if start else ((), ())
        tail = _repaired((*front, *messages[start:]), (*front_places, *all_places[start:]), history, options)
        sent = (*front, *previous.messages[start:])
        added = tail.messages[len(sent) :]
        clash = format_named(options.fmt).rules.unique_ids and _calls_again(previous.messages[:start], added)
        if tail.messages[: len(sent)] == sent and not clash:
            return View(
                history,
                (*previous.messages, *added),
                previous.tokens + options.counter.messages(added),
                (*previous.edits, *edits, *tail.edits),
                previous.compactions,
                previous.index,
                (*places, *tail.places[len(sent) :]),
            )
    return None


def _arrivals(
    new: History, offset: int, options: ViewOptions, spoken: History
) -> tuple[History, tuple[int, ...], tuple[Edit, ...]]:
    """Return new messages in their arrival form, their indexes in the history, and the edits.

    Their indexes begin at `offset`; `spoken` decides the language of our own texts.
    """
    if not options.preset.arrival:
        return new, tuple(range(offset, offset + len(new))), ()
    task = replace(_task(spoken, options), pins=frozenset(pin - offset for pin in options.pins))
    draft = arrive(draft_of(new, task), task, options.preset)
    places = tuple(slot.at + offset for slot in draft.slots)
    return draft.messages, places, tuple(replace(edit, at=edit.at + offset) for edit in draft.edits)


def _closed_before(sent: History) -> int:
    """Return where the last step begins. Earlier calls have their results, so a repair seldom looks further back."""
    start = next((at for at in range(len(sent) - 1, -1, -1) if sent[at].role is Role.ASSISTANT), 0)
    while start and sent[start - 1].role is Role.ASSISTANT:  # some providers read these as one message
        start -= 1
    return start


def _calls_again(before: History, added: History) -> bool:
    """Whether a call id occurs again."""
    ids = {call.id for message in added for call in message.calls}
    return bool(ids) and any(call.id in ids for message in before for call in message.calls)


def _fresh(history: History, options: ViewOptions, *, must_compact: bool = False) -> View:
    """The view of a history from its raw messages: as it is if it fits, else compacted."""
    if not history:
        return View((), (), 0, index=options.index)
    task = _task(history, options)
    draft = shaped = arrive(draft_of(history, task), task, options.preset)
    must_compact = must_compact or shaped.total > options.limit or options.preset.every_call
    too_much = 0
    for _ in range(ATTEMPTS):
        if must_compact:
            index = Index() if task.index is None else task.index
            index.likeness = options.likeness
            task = replace(task, index=index)
            draft = _compacted(shaped, task, options, too_much)
        sent = _repaired(draft.messages, tuple(slot.at for slot in draft.slots), history, options)
        tokens = options.counter.messages(sent.messages)
        if tokens <= options.limit:
            edits = (*draft.edits, *sent.edits)
            return View(history, sent.messages, tokens, edits, int(must_compact), task.index, sent.places)
        must_compact = True
        too_much += tokens - options.limit + SLACK
    raise BudgetImpossible(options.limit, [("messages that must stay, after repair", tokens)])


def _compacted(shaped: Draft, task: Task, options: ViewOptions, too_much: int) -> Draft:
    """Compact down to the target, or as far as the protected messages allow; `too_much` is what a repair would add."""
    impossible = BudgetImpossible(options.limit, ())
    for aim in _aims(shaped, options):
        try:
            return compact(shaped, replace(task, target=aim - too_much), options.preset)
        except BudgetImpossible as error:
            impossible = error
    repairs = [("repairs", too_much)] if too_much else []
    raise BudgetImpossible(options.limit, [*impossible.parts, *repairs])


def _aims(shaped: Draft, options: ViewOptions) -> Iterator[int]:
    """Yield the sizes to try: the target, or a little more than what must stay if that is larger; then the limit.

    An unread result is not shortened only to reach the target, and a task is shortened before it raises the target.
    """
    if not options.preset.every_call:
        firm = firm_tokens(shaped)
        task = sum(slot.tokens for slot in shaped.slots if shaped.protected.get(slot.at) is Protection.TASK)
        for stays in dict.fromkeys((firm - task, firm)):
            if stays <= (1 - LITTLE) * options.target or stays > options.limit:
                yield options.target
                continue
            # With a soft cap the limit is far away, so the target bounds the spare tokens.
            spare = min(int(FREE * (options.limit - stays)), options.target // 2)
            yield max(options.target, min(options.limit, stays + spare))
    elif options.target != options.limit:
        yield options.target
    yield options.limit


def _task(history: History, options: ViewOptions) -> Task:
    return Task(
        target=options.target,
        limit=min(options.limit, LARGEST_LIMIT * options.target),
        counter=options.counter,
        window=options.window,
        keeps_thinking=format_named(options.fmt).rules.own_thinking,
        model=options.counter.model,
        pins=options.pins,
        keeps_task=options.preset.keeps_task,
        recall=options.recall,
        language=language_of(_newest_words(history)),
        index=options.index,
        newest=options.newest,
        reply=options.reply,
        uncovered=options.uncovered,
    )


def _newest_words(history: History) -> Iterator[str]:
    """What users said last; a long tool loop in between does not change the language."""
    return islice(said_by_users(history), SPOKEN_BACK)


# --- repair, with every change accounted for --------------------------------------------------------------------


def _repaired(messages: History, places: tuple[int, ...], history: History, options: ViewOptions) -> Repaired:
    """The messages in a form that the provider accepts; places and edits refer to messages of the history.

    `places` has the index in the history of each message, OURS if we added it. The wire layer knows messages and
    formats; it counts nothing and does not know where the messages come from.
    """
    repaired = repair_history(messages, options.fmt)
    if not repaired.edits:
        return Repaired(messages, (), places)
    if not history:  # the history is empty or all deleted: everything that the request needs is ours
        return Repaired(repaired.messages, (), tuple(OURS for _ in repaired.messages))
    edits = tuple(_edits(repaired, messages, places, history, options.counter))
    return Repaired(repaired.messages, edits, tuple(places[at] if places else OURS for at in repaired.places))


def _edits(
    repaired: Repaired, messages: History, places: tuple[int, ...], history: History, counter: Counter
) -> Iterator[Edit]:
    """The edits with their tokens; if a message has several, the first one accounts for all of them."""
    after: Tally[int] = Tally()
    for at, message in zip(repaired.places, repaired.messages, strict=True):
        after[at] += counter.message(message)
    seen: set[int] = set()
    for edit in repaired.edits:
        now = after[edit.at]
        before = now if edit.at in seen else counter.messages(messages[edit.at : edit.at + 1])
        seen.add(edit.at)
        at = _in_history(edit.at, places)
        yield replace(edit, at=at, before=before, after=now, ref=message_ref(history[at]))


def _in_history(position: int, places: tuple[int, ...]) -> int:
    """The message at this place; for one of ours, the next that is not."""
    later = (at for at in places[position:] if at != OURS)
    earlier = (at for at in reversed(places[:position]) if at != OURS)
    return next(later, next(earlier, 0))


# --- other forms, for a history that a provider rejects as it is ---------------------------------------------------

IMAGE_NOTE = "[image left out: the provider did not accept it]"


def flattened(messages: History) -> History:
    """Return every message as plain text: the last shape that every provider accepts.

    Calls and results become text; thinking and opaque parts are left out.

    Example: assistant calls read(a.py), tool answers "x" -> assistant "[called read: …]", user "[result of read] x"
    """
    names = {call.id: call.name for message in messages for call in message.calls}
    plain = (_flat(message, names) for message in messages)
    return tuple(message for message in plain if message.parts)


def bytes_of(messages: History, tools: Sequence[str] = ()) -> int:
    """Return about how many bytes messages and tools take in the body of a request."""
    texts = [*tools, *(text for message in messages for text in _texts(message.parts))]
    return sum(len(text.encode("utf-8", "replace")) + text.count("\n") + FRAME for text in texts)


def _texts(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Image():
                yield part.data or part.url
            case ToolCall(_, name, arguments):
                yield name
                yield arguments
            case ToolResult():
                yield from _texts(part.content)
            case Text(text) | Reasoning(text):
                yield text
            case _:
                continue


def without_images(messages: History) -> History:
    """Return the messages with a note in place of every picture, also inside results."""
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
