"""What a caller gives as a conversation: a whole request body, or a list of messages of any kind.

If a list grows from call to call, only the new messages are read. Unchanged messages go back to the caller as the same
objects.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from everlong.core import Json, Message, expect_list, nearest
from everlong.errors import InputError, WireError
from everlong.wire import (
    FORMATS,
    GEMINI,
    OLLAMA,
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

__all__ = ["CONVERSATION", "Given", "format_of_lists", "gained", "given", "parsed_from", "read_conversation", "shared"]

X = TypeVar("X")
#: What `fit` and `count` expect, for their error texts.
CONVERSATION = 'a list of messages, such as [{"role": "user", "content": "hello"}], or a whole request body'
#: Roles whose messages say nothing without content. An assistant's may consist of calls.
SPEAKING = ("user", "system", "developer")
#: Where a message says what it says, by format; in any other format, content.
CONTENT = {GEMINI.name: ("parts",), OLLAMA.name: ("content", "images")}
MOST_KEYS, LONGEST_KEY = 6, 40  # keys of a message that an error shows, and characters of each


@dataclass(frozen=True, slots=True)
class Given(Generic[X]):
    """A conversation as it was given.

    `rows` are copies of the items if each item is one message; they show whether a later list extends this one.
    `library` is None for a body or a session, which is written as a whole.
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
        """The wire format whose rules apply when it is sent."""
        return sent_as(self.document)

    def back(self, sent: Sequence[Message]) -> list[X]:
        """Return the items to send: the caller's own objects where nothing was changed."""
        assert self.library is not None, "a whole body is not written item by item"
        return given_back(self.library, self.units, sent)


def given(messages: Sequence[X] | Mapping[str, Any], previous: Given[X] | None) -> Given[X]:
    """Read a conversation. If it extends the `previous` one, only the new items are read."""
    if isinstance(messages, Mapping):
        return Given(read_conversation(plain(messages)))
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


def read_conversation(value: Json) -> Document:
    """Read a decoded request body or list. Raises InputError for a message without content, which would disappear."""
    try:
        document = document_of(value)
    except WireError as error:
        _expect_content_in(value, error.fmt)  # a clearer error, if this is the reason
        raise
    _expect_content_in(value, document.fmt)
    return document


def _expect_content_in(value: Json, fmt: str) -> None:
    form = FORMATS.get(fmt)
    if form is not None:
        rows = value.get(form.api.messages) if isinstance(value, dict) else value
        _expect_content(rows if isinstance(rows, list) else (), form)


def _expect_content(rows: Sequence[Json], form: Format, start: int = 0) -> None:
    """Raise InputError for a message whose content is missing, perhaps because its key is misspelt.

    `start` is the index of the first one in the list. Content may be empty or null.
    """
    keys = CONTENT.get(form.name, ("content",))
    for at, row in enumerate(rows, start):
        if isinstance(row, dict) and row.get("role") in SPEAKING and not any(key in row for key in keys):
            given = [str(key)[:LONGEST_KEY] for key in row][:MOST_KEYS]
            meant = nearest(keys[0], given)
            hint = f"did you mean {keys[0]!r} for {meant!r}?" if meant else f"add {keys[0]!r}"
            what = f"{form.api.messages}[{at}] has no {keys[0]}, only {', '.join(map(repr, given))}"
            raise InputError(f"{what}; {hint}") from None


def _read_rows(items: tuple[X, ...]) -> Given[X]:
    rows = tuple(map(plain, items))
    document = read_conversation(list(rows))
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
    """Return how many items at the beginning are unchanged."""
    for at, (row, copy) in enumerate(zip(rows, known, strict=False)):
        if row != copy and plain(row) != copy:
            return at
    return min(len(rows), len(known))


def gained(rows: Sequence[Any], start: int) -> tuple[Json, ...] | None:
    """Return copies of the items of the list from `start` on.

    None if they may be in another format: a list can begin with plain text messages, which are the same in all formats.
    """
    new = tuple(map(plain, rows[start:]))
    return new if format_of_lists(list_format(new)) is not None else None


def format_of_lists(fmt: str) -> Format | None:
    """Return the format if a list of its messages is a whole conversation, system text included."""
    own = FORMATS.get(fmt)
    return own if own is not None and own.item_is_message and not own.api.system else None


def parsed_from(new: Sequence[Json], start: int) -> Iterator[Message]:
    """Return the messages of the new items; `start` is the index of the first one in the list."""
    _expect_content(new, OPENAI_CHAT, start)
    return (OPENAI_CHAT.read_message(row, f"messages[{at}]") for at, row in enumerate(new, start))
