"""`fit`, for callers who hold their own messages: the same kind of messages in and out, no event loop, no store.

It brings any conversation under any budget, valid and whole where it matters. Pure: the same messages and budget
give the same bytes. With the result of an earlier call it repeats what was sent before byte for byte and adds only
what is new, until the budget is reached again. A caller's list that grows from call to call costs what is new in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import NoneType
from typing import Any, Generic, TypeVar, cast, overload

from everlong.compress import PRESET_NAMES, Preset, preset_named
from everlong.core import (
    Action,
    Budget,
    Edit,
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
from everlong.engine.contracts import ToolLike, schema_texts
from everlong.engine.histories.given import Given, format_of_lists, given
from everlong.engine.view import View, ViewOptions, view_of
from everlong.errors import BudgetImpossible, InputError
from everlong.tokens import Counter
from everlong.windows import window
from everlong.wire import FORMATS, Document, plain, sendable, sent_as, value_of, with_messages

__all__ = ["Fitted", "fit", "fit_document"]

X = TypeVar("X")


@dataclass(frozen=True)
class Fitted(Generic[X]):
    """A conversation that fits. `tokens` counts messages and tool schemas, `edits` says what was changed and why."""

    document: Document
    view: View = field(repr=False)
    tokens: int
    budget: int
    #: What the caller gave; None for a document that was read elsewhere.
    given: Given[X] | None = field(default=None, repr=False)
    #: What the view was made for; None if the messages were to stay as they are.
    options: ViewOptions | None = field(default=None, repr=False)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Every change: which message, what, why, tokens before and after, reference."""
        return self.view.edits

    @cached_property
    def messages(self) -> list[X]:
        """The messages, of the kind they came in; one that was not touched is the very object that was given.

        What stands beside them is in `body`.
        """
        if self.given is not None and self.given.library is not None:
            items = self.given.back(self.view.messages)
            if self._sendable(items):
                return items
        value = self.body
        own = FORMATS.get(self.document.fmt)
        if isinstance(value, dict):
            value = value["messages" if own is None else own.api.messages]
        if isinstance(value, str):  # Responses: a single question
            value = [{"role": "user", "content": value}]
        return cast("list[X]", value)

    def _sendable(self, items: list[X]) -> bool:
        """Whether the provider takes the items as they came; how some are written has to be made right."""
        own = FORMATS.get(self.document.fmt)
        if own is None or self.options is None or self.given is None or self.given.library is None:
            return True
        if self.given.library.name != own.name or format_of_lists(own.name) is not None:
            return True
        return not own.problems({own.api.messages: plain(items)})

    @cached_property
    def body(self) -> Any:
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


@overload
def fit(
    messages: Mapping[str, Any],
    *,
    model: str = ...,
    budget: int | None = ...,
    tools: Sequence[ToolLike] = ...,
    preset: str | Preset = ...,
    pins: Sequence[int] = ...,
    previous: "Fitted[dict[str, Any]] | None" = ...,
) -> "Fitted[dict[str, Any]]": ...


@overload
def fit(
    messages: Sequence[X],
    *,
    model: str = ...,
    budget: int | None = ...,
    tools: Sequence[ToolLike] = ...,
    preset: str | Preset = ...,
    pins: Sequence[int] = ...,
    previous: Fitted[X] | None = ...,
) -> Fitted[X]: ...


def fit(  # noqa: PLR0913 - what to fit, for whom, into how much; all but the first by name
    messages: Sequence[Any] | Mapping[str, Any],
    *,
    model: str = "",
    budget: int | None = None,
    tools: Sequence[ToolLike] = (),
    preset: str | Preset = "auto",
    pins: Sequence[int] = (),
    previous: Fitted[Any] | None = None,
) -> Fitted[Any]:
    """Return the messages brought under `budget` tokens, tool schemas included; the same kind out.

    `messages` is a list (dicts of any wire format, objects of the OpenAI and Anthropic SDKs, messages of LangChain,
    pydantic-ai and others), or a whole request body. `tools` are schemas or functions. Without a budget the model's
    window decides. `pins` are indexes into the messages that must stay as they are. With the `previous` result of a
    shorter list, what was sent before is repeated byte for byte; when a compaction is due it goes down to the
    target, so that the next ones need none. Raises BudgetImpossible, naming the parts and their sizes, if
    what must stay is larger than the budget.
    """
    expect("previous", previous, (Fitted, NoneType), "what an earlier call of fit returned")
    conversation: Given[Any] = given(messages, None if previous is None else previous.given)
    schemas = schema_texts(tools, conversation.fmt)
    document = replace(conversation.document, tools=(*conversation.document.tools, *schemas))
    return fit_document(
        document,
        model=model,
        budget=budget,
        preset=preset,
        pins=_pinned(pins, conversation, messages),
        previous=previous,
        given=conversation,
    )


def fit_document(  # noqa: PLR0913 - see fit
    document: Document,
    *,
    model: str = "",
    budget: int | None = None,
    preset: str | Preset = "auto",
    pins: frozenset[int] = frozenset(),
    previous: Fitted[Any] | None = None,
    given: Given[Any] | None = None,
) -> Fitted[Any]:
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


def _view(document: Document, options: ViewOptions, previous: Fitted[Any] | None, widest: int) -> View:
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


def _continued(previous: Fitted[Any] | None, options: ViewOptions) -> View | None:
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


def _pinned(
    pins: Sequence[int], conversation: Given[Any], messages: Sequence[Any] | Mapping[str, Any]
) -> frozenset[int]:
    """Indexes of the caller's list as indexes of the history, which may have system text in front."""
    if not pins:
        return frozenset()
    expect_list("pins", pins, "a list of indexes into the messages")
    for pin in pins:
        expect("a pin", pin, int, "the index of a message")
    document, own = conversation.document, FORMATS.get(conversation.document.fmt)
    if own is None:
        raise InputError(f"pins by index need one message an item, which {document.fmt} does not have")
    length = len(messages.get(own.api.messages, ()) if isinstance(messages, Mapping) else messages)
    wrong = [pin for pin in pins if not 0 <= pin < length]
    if wrong:
        raise InputError(f"no message {wrong[0]} to pin: there are {length}")
    if conversation.library is not None:
        return _pinned_units(pins, conversation)
    if not own.item_is_message:
        raise InputError(f"pins by index need one message an item, which {document.fmt} does not have")
    offset = len(document.messages) - length
    return frozenset(pin + offset for pin in pins)


def _pinned_units(pins: Sequence[int], conversation: Given[Any]) -> frozenset[int]:
    """Where the messages of the pinned items stand in the history."""
    places: set[int] = set()
    item, place = 0, 0
    for unit in conversation.units:
        if any(item <= pin < item + len(unit.items) for pin in pins):
            places.update(range(place, place + len(unit.messages)))
        item, place = item + len(unit.items), place + len(unit.messages)
    return frozenset(places)
