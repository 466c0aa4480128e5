"""`fit` and `count`, for callers who hold their own messages: plain values in and out, no event loop, no store.

`fit` brings any conversation under any budget, valid and whole where it matters. Pure: the same messages and budget
give the same bytes. With the result of an earlier call it repeats what was sent before byte for byte and adds only
what is new, until the budget is reached again. A caller's list that grows from call to call costs what is new in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from types import NoneType
from typing import Any, cast

from everlong.compress import PRESET_NAMES, Preset, preset_named
from everlong.core import (
    Action,
    Budget,
    Edit,
    Json,
    JsonObject,
    Message,
    Protection,
    expect,
    expect_list,
    expect_number,
    expect_text,
    original_in,
    protected,
)
from everlong.engine.budget import counter_for, target_share
from everlong.engine.contracts import schema_texts
from everlong.engine.view import View, ViewOptions, view_of
from everlong.errors import BudgetImpossible, InputError, WireError
from everlong.tokens import Counter
from everlong.windows import window
from everlong.wire import (
    FORMATS,
    OPENAI_CHAT,
    Document,
    Format,
    document_of,
    list_format,
    sendable,
    sent_as,
    value_of,
    with_messages,
)

__all__ = ["Fitted", "copied", "count", "fit", "fit_document", "forget_counts"]

#: What `fit` and `count` expect, as their errors say it.
CONVERSATION = 'a list of messages, such as [{"role": "user", "content": "hello"}], or a whole request body'
Messages = Sequence[Mapping[str, Any]] | Mapping[str, Any]


@dataclass(frozen=True)
class Fitted:
    """A conversation that fits. `tokens` counts messages and tool schemas, `edits` says what was changed and why."""

    document: Document
    view: View = field(repr=False)
    tokens: int
    budget: int
    #: A copy of what the caller gave for each message: an untouched one goes back as it came.
    given: tuple[Json, ...] = field(default=(), repr=False)
    #: What the view was made for; None if the messages were to stay as they are.
    options: ViewOptions | None = field(default=None, repr=False)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Every change: which message, what, why, tokens before and after, reference."""
        return self.view.edits

    @cached_property
    def messages(self) -> list[JsonObject]:
        """The messages, in the format they came in; what stands beside them is in `body`."""
        listed = _format_of_lists(self.document.fmt)
        if listed is not None:
            return self._listed_messages(listed)
        value = self.body
        if isinstance(value, dict):
            own = FORMATS.get(self.document.fmt)
            value = value["messages" if own is None else own.api.messages]
        if isinstance(value, str):  # Responses: a single question
            value = [{"role": "user", "content": value}]
        return cast("list[JsonObject]", value)

    @cached_property
    def body(self) -> Json:
        """The whole request body or session in the format it came in."""
        return value_of(self.document, sent=self.options is not None)

    def original(self, ref: str) -> bytes:
        """Return the bytes behind a reference: what stood there before the edit."""
        for edit in self.edits:
            if edit.ref == ref:
                original = original_in(self.view.history[edit.at], edit.part, ref)
                if original is not None:
                    return original
        raise InputError(f"no edit has the reference {ref!r}")

    def _listed_messages(self, listed: Format) -> list[JsonObject]:
        known = {id(message): raw for message, raw in zip(self.view.history, self.given, strict=False)}
        out: list[JsonObject] = []
        for message in self.view.messages:
            raw = known.get(id(message))
            if isinstance(raw, dict):
                out.append(cast(JsonObject, copied(raw)))
            else:
                out.extend(listed.write_message(message))
        return out


def fit(  # noqa: PLR0913 - what to fit, for whom, into how much; all but the first by name
    messages: Messages,
    *,
    model: str = "",
    budget: int | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
    preset: str | Preset = "auto",
    pins: Sequence[int] = (),
    previous: Fitted | None = None,
) -> Fitted:
    """Return the messages brought under `budget` tokens, tool schemas included; same format out.

    `messages` is a list in any wire format, or a whole request body. Without a budget the model's window
    decides. `pins` are indexes into the messages that must stay as they are. With the `previous` result of a
    shorter list, what was sent before is repeated byte for byte; when a compaction is due it goes down to the
    target, so that the next ones need none. Raises BudgetImpossible, naming the parts and their sizes, if
    what must stay is larger than the budget.
    """
    expect("previous", previous, (Fitted, NoneType), "what an earlier call of fit returned")
    document, given = _parsed(messages, previous)
    document = replace(document, tools=(*document.tools, *schema_texts(tools)))
    return fit_document(
        document,
        model=model,
        budget=budget,
        preset=preset,
        pins=_pinned(pins, document, messages),
        previous=previous,
        given=given,
    )


def fit_document(  # noqa: PLR0913 - see fit
    document: Document,
    *,
    model: str = "",
    budget: int | None = None,
    preset: str | Preset = "auto",
    pins: frozenset[int] = frozenset(),
    previous: Fitted | None = None,
    given: tuple[Json, ...] = (),
) -> Fitted:
    """Return what `fit` does, for a document that was read already."""
    expect_text("model", model, "a model's name")
    expect("preset", preset, (str, Preset), f"a preset or the name of one ({', '.join(PRESET_NAMES)})")
    if budget is not None:
        expect_number("budget", budget, "the tokens that the messages and tools may take")
    counter = counter_for(model or document.model)
    limit = _default_budget(counter.model) if budget is None else budget
    schemas = counter.tools(document.tools)
    chosen = preset_named(preset) if isinstance(preset, str) else preset
    if chosen.untouched:
        view = View(document.messages, document.messages, counter.messages(document.messages))
        return Fitted(document, view, view.tokens + schemas, limit, given)
    document = sendable(document)
    most = _budget_for_messages(limit, schemas, counter)
    fixed = min(most, _fixed(document.messages, counter, pins, keeps_task=chosen.keeps_task))
    share = target_share(limit, most - fixed, window(counter.model).prices, 1.0)
    options = ViewOptions(
        counter=counter,
        limit=most,
        target=most,
        # Who goes on calling wants few compactions: after each one the provider's prompt cache is filled again.
        later=fixed + int((most - fixed) * share),
        preset=chosen,
        window=limit,
        fmt=sent_as(document),
        pins=pins,
    )
    try:
        view = _view(document, options, previous, limit - schemas)
    except BudgetImpossible as error:
        aside = [("tool schemas", schemas)] if schemas else []
        raise BudgetImpossible(limit, [*error.parts, *aside]) from None
    return Fitted(with_messages(document, view.messages), view, view.tokens + schemas, limit, given, options)


def _view(document: Document, options: ViewOptions, previous: Fitted | None, widest: int) -> View:
    """The view within the limit. If what must stay needs it, the margin of an estimated count gives way."""
    try:
        return view_of(document.messages, options, _continued(previous, options))
    except BudgetImpossible:
        if widest <= options.limit:
            raise
        return view_of(document.messages, replace(options, limit=widest, target=widest))


def _fixed(messages: Sequence[Message], counter: Counter, pins: frozenset[int], *, keeps_task: bool) -> int:
    """The tokens of the messages that no compaction moves."""
    reasons = protected(messages, pins, keeps_task=keeps_task)
    return sum(counter.message(messages[at]) for at, why in reasons.items() if why is not Protection.UNREAD)


def _continued(previous: Fitted | None, options: ViewOptions) -> View | None:
    """The earlier view, as far as it can be repeated: not if it left out or shortened what is pinned now."""
    if previous is None or previous.options is None or previous.options.fmt != options.fmt:
        return None
    pinned = options.pins - previous.options.pins
    if pinned and any(edit.at in pinned and edit.action in (Action.SHORTEN, Action.DROP) for edit in previous.edits):
        return None
    if previous.options.counter is options.counter:
        return previous.view
    return replace(previous.view, tokens=options.counter.messages(previous.view.messages))


def _default_budget(model: str) -> int:
    """What the model's window leaves beside a reply."""
    known = window(model)
    return min(known.prompt, Budget.of(known.context, max_output=known.output).available)


def _budget_for_messages(limit: int, schemas: int, counter: Counter) -> int:
    """What the messages may count to, so that the true figure stays under the limit even if the count is low."""
    most = int(limit / (1 + counter.vocabulary.spread)) - schemas
    if schemas and most <= 0:
        raise BudgetImpossible(limit, [("tool schemas", schemas)])
    return most


def _parsed(messages: Messages, previous: Fitted | None) -> tuple[Document, tuple[Json, ...]]:
    """The document, and a copy of each message as given where messages and list correspond one to one."""
    if isinstance(messages, Mapping):
        return document_of(dict(messages)), ()
    expect_list("messages", messages, CONVERSATION)
    rows = [cast(Json, row) for row in messages]
    if previous is not None and previous.given and _shared(rows, previous.given) == len(previous.given):
        new = _gained(rows, len(previous.given))
        if new is not None:
            history = (*previous.view.history, *_parsed_from(new, len(previous.given)))
            return replace(previous.document, messages=history, tools=()), (*previous.given, *new)
    copies = list(map(copied, rows))
    document = document_of(copies)
    return document, tuple(copies) if _format_of_lists(document.fmt) is not None else ()


def _pinned(pins: Sequence[int], document: Document, messages: Messages) -> frozenset[int]:
    """Indexes of the caller's list as indexes of the history, which may have system text in front."""
    if not pins:
        return frozenset()
    expect_list("pins", pins, "a list of indexes into the messages")
    for pin in pins:
        expect("a pin", pin, int, "the index of a message")
    own = FORMATS.get(document.fmt)
    if own is None or not own.item_is_message:
        raise InputError(f"pins by index need one message an item, which {document.fmt} does not have")
    length = len(messages.get(own.api.messages, ()) if isinstance(messages, Mapping) else messages)
    offset = len(document.messages) - length
    wrong = [pin for pin in pins if not 0 <= pin < length]
    if wrong:
        raise InputError(f"no message {wrong[0]} to pin: there are {length}")
    return frozenset(pin + offset for pin in pins)


# --- counting ------------------------------------------------------------------------------------------------------

GivenMessages = Sequence[Mapping[str, Any]] | Sequence[Message] | Mapping[str, Any]

REMEMBERED_LISTS = 8  # the newest list of so many models


@dataclass(frozen=True, slots=True)
class _Counted:
    """A list that was counted: a copy of each message, so that a changed one is noticed, and the tokens up to it."""

    copies: tuple[Json, ...]
    totals: tuple[int, ...]


_counted: dict[str, _Counted] = {}


def count(messages: GivenMessages, *, model: str = "", tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """Return the tokens of messages in any wire format (or a whole request body), with the tool schemas.

    A list that begins as the last one did costs what is new.

    >>> count([{"role": "user", "content": "hello world"}], model="gpt-4o")
    6
    """
    expect_text("model", model, "a model's name")
    counter = counter_for(model)
    schemas = counter.tools(schema_texts(tools))
    if isinstance(messages, Mapping):
        document = document_of(dict(messages))
        return counter.messages(document.messages) + counter.tools(document.tools) + schemas
    expect_list("messages", messages, CONVERSATION)
    if all(isinstance(message, Message) for message in messages):
        return counter.messages(cast("Sequence[Message]", messages)) + schemas
    return _count_list([cast(Json, row) for row in messages], model, counter) + schemas


def forget_counts() -> None:
    """Forget every list and every message that was counted: for those who measure."""
    _counted.clear()
    counter_for.cache_clear()


def _count_list(rows: list[Json], model: str, counter: Counter) -> int:
    known = _counted.get(model, _Counted((), ()))
    start = _shared(rows, known.copies)
    new = _gained(rows, start) if start else None
    if new is None:
        start, new = 0, tuple(map(copied, rows))
        document = document_of(list(new))
        messages: Iterable[Message] = document.messages
        if _format_of_lists(document.fmt) is None:
            return counter.messages(messages)
    else:
        messages = _parsed_from(new, start)
    sizes = map(counter.message, messages)
    totals = tuple(accumulate(sizes, initial=known.totals[start - 1] if start else 0))[1:]
    known = _Counted((*known.copies[:start], *new), (*known.totals[:start], *totals))
    _counted.pop(model, None)
    _counted[model] = known
    for oldest in list(_counted)[:-REMEMBERED_LISTS]:
        _counted.pop(oldest, None)
    return known.totals[-1] if known.totals else 0


# --- lists that grow from call to call --------------------------------------------------------------------------------

#: Copies go all the way down: a change inside a message is noticed, and never reaches what is held here.
NESTED = (dict, list)  # what can change inside a message


def copied(value: Json) -> Json:
    """Return the same value, sharing nothing that can change."""
    try:
        return _copied(value)
    except RecursionError:
        raise WireError("nested too deeply", fmt=OPENAI_CHAT.name) from None


def _copied(value: Json) -> Json:
    if isinstance(value, list):
        return [_copied(inner) for inner in value]
    # A dict is a Mapping, but asking for that first costs more than the copy.
    if not isinstance(value, dict) and not isinstance(value, Mapping):
        return value
    copy = dict(value)
    for key, inner in copy.items():
        if isinstance(inner, NESTED):
            copy[key] = _copied(inner)
    return copy


def _shared(rows: Sequence[Json], known: Sequence[Json]) -> int:
    """How many items at the front are still what was copied."""
    for at, (row, copy) in enumerate(zip(rows, known, strict=False)):
        if row != copy:
            return at
    return min(len(rows), len(known))


def _gained(rows: Sequence[Json], start: int) -> tuple[Json, ...] | None:
    """Copies of the items of the list from `start` on.

    None if that may be another format: plain words, with which a list begins, are the same in all of them.
    """
    new = tuple(map(copied, rows[start:]))
    return new if _format_of_lists(list_format(new)) is not None else None


def _format_of_lists(fmt: str) -> Format | None:
    """The format, if a list of its messages is all there is to a conversation: one message an item, system text too."""
    own = FORMATS.get(fmt)
    return own if own is not None and own.item_is_message and not own.api.system else None


def _parsed_from(new: Sequence[Json], start: int) -> Iterator[Message]:
    """The messages of a list from item `start` on."""
    return (OPENAI_CHAT.read_message(row, f"messages[{at}]") for at, row in enumerate(new, start))
