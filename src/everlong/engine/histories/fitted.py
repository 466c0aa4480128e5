"""`fit`: bring a list of messages under a budget. The same kind of messages in and out, no event loop, no store.

It is pure: the same messages and the same budget give the same bytes. With the result of an earlier call it repeats
what was sent before byte for byte and adds only what is new, until the budget is reached again. When a list grows from
call to call, only the new messages cost time.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
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
from everlong.engine.settings import DEFAULT_SETTINGS
from everlong.engine.view import View, ViewOptions, view_of
from everlong.errors import BudgetImpossible, InputError
from everlong.relevance import computed_likeness
from everlong.tokens import Counter
from everlong.windows import bundled, window
from everlong.wire import FORMATS, Document, plain, sendable, sent_as, value_of, with_messages

__all__ = ["Fitted", "fit", "fit_document"]

X = TypeVar("X")

log = logging.getLogger("everlong")


@dataclass(frozen=True, repr=False)
class Fitted(Generic[X]):
    """The result of `fit`: messages that fit into the budget.

    `tokens` counts the messages and the tool schemas, and `budget` is what they had to fit into.
    """

    document: Document
    view: View
    tokens: int
    budget: int
    #: The caller's input; None for a document that was read elsewhere.
    given: Given[X] | None = None
    #: The options of the view; None if the preset leaves the messages as they are.
    options: ViewOptions | None = None

    def __repr__(self) -> str:
        came, sent, edits = len(self.view.history), len(self.view.messages), len(self.edits)
        return (
            f"<Fitted {self.document.fmt}: {came:,} message{'s' * (came != 1)} in, {sent:,} out, "
            f"{self.tokens:,} of {self.budget:,} tokens, {edits:,} edit{'s' * (edits != 1)}>"
        )

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Every change: which message, what was done and why, tokens before and after, a reference to the original."""
        return self.view.edits

    @cached_property
    def messages(self) -> list[X]:
        """The messages to send, of the same kind as the input. An unchanged message is the same object as in the input.

        Other fields of a request body are in `body`.
        """
        if self.given is not None and self.given.library is not None:
            items = self.given.back(self.view.messages)
            if self._sendable(items):
                return items
        value = self.body
        own = FORMATS.get(self.document.fmt)
        if isinstance(value, dict):
            value = value["messages" if own is None else own.api.messages]
        if isinstance(value, str):  # the Responses format allows a single string
            value = [{"role": "user", "content": value}]
        return cast("list[X]", value)

    def _sendable(self, items: list[X]) -> bool:
        """Whether the provider accepts the items unchanged; some have to be rewritten."""
        own = FORMATS.get(self.document.fmt)
        if own is None or self.options is None or self.given is None or self.given.library is None:
            return True
        if self.given.library.name != own.name or format_of_lists(own.name) is not None:
            return True
        return not own.problems({own.api.messages: plain(items)})

    @cached_property
    def body(self) -> Any:
        """The whole request body or session, in the format of the input."""
        return value_of(self.document, sent=self.options is not None)

    def original(self, ref: str) -> bytes:
        """Return the original bytes behind an edit's reference. Raises InputError if no edit has this reference."""
        for edit in self.edits:
            if edit.ref == ref:
                original = original_in(self.view.history[edit.at], edit.part, ref)
                if original is not None:
                    return original
        raise InputError(f"no edit has the reference {ref!r}: see the references in fitted.edits")


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
    semantic: str = ...,
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
    semantic: str = ...,
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
    semantic: str = "off",
) -> Fitted[Any]:
    """Bring messages under a token budget without calling a model, and return them with a list of the edits.

    - `messages`: a list of dicts in any wire format, of OpenAI or Anthropic SDK objects, or of messages of LangChain,
      pydantic-ai and other frameworks; or a whole request body.
    - `model`: the model whose tokenizer counts, and whose context window is the default budget.
    - `budget`: the most tokens for messages and tool schemas together. Default: the model's window, less space for the
      reply.
    - `tools`: tool schemas or functions. They count against the budget.
    - `preset`: the name of a preset, or your own `Preset`.
    - `pins`: indexes of messages that must stay unchanged.
    - `previous`: the result for a shorter version of the same list. What was sent before is repeated byte for byte,
      which keeps the provider's prompt cache valid. A compaction then goes down to the target, so the next calls need
      none.
    - `semantic`: vectors that help to choose what to keep: "off", "static", a folder with a model, or
      "module:function".

    Returns a `Fitted`. Raises BudgetImpossible, with each part and its size, if what must stay is larger than the
    budget.
    """
    expect("previous", previous, (Fitted, NoneType), "the result of an earlier call of fit")
    if model and isinstance(model, str):
        _warn_if_misspelt(model)
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
        semantic=semantic,
    )


@lru_cache(maxsize=256)
def _warn_if_misspelt(model: str) -> None:
    """Log a warning, once for each name, if a model is unknown and its name is almost that of a known one."""
    meant = bundled().misspelt(model)
    if meant:
        log.warning("unknown model %r; did you mean %s?", model, meant)


def fit_document(  # noqa: PLR0913 - see fit
    document: Document,
    *,
    model: str = "",
    budget: int | None = None,
    preset: str | Preset = "auto",
    pins: frozenset[int] = frozenset(),
    previous: Fitted[Any] | None = None,
    given: Given[Any] | None = None,
    semantic: str = "off",
) -> Fitted[Any]:
    """Do what `fit` does for a document that has already been read."""
    expect_text("model", model, "a model's name")
    expect_text("semantic", semantic, "off, static, a folder with a model, or module:function")
    expect("preset", preset, (str, Preset), f"a preset or the name of one ({', '.join(PRESET_NAMES)})")
    if budget is not None:
        expect_number("budget", budget, "a number of tokens for messages and tools")
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
        # A caller that continues needs few compactions, because each one makes the provider fill its prompt cache
        # again.
        later=fixed + int((most - fixed) * share),
        preset=chosen,
        window=limit,
        fmt=sent_as(document),
        pins=pins,
        likeness=None if semantic == DEFAULT_SETTINGS.semantic else computed_likeness(semantic),
    )
    try:
        view = _view(document, options, previous, limit - schemas)
    except BudgetImpossible as error:
        aside = [("tool schemas", schemas)] if schemas else []
        raise BudgetImpossible(limit, [*error.parts, *aside]) from None
    return Fitted(with_messages(document, view.messages), view, view.tokens + schemas, limit, given, options)


def _view(document: Document, options: ViewOptions, previous: Fitted[Any] | None, widest: int) -> View:
    """Return the view within the limit. If what must stay does not fit, the margin for estimates is used too."""
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
    """Return the earlier view, unless it left out or shortened a message that is pinned now."""
    if previous is None or previous.options is None or previous.options.fmt != options.fmt:
        return None
    pinned = options.pins - previous.options.pins
    if pinned and any(edit.at in pinned and edit.action in (Action.SHORTEN, Action.DROP) for edit in previous.edits):
        return None
    if previous.options.counter is options.counter:
        return previous.view
    return replace(previous.view, tokens=options.counter.messages(previous.view.messages))


def _default_budget(model: str) -> int:
    """Return the tokens that the model's window leaves beside the reply."""
    known = window(model)
    return min(known.prompt, Budget.of(known.context, max_output=known.output).available)


def _budget_for_messages(limit: int, schemas: int, counter: Counter) -> int:
    """Return how many counted tokens messages may have so that they fit even if the count is too low."""
    most = int(limit / (1 + counter.vocabulary.spread)) - schemas
    if schemas and most <= 0:
        raise BudgetImpossible(limit, [("tool schemas", schemas)])
    return most


def _pinned(
    pins: Sequence[int], conversation: Given[Any], messages: Sequence[Any] | Mapping[str, Any]
) -> frozenset[int]:
    """Convert indexes of the caller's list into indexes of the history, which may begin with system text."""
    if not pins:
        return frozenset()
    expect_list("pins", pins, "a list of indexes into the messages")
    for pin in pins:
        expect("a pin", pin, int, "the index of a message")
    document, own = conversation.document, FORMATS.get(conversation.document.fmt)
    if own is None:
        raise InputError(f"pins are not supported for {document.fmt}: its items are not single messages")
    length = len(messages.get(own.api.messages, ()) if isinstance(messages, Mapping) else messages)
    wrong = [pin for pin in pins if not 0 <= pin < length]
    if wrong:
        raise InputError(f"there is no message {wrong[0]} to pin: messages are numbered from 0 to {length - 1}")
    if conversation.library is not None:
        return _pinned_units(pins, conversation)
    if not own.item_is_message:
        raise InputError(f"pins are not supported for {document.fmt}: its items are not single messages")
    offset = len(document.messages) - length
    return frozenset(pin + offset for pin in pins)


def _pinned_units(pins: Sequence[int], conversation: Given[Any]) -> frozenset[int]:
    """Return the positions of the pinned items' messages in the history."""
    places: set[int] = set()
    item, place = 0, 0
    for unit in conversation.units:
        if any(item <= pin < item + len(unit.items) for pin in pins):
            places.update(range(place, place + len(unit.messages)))
        item, place = item + len(unit.items), place + len(unit.messages)
    return frozenset(places)
