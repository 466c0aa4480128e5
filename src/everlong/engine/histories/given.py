"""What a caller gives as a conversation: a whole request body, or a list of messages of any kind.

A list is read once; of a list that grows from call to call only what is new is read. What was not changed goes back to
the caller as the very object that it gave.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from everlong.core import Json, Message, expect_list
from everlong.wire import (
    FORMATS,
    OPENAI_CHAT,
    Document,
    Format,
    Library,
    Unit,
    document_of,
    given_back,
    list_format,
    object_library,
    plain,
    rows_library,
    sent_as,
)

__all__ = ["CONVERSATION", "Given", "format_of_lists", "gained", "given", "parsed_from", "shared"]

X = TypeVar("X")
#: What `fit` and `count` expect, as their errors say it.
CONVERSATION = 'a list of messages, such as [{"role": "user", "content": "hello"}], or a whole request body'


@dataclass(frozen=True, slots=True)
class Given(Generic[X]):
    """A conversation as it was given.

    `rows` are copies of the items, where each is one message: by these a grown list is known. `library` is None for a
    body or a session, which is written as a whole.
    """

    document: Document
    rows: tuple[Json, ...] = ()
    items: tuple[X, ...] = field(default=(), repr=False)
    library: Library[X] | None = field(default=None, repr=False)
    _units: tuple[Unit[X], ...] = ()

    @property
    def units(self) -> tuple[Unit[X], ...]:
        """The items with their messages."""
        if self._units:
            return self._units
        pairs = zip(self.items, self.document.messages, strict=True)
        return tuple(Unit((item,), (message,)) for item, message in pairs)

    @property
    def fmt(self) -> str:
        """The wire format whose rules hold when it is sent."""
        return sent_as(self.document)

    def back(self, sent: Sequence[Message]) -> list[X]:
        """Return the items of what is sent: the caller's own where nothing was changed."""
        assert self.library is not None, "a whole body is not written item by item"
        return given_back(self.library, self.units, sent)


def given(messages: Sequence[X] | Mapping[str, Any], previous: Given[X] | None) -> Given[X]:
    """Read a conversation. With what was given before, only what is new in a list is read."""
    if isinstance(messages, Mapping):
        return Given(document_of(plain(messages)))
    expect_list("messages", messages, CONVERSATION)
    items = tuple(messages)
    library = object_library(items)
    if library is not None:
        units = tuple(library.read(items))
        history = tuple(message for unit in units for message in unit.messages)
        return Given(Document(fmt=library.fmt, messages=history, bare=True), (), items, library, units)
    if previous is not None and previous.rows and shared(items, previous.rows) == len(previous.rows):
        new = gained(items, len(previous.rows))
        if new is not None:
            history = (*previous.document.messages, *parsed_from(new, len(previous.rows)))
            document = replace(previous.document, messages=history, tools=())
            return Given(document, (*previous.rows, *new), items, previous.library)
    return _read_rows(items)


def _read_rows(items: tuple[X, ...]) -> Given[X]:
    rows = tuple(map(plain, items))
    document = document_of(list(rows))
    form = FORMATS.get(document.fmt)
    if form is None:
        return Given(document)
    library: Library[X] = rows_library(form.name)
    if form.item_is_message and len(document.messages) == len(items):
        return Given(document, rows if format_of_lists(document.fmt) is not None else (), items, library)
    units = tuple(library.read(items))
    history = tuple(message for unit in units for message in unit.messages)
    return Given(replace(document, messages=history), (), items, library, units)


# --- lists that grow from call to call -------------------------------------------------------------------------------


def shared(rows: Sequence[Any], known: Sequence[Json]) -> int:
    """Return how many items at the front still say what was copied."""
    for at, (row, copy) in enumerate(zip(rows, known, strict=False)):
        if row != copy and plain(row) != copy:
            return at
    return min(len(rows), len(known))


def gained(rows: Sequence[Any], start: int) -> tuple[Json, ...] | None:
    """Return copies of the items of the list from `start` on.

    None if that may be another format: plain words, with which a list begins, are the same in all of them.
    """
    new = tuple(map(plain, rows[start:]))
    return new if format_of_lists(list_format(new)) is not None else None


def format_of_lists(fmt: str) -> Format | None:
    """Return the format if a list of its messages is all there is to a conversation: system text stands in it too."""
    own = FORMATS.get(fmt)
    return own if own is not None and own.item_is_message and not own.api.system else None


def parsed_from(new: Sequence[Json], start: int) -> Iterator[Message]:
    """Return the messages of a list from item `start` on."""
    return (OPENAI_CHAT.read_message(row, f"messages[{at}]") for at, row in enumerate(new, start))
