"""OpenAI Responses: the body of a request, and histories as items.

    {"instructions": "…", "input": [{"type": "reasoning", …}, {"type": "function_call", …}, …], "tools": […]}

A row of the assistant's items is one message. A reasoning item and the item after it are one unit: the provider refuses
either without the other. If an edit separated them, the reasoning is not sent, and the other item is sent without its
id, under which the provider would look for the reasoning. Each result is a separate message. `instructions` is the
leading system message.
"""

from collections.abc import Sequence
from typing import cast

from everlong.core import CallId, History, Image, Json, JsonObject, Message, Opaque, Reasoning, Role, Text
from everlong.errors import WireError
from everlong.wire.document import Document
from everlong.wire.fields import opaque, pack, shown, unpack
from everlong.wire.formats.openai import adopt, at, body_fields, settings_of, take_list, take_text, take_tools
from everlong.wire.formats.openai_responses.items import (
    CALLS,
    FUNCTION,
    NAME,
    OUTPUTS,
    CallKind,
    items_out,
    kind_of,
    message_in,
    message_out,
    parts_in,
    result_in,
    result_out,
)

__all__ = [
    "NAME",
    "read_body",
    "read_items",
    "read_message",
    "read_messages",
    "write_body",
    "write_history",
    "write_message",
]

ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}
COMPACTIONS = frozenset({"compaction", "compaction_summary", "context_compaction"})
LONGEST_CALL_ID = 64  # characters
NEEDS_NO_ID = frozenset({"message", *CALLS})

#: The places of messages that did not come as items.
INSTRUCTIONS = "instructions"
WHOLE_INPUT = "input"
#: The place of an item that replaces earlier messages and that only the provider can read.
COMPACTION_ITEM = "compaction"


# --- bodies and histories ------------------------------------------------------------------------


def read_body(raw: Json) -> Document:
    """Read a request body, or a plain list of items."""
    fields = body_fields(raw, "input", NAME)
    absent = None if "input" in fields else True
    system, asked = take_text(fields, "instructions"), take_text(fields, "input")
    head = [_plain(Role.SYSTEM, system, INSTRUCTIONS)] if system else []
    if asked:
        messages: History = (_plain(Role.USER, asked, WHOLE_INPUT),)
    elif fields.get("input") in (None, ""):  # a stored prompt or an earlier response may have everything
        messages = ()
    else:
        messages = read_items(take_list(fields, "input", NAME), "input")
    return Document(
        fmt=NAME,
        messages=(*head, *messages),
        tools=take_tools(fields),
        model=take_text(fields, "model"),
        extra=pack(fields, absent=absent),
        bare=isinstance(raw, list),
    )


def write_body(document: Document) -> JsonObject:
    """Write the body of a request; for a document of another format, its model, instructions and input."""
    fields, shape = settings_of(document, NAME)
    if document.bare:
        return fields | {"input": cast(Json, _items_of(document.messages))}
    body = write_history(document.messages)
    spoken = [message for message in document.messages if _place(message) != INSTRUCTIONS]
    if not spoken and ("input" in fields or shape.get("absent")):
        del body["input"]
    elif len(spoken) == 1 and _place(spoken[0]) == WHOLE_INPUT:
        body["input"] = spoken[0].text
    return fields | body


def write_history(messages: Sequence[Message]) -> JsonObject:
    """Write a history of any format. The leading system text of other formats becomes the instructions."""
    head = 0
    if messages and _place(messages[0]) == INSTRUCTIONS:
        head = 1
    else:
        while head < len(messages) and messages[head].role is Role.SYSTEM and messages[head].origin != NAME:
            head += 1
    system = "\n\n".join(message.text for message in messages[:head] if message.text)
    items = cast(Json, _items_of(messages[head:]))
    return {"instructions": system, "input": items} if system else {"input": items}


def _items_of(messages: Sequence[Message]) -> list[JsonObject]:
    """Write the items of a history. A result from another format is written for the kind of its call."""
    kinds: dict[CallId, CallKind] = {}
    items: list[JsonObject] = []
    for message in messages:
        own = message.origin == NAME
        if own:
            kinds |= {call.id: kind_of(call) for call in message.calls}
        items += write_message(message) if own or message.role is not Role.TOOL else _answers_out(message, kinds)
    return items


# --- messages ------------------------------------------------------------------------------------


def read_message(raw: Json, where: str = "") -> Message:
    """Read one item as a message."""
    return read_items((raw,), where)[0]


def read_messages(items: Sequence[Json]) -> History:
    """Read the messages in the items of a body."""
    return read_items(items, "input")


def read_items(items: Sequence[Json], where: str = "") -> History:
    """Read the messages in a list of items."""
    messages: list[Message] = []
    row: list[JsonObject] = []
    for index, raw in enumerate(items):
        item = _checked(raw, f"{where}[{index}]")
        role = _role(item, f"{where}[{index}]")
        alone = item.get("type") in COMPACTIONS
        if row and (alone or role is not Role.ASSISTANT):
            messages.append(_row_in(row))
            row = []
        if role is Role.TOOL:
            messages.append(Message(role, (result_in(item),), origin=NAME))
        elif alone:  # only the provider can read it, and it replaces much of the history: keep it as system text
            messages.append(Message(Role.SYSTEM, (opaque(item),), origin=NAME, extra=pack({}, place=COMPACTION_ITEM)))
        elif role is Role.ASSISTANT:
            row.append(item)
        else:
            messages.append(message_in(item, role))
    return tuple([*messages, _row_in(row)] if row else messages)


def write_message(message: Message) -> list[JsonObject]:
    """Write the items of a message; none if all of it belongs to another format."""
    if message.role is Role.TOOL:
        return _answers_out(message, {})
    if message.origin != NAME:
        message = adopt(message, LONGEST_CALL_ID)
        message = message.with_parts(tuple(part for part in message.parts if not isinstance(part, Reasoning)))
        if not message.parts:
            return []
    if message.role is not Role.ASSISTANT:
        return items_out(message.parts) if _place(message) == COMPACTION_ITEM else [message_out(message)]
    units = cast("list[list[str]]", unpack(message.extra)[1].get("units", []))
    return _whole_units(items_out(message.parts), units)


def _answers_out(message: Message, kinds: dict[CallId, CallKind]) -> list[JsonObject]:
    known = message if message.origin == NAME else adopt(message, LONGEST_CALL_ID)
    items = [result_out(result, kinds.get(result.call, FUNCTION)) for result in known.results]
    beside = tuple(part for part in known.parts if isinstance(part, Text | Image | Opaque))
    return [*items, message_out(Message(Role.USER, beside))] if beside else items


def _plain(role: Role, text: str, place: str) -> Message:
    return Message(role, (Text(text),), origin=NAME, extra=pack({}, place=place))


def _place(message: Message) -> Json:
    return unpack(message.extra)[1].get("place") if message.origin == NAME else None


def _checked(raw: Json, where: str) -> JsonObject:
    if not isinstance(raw, dict):
        raise WireError(f"an item must be an object, not {type(raw).__name__}", fmt=NAME, where=where)
    kind = raw.get("type")
    if kind is not None and not isinstance(kind, str):
        raise WireError(f"a type must be a string, not {type(kind).__name__}", fmt=NAME, where=at(where, "type"))
    if kind is None and "role" not in raw and not isinstance(raw.get("id"), str):
        raise WireError("an item needs a type, a role, or the id of another item", fmt=NAME, where=where)
    return raw


def _role(item: JsonObject, where: str) -> Role:
    kind, written = item.get("type"), item.get("role")
    if kind in OUTPUTS:
        return Role.TOOL
    if kind != "message" and (kind is not None or "role" not in item):
        return Role.ASSISTANT
    role = ROLES.get(written) if isinstance(written, str) else None
    if role is None:
        raise WireError(f"unknown role {shown(written)}", fmt=NAME, where=at(where, "role"))
    return role


# --- reasoning and the item it led to --------------------------------------------------------------


def _row_in(row: list[JsonObject]) -> Message:
    """Return the assistant's items as one message, with the hint which reasoning led to which item."""
    parts = tuple(part for item in row for part in parts_in(item))
    return Message(Role.ASSISTANT, parts, origin=NAME, extra=pack({}, units=cast(Json, _units(row)) or None))


def _units(items: Sequence[JsonObject]) -> list[list[str]]:
    """Return each reasoning with an id, and the item it led to, last first."""
    units = []
    led_to: JsonObject | None = None
    for item in reversed(items):
        if item.get("type") != "reasoning":
            led_to = item
        elif isinstance(item.get("id"), str) and item["id"] and led_to is not None:
            units.append([_identity(item), _identity(led_to)])
    return units


def _identity(item: JsonObject) -> str:
    """Return what identifies an item: its id, the id of its call, or its type."""
    names = (item.get("id"), item.get("call_id"), item.get("type"))
    return next((name for name in names if isinstance(name, str) and name), "message")


def _whole_units(items: list[JsonObject], units: list[list[str]]) -> list[JsonObject]:
    """Return the items without incomplete units.

    Example: reasoning r, call c, units [[r, c]] -> both;  r alone -> nothing;  c alone -> c without its id
    """
    whole = _units(items)
    if whole == units:
        return items
    parted = [unit for unit in units if unit not in whole]
    idle, bereft = {reasoning for reasoning, _ in parted}, {item for _, item in parted}
    out = []
    for item in items:
        if item.get("type") == "reasoning":
            if _identity(item) not in idle:
                out.append(item)
        elif _identity(item) not in bereft:
            out.append(item)
        elif (item.get("type") or "message") in NEEDS_NO_ID:
            out.append({key: value for key, value in item.items() if key != "id"})
    return out
