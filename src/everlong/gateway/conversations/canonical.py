"""A client's messages in their one form: what is the same conversation looks the same, however it was written.

Clients resend everything with each request, and move cache markers, write text as a string or as a block, and
order their keys as they like. A unit is one message (in Responses: the assistant's items in a row); its digest
does not depend on any of that, and neither do the bytes that are forwarded, but for the client's own cache markers.
They depend on nothing else either: another process forwards the same bytes for the same message.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from threading import Lock
from typing import cast

import msgspec

from everlong.core import History, Json, JsonObject
from everlong.errors import Refused, WireError
from everlong.gateway.raw_json import Piece, decoded, encoded
from everlong.wire import ANTHROPIC, COMPACTIONS, FORMATS, OPENAI_CHAT, OPENAI_RESPONSES, OUTPUTS

__all__ = ["UNREADABLE", "Restore", "Unit", "Units", "grouped", "head_digest", "in_one_form", "rolled", "unit_of"]

#: The kind of refusal for a message that is none we know.
UNREADABLE = "unreadable_message"
MARKERS = frozenset({"cache_control"})
#: Fields that say nothing of what was said: streams leave them behind, servers name things with them.
NOISE = {
    "openai-chat": frozenset({"index"}),
    "anthropic": frozenset(),
    "openai-responses": frozenset({"id", "status"}),
}
ROOM = 32 * 1024 * 1024  # bytes of messages that are remembered in their one form
DIGEST = 16  # bytes


@dataclass(frozen=True, slots=True)
class Unit:
    """One message as the engine takes it and as it is forwarded; `sent` bears the client's cache markers."""

    digest: bytes
    messages: History
    plain: bytes
    sent: bytes


#: Puts back what a client dropped from the messages of a unit.
Restore = Callable[[list[JsonObject]], list[JsonObject]]


class Units:
    """Units of raw messages. What was seen before is not read again."""

    def __init__(self, room: int = ROOM) -> None:
        self._known: OrderedDict[bytes, Unit] = OrderedDict()
        self._room = room
        self._held = 0
        self._mine = Lock()
        #: How many were read so far: what was known before was not.
        self.read = 0

    def of(self, fmt: str, scope: str, raws: Sequence[Sequence[Piece]], restore: Restore | None = None) -> list[Unit]:
        """The units of messages in their groups. Raises Refused naming the one that is no message."""
        start = sha256(f"{fmt}/{scope}/".encode())
        units = []
        for at, raw in enumerate(raws):
            key = start.copy()
            for piece in raw:
                key.update(piece)
            units.append(self._unit(fmt, key.digest(), raw, at, restore))
        return units

    def _unit(self, fmt: str, key: bytes, raw: Sequence[Piece], at: int, restore: Restore | None) -> Unit:
        with self._mine:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        try:
            unit = unit_of(fmt, [_message(fmt, one, at) for one in raw], restore)
        except WireError as error:
            raise Refused(str(error), status=400, kind=UNREADABLE) from None
        with self._mine:
            self.read += 1
            self._known[key] = unit
            self._held += _size(unit)
            while self._held > self._room and len(self._known) > 1:
                self._held -= _size(self._known.popitem(last=False)[1])
        return unit


def unit_of(fmt: str, values: Sequence[JsonObject], restore: Restore | None = None) -> Unit:
    """The unit of decoded messages."""
    if restore is not None:
        values = restore(list(values))
    marked = [in_one_form(fmt, value) for value in values]
    plain = [in_one_form(fmt, cast(JsonObject, _without(value, MARKERS))) for value in marked]
    said = [_without(_named(fmt, value), NOISE[fmt]) for value in plain]
    digest = _hashed(said)
    written = _joined(plain)
    return Unit(digest, _parsed(fmt, plain), written, written if marked == plain else _joined(marked))


def head_digest(leading: Sequence[Unit], field: Json = None) -> bytes:
    """The digest of system text: of the messages in front, and of the field that has its own."""
    blocks = _without(_as_blocks(field), MARKERS)
    return _hashed([[unit.digest.hex() for unit in leading], blocks])


def rolled(units: Sequence[Unit], start: bytes = b"") -> list[bytes]:
    """A digest for each prefix: equal for k units exactly if all k are the same.

    Example: rolled([a, b])[0] == rolled([a, c])[0], rolled([a, b])[1] != rolled([a, c])[1]
    """
    digests = []
    for unit in units:
        start = blake2b(start + unit.digest, digest_size=DIGEST).digest()
        digests.append(start)
    return digests


class _Item(msgspec.Struct):
    type: str | None = None
    role: str | None = None


_item = msgspec.json.Decoder(_Item)
_COMPACTIONS = COMPACTIONS


def grouped(fmt: str, raws: Sequence[Piece]) -> list[tuple[Piece, ...]]:
    """Raw messages in the groups that are one message each: the assistant's items of Responses belong together."""
    if fmt != OPENAI_RESPONSES.name:
        return [(raw,) for raw in raws]
    groups: list[tuple[Piece, ...]] = []
    row: list[Piece] = []
    for raw in raws:
        if _of_assistant(raw):
            row.append(raw)
            continue
        if row:
            groups.append(tuple(row))
            row = []
        groups.append((raw,))
    return [*groups, tuple(row)] if row else groups


def _of_assistant(raw: Piece) -> bool:
    try:
        item = _item.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    if item.type in OUTPUTS or item.type in _COMPACTIONS:
        return False
    return item.role == "assistant" or (item.role is None and item.type != "message")


def _message(fmt: str, raw: Piece, at: int) -> JsonObject:
    value = decoded(raw)
    if not isinstance(value, dict):
        raise WireError("a message is an object", fmt=fmt, where=f"[{at}]")
    return value


def _parsed(fmt: str, values: Sequence[JsonObject]) -> History:
    return FORMATS[fmt].read_messages(values)


def in_one_form(fmt: str, value: JsonObject) -> JsonObject:
    """A message as it is forwarded, its fields in one order.

    Text is a block for Anthropic, where markers need one, and for Responses, whose own clients write it so; in Chat
    it is a string, which old servers want.
    Example: {"role": "user", "content": "a"} and {"content": [{"type": "text", "text": "a"}], "role": "user"} are one.
    """
    content = value.get("content")
    if fmt == ANTHROPIC.name:
        value = value | {"content": _as_blocks(content)} if "content" in value else value
    elif fmt == OPENAI_CHAT.name:
        text = _lone_text(content)
        value = value if text is None else value | {"content": text}
        value = value | {"tool_calls": _unnumbered(value["tool_calls"])} if "tool_calls" in value else value
    elif isinstance(content, str) and content and value.get("role") in ("user", "system", "developer"):
        value = value | {"content": [{"type": "input_text", "text": content}]}
    return cast(JsonObject, _sorted(value))


def _unnumbered(calls: Json) -> Json:
    """Calls without the numbers that streams give them."""
    if not isinstance(calls, list):
        return calls
    return [_without_number(call) if isinstance(call, dict) else call for call in calls]


def _without_number(call: JsonObject) -> JsonObject:
    return {name: field for name, field in call.items() if name != "index"}


def _sorted(value: Json) -> Json:
    """Fields in the order of their names; what a tool was told stays in the model's own."""
    if isinstance(value, list):
        return [_sorted(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {name: value[name] if name == "input" else _sorted(value[name]) for name in sorted(value)}


def _as_blocks(content: Json) -> Json:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else content
    if not isinstance(content, list):
        return content
    blocks = [_result_in_blocks(block) for block in content]
    return content if all(new is old for new, old in zip(blocks, content, strict=True)) else blocks


def _result_in_blocks(block: Json) -> Json:
    if not isinstance(block, dict) or block.get("type") != "tool_result":
        return block
    inner = block.get("content")
    blocks = _as_blocks(inner) if isinstance(inner, str) else inner
    return block if blocks is inner else block | {"content": blocks}


def _lone_text(content: Json) -> str | None:
    """The text of a content that is one plain block of it; a marker on it does not count."""
    block = content[0] if isinstance(content, list) and len(content) == 1 else None
    if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
        return None
    return cast(str, block["text"]) if block.keys() <= {"type", "text"} else None


def _named(fmt: str, value: JsonObject) -> JsonObject:
    """As it is compared: what may be left out is left out, and text is a string wherever it is nothing but text."""
    said: JsonObject = {name: field for name, field in value.items() if field not in (None, "", [])}
    if fmt == OPENAI_RESPONSES.name:
        said = said if "type" in said or "role" not in said else said | {"type": "message"}
        content = said.get("content")
        block = content[0] if isinstance(content, list) and len(content) == 1 else None
        if isinstance(block, dict) and block.get("type") in ("input_text", "output_text"):
            said = said | {"content": block.get("text")}
    return said


def _without(value: Json, names: frozenset[str]) -> Json:
    """Without fields of these names at the places of the format's own: blocks and calls, not what tools were told."""
    if isinstance(value, list):
        members = [_without(member, names) for member in value]
        return value if all(new is old for new, old in zip(members, value, strict=True)) else members
    if not isinstance(value, dict):
        return value
    fields = {name: field if name in TOLD else _without(field, names) for name, field in value.items()}
    kept = {name: field for name, field in fields.items() if name not in names}
    unchanged = len(kept) == len(value) and all(field is value[name] for name, field in kept.items())
    return value if unchanged else kept


#: Fields whose contents are a tool's or a user's own.
TOLD = frozenset({"input", "arguments", "function", "source", "image_url"})


def _hashed(value: Json) -> bytes:
    return blake2b(_ordered(value), digest_size=DIGEST).digest()


def _ordered(value: Json) -> bytes:
    try:
        return msgspec.json.encode(value, order="deterministic")
    except (UnicodeEncodeError, msgspec.EncodeError, OverflowError):
        return json.dumps(value, sort_keys=True).encode()


def _joined(values: Sequence[JsonObject]) -> bytes:
    return b",".join(encoded(value) for value in values)


def _size(unit: Unit) -> int:
    """Bytes that it takes, roughly: the JSON once or twice, and what was read from it."""
    return 2 * len(unit.plain) + (0 if unit.sent is unit.plain else len(unit.sent)) + 500
