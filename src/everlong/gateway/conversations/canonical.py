"""A client's messages in a canonical form: the same conversation looks the same, however a client writes it.

Clients resend everything with each request. They move cache marks, write text as a string or as a block, and order
fields as they like. A unit is one message (in Responses: consecutive items of the assistant). Its digest does not
depend on any of that, and neither do the forwarded bytes, apart from the client's own cache marks. They depend on
nothing else either: another process forwards the same bytes for the same message.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from threading import Lock
from typing import cast

import msgspec

from everlong.core import LARGE, History, Json, JsonObject, Message, write_json
from everlong.errors import Refused, WireError
from everlong.gateway.request import ModelRequest, Piece, decoded, encoded
from everlong.wire import Canonical, Format

__all__ = [
    "UNREADABLE",
    "Restore",
    "Unit",
    "Units",
    "grouped",
    "head_digest",
    "head_in_field",
    "in_one_form",
    "prefix_digests",
    "unit_of",
]

#: The kind of refusal for a message that cannot be read.
UNREADABLE = "unreadable_message"
#: Cache marks of clients, in any format: routers understand them in Chat Completions too.
MARKERS = frozenset({"cache_control"})
NOTHING: frozenset[str] = frozenset()
ESCAPED = b"\\u00"  # the beginning of every escape for a letter of these names
#: Fields whose contents belong to a tool or a user.
CONTENTS = frozenset({"input", "arguments", "function", "source", "image_url", "args", "response"})
#: Those of them whose order is kept as the model or a tool wrote them.
AS_WRITTEN = frozenset({"input", "args", "response"})
CAPACITY = 32 * 1024 * 1024  # bytes of messages whose canonical form is remembered
DIGEST = 16  # bytes

#: Puts back what a client dropped from the messages of a unit.
Restore = Callable[[list[JsonObject]], list[JsonObject]]


@dataclass(frozen=True, slots=True)
class Unit:
    """One message as the engine reads it and as it is forwarded; `sent` has the client's cache marks."""

    digest: bytes
    messages: History
    plain: bytes
    sent: bytes


class Units:
    """Units of raw messages. A message that was seen before is not read again."""

    def __init__(self, room: int = CAPACITY) -> None:
        self._known: OrderedDict[bytes, Unit] = OrderedDict()
        self._room = room
        self._held = 0
        self._mine = Lock()
        #: How many messages have been read so far.
        self.read = 0

    def of(
        self, format_: Format, scope: str, groups: Sequence[Sequence[Piece]], restore: Restore | None = None
    ) -> list[Unit]:
        """Return the units of grouped messages. Raises Refused that names the one that is not a message."""
        start = sha256(f"{format_.name}/{scope}/".encode())
        units = []
        for at, group in enumerate(groups):
            key = start.copy()
            for piece in group:
                key.update(piece)
            units.append(self._unit(format_, key.digest(), group, at, restore))
        return units

    def _unit(self, format_: Format, key: bytes, group: Sequence[Piece], at: int, restore: Restore | None) -> Unit:
        with self._mine:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        try:
            values = [_message(format_, raw, at) for raw in group]
            raw = b"".join(group)
            unit = unit_of(format_, values, restore, large=len(raw) > LARGE, raw=raw)
        except WireError as error:
            raise Refused(str(error), status=400, kind=UNREADABLE) from None
        with self._mine:
            self.read += 1
            self._known[key] = unit
            self._held += _size(unit)
            while self._held > self._room and len(self._known) > 1:
                self._held -= _size(self._known.popitem(last=False)[1])
        return unit


class _Item(msgspec.Struct):
    type: str | None = None
    role: str | None = None


_item = msgspec.json.Decoder(_Item)


def grouped(format_: Format, raws: Sequence[Piece]) -> list[tuple[Piece, ...]]:
    """Return raw messages in groups of one unit each: in Responses, consecutive items of the assistant are one unit."""
    of_assistant = format_.server.canonical.of_assistant
    if of_assistant is None:
        return [(raw,) for raw in raws]
    groups: list[tuple[Piece, ...]] = []
    row: list[Piece] = []
    for raw in raws:
        if _is_of_assistant(raw, of_assistant):
            row.append(raw)
            continue
        if row:
            groups.append(tuple(row))
            row = []
        groups.append((raw,))
    return [*groups, tuple(row)] if row else groups


def _is_of_assistant(raw: Piece, of_assistant: Callable[[str | None, str | None], bool]) -> bool:
    try:
        item = _item.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return of_assistant(item.type, item.role)


def unit_of(
    format_: Format,
    values: Sequence[JsonObject],
    restore: Restore | None = None,
    *,
    large: bool = False,
    raw: bytes = b"",
) -> Unit:
    """Return the unit of decoded messages; a `large` one is written in pieces.

    `raw` are the bytes that they were decoded from: fields that do not occur there need not be searched for.
    """
    canonical = format_.server.canonical
    if restore is not None:
        values = restore(list(values))
    marked = [in_one_form(format_, value) for value in values]
    plain, hidden = marked, not raw or ESCAPED in raw
    if hidden or _occurs(raw, MARKERS):
        plain = [in_one_form(format_, cast(JsonObject, _without(value, MARKERS))) for value in marked]
    noise = canonical.noise if hidden or _occurs(raw, canonical.noise) else NOTHING
    compared = [_compared(canonical, value, noise) for value in plain]
    written = _joined(plain, large=large)
    sent = written if plain is marked or marked == plain else _joined(marked, large=large)
    return Unit(_hashed(compared, large=large), format_.read_messages(plain), written, sent)


def _occurs(raw: bytes, names: frozenset[str]) -> bool:
    """Return whether one of these names occurs in the JSON; it may also be hidden there, with escapes in it."""
    return any(name.encode() in raw for name in names)


def _compared(canonical: Canonical, value: JsonObject, noise: frozenset[str]) -> Json:
    """Return a message in the form used for comparing: without empty fields and noise."""
    filled: JsonObject = {name: field for name, field in value.items() if field not in (None, "", [])}
    compared = filled if canonical.compared is None else canonical.compared(filled)
    return _without(compared, noise) if noise else compared


def in_one_form(format_: Format, value: JsonObject) -> JsonObject:
    """Return a message as it is forwarded: text in the format's canonical form, fields in one order.

    Example: {"role": "user", "content": "a"} and {"content": [{"type": "text", "text": "a"}], "role": "user"} are one.
    """
    return cast(JsonObject, _sorted(format_.server.canonical.form(value)))


def head_digest(format_: Format, leading: Sequence[Unit], system: Json = None) -> bytes:
    """Return the digest of system text: of the leading messages, and of the text in a separate field."""
    canonical = format_.server.canonical
    text = system if canonical.system is None else canonical.system(system)
    return _hashed([[unit.digest.hex() for unit in leading], _without(text, MARKERS)])


def head_in_field(request: ModelRequest, field: Json) -> tuple[Message, ...]:
    """Return the system text from the value of its separate field."""
    if field is None:
        return ()
    body: JsonObject = {request.format.api.messages: [], request.format.api.system: field}
    return request.format.read_body(body).messages


def prefix_digests(units: Sequence[Unit], start: bytes = b"") -> list[bytes]:
    """Return a digest for each prefix; two prefixes have the same digest exactly if all their units are the same.

    Example: prefix_digests([a, b])[0] == prefix_digests([a, c])[0], and the two at 1 differ
    """
    digests = []
    for unit in units:
        start = blake2b(start + unit.digest, digest_size=DIGEST).digest()
        digests.append(start)
    return digests


def _message(format_: Format, raw: Piece, at: int) -> JsonObject:
    value = decoded(raw)
    if not isinstance(value, dict):
        raise WireError("a message is an object", fmt=format_.name, where=f"[{at}]")
    return value


def _sorted(value: Json) -> Json:
    """Return fields sorted by name; the arguments of a tool stay in the model's order."""
    if isinstance(value, list):
        return [_sorted(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {name: value[name] if name in AS_WRITTEN else _sorted(value[name]) for name in sorted(value)}


def _without(value: Json, names: frozenset[str]) -> Json:
    """Remove fields with these names from blocks and calls, but not from the contents of tools."""
    if isinstance(value, list):
        members = [_without(member, names) for member in value]
        return value if all(new is old for new, old in zip(members, value, strict=True)) else members
    if not isinstance(value, dict):
        return value
    fields = {name: field if name in CONTENTS else _without(field, names) for name, field in value.items()}
    kept = {name: field for name, field in fields.items() if name not in names}
    unchanged = len(kept) == len(value) and all(field is value[name] for name, field in kept.items())
    return value if unchanged else kept


def _hashed(value: Json, *, large: bool = False) -> bytes:
    return blake2b(_ordered(value, large=large), digest_size=DIGEST).digest()


def _ordered(value: Json, *, large: bool) -> bytes:
    try:
        if large:
            return b"".join(write_json(value, msgspec.json.encode, ordered=True))
        return msgspec.json.encode(value, order="deterministic")
    except (UnicodeEncodeError, msgspec.EncodeError, OverflowError):
        if large:
            return b"".join(write_json(value, _dumped, comma=b", ", colon=b": ", ordered=True))
        return _dumped(value)


def _dumped(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _joined(values: Sequence[JsonObject], *, large: bool) -> bytes:
    return b",".join(encoded(value, large=large) for value in values)


def _size(unit: Unit) -> int:
    """Return the approximate size in memory: the JSON once or twice, and the values read from it."""
    return 2 * len(unit.plain) + (0 if unit.sent is unit.plain else len(unit.sent)) + 500
