"""Rows of a wire format: plain dicts, and the equivalent SDK objects, in any mixture."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from everlong.core import History, Json, JsonObject, Message, Role
from everlong.errors import WireError
from everlong.wire.formats import OPENAI_CHAT, format_named
from everlong.wire.formats.format import Format
from everlong.wire.libraries.library import Library, Unit

__all__ = ["plain", "rows_library"]

#: Immutable types. Checking for these first keeps copies cheap.
SIMPLE = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Json:
    """Return a value as independent JSON: copies of dicts and lists, and what an SDK would send for its objects.

    Anything else stays unchanged, so that the format's reader can refuse it with its place.
    """
    try:
        return _plain(value)
    except RecursionError:
        raise WireError("nested too deeply", fmt=OPENAI_CHAT.name) from None


def _plain(value: Any) -> Json:
    if type(value) in SIMPLE:
        return cast(Json, value)
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    # A dict is also a Mapping, but that check alone costs more than the copy.
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 - see above
        copy = dict(value)
        for key, inner in copy.items():
            if type(inner) not in SIMPLE:
                copy[key] = _plain(inner)
        return copy
    dump = getattr(value, "model_dump", None)
    if dump is None:
        return cast(Json, value)
    # As the SDKs themselves serialize such an object.
    return cast(
        Json, dump(mode="json", by_alias=True, exclude_unset=True, exclude=getattr(value, "__api_exclude__", None))
    )


@lru_cache(maxsize=16)
def rows_library(fmt: str) -> Library[Any]:
    """Return the library for the rows of a format. Raises InputError for an unknown format."""
    form = format_named(fmt)

    def read(items: Sequence[Any]) -> list[Unit[Any]]:
        rows = [plain(item) for item in items]
        units = []
        for start, end in _groups(form, rows):
            units.append(Unit(tuple(items[start:end]), form.read_messages(rows[start:end])))
        pair = form.server.canonical.pair
        if pair is None:
            return units
        paired = pair([], [unit.messages for unit in units])
        return [Unit(unit.items, messages) for unit, messages in zip(units, paired, strict=True)]

    def write(messages: Sequence[Message]) -> list[Any]:
        return write_rows(form, messages)

    return Library(name=form.name, packages=("openai", "anthropic"), read=read, write=write)


def write_rows(form: Format, messages: Sequence[Message]) -> list[JsonObject]:
    """Return new rows for messages. System text stays in the list, because a plain list has no other place for it."""
    rows: list[JsonObject] = []
    run: list[Message] = []
    for message in (*messages, None):
        if message is not None and message.role is not Role.SYSTEM:
            run.append(message)
            continue
        rows += _written(form, tuple(run))
        run = []
        if message is not None:
            rows += form.write_message(message)
    return rows


def _written(form: Format, run: History) -> list[JsonObject]:
    if not run:
        return []
    value = form.write_history(run)[form.api.messages]
    # In Responses, a single text may replace the list.
    return [{"role": "user", "content": value}] if isinstance(value, str) else cast("list[JsonObject]", value)


def _groups(form: Format, rows: Sequence[Json]) -> list[tuple[int, int]]:
    """Return the ranges of rows that are one message each: in Responses, the assistant's items belong together."""
    of_assistant = form.server.canonical.of_assistant
    if of_assistant is None:
        return [(at, at + 1) for at in range(len(rows))]
    groups: list[tuple[int, int]] = []
    joined = False
    for at, row in enumerate(rows):
        kind, role = (row.get("type"), row.get("role")) if isinstance(row, dict) else (None, None)
        own = of_assistant(kind if isinstance(kind, str) else None, role if isinstance(role, str) else None)
        if own and joined:
            groups[-1] = (groups[-1][0], at + 1)
        else:
            groups.append((at, at + 1))
        joined = own
    return groups
