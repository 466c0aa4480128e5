"""A client's request in parts: its raw fields, its messages one by one. Nothing is validated here.

The readers and writers of raw JSON below are also used by other parts of the gateway.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

import msgspec

from everlong.core import LARGE, Json, JsonObject, JsonText, write_json
from everlong.errors import Refused
from everlong.gateway.surfaces import Address
from everlong.wire import Api, Format

__all__ = [
    "MOST_MESSAGES",
    "ModelRequest",
    "Piece",
    "decoded",
    "encoded",
    "parse_request",
    "pieces_of_list",
    "pieces_of_object",
]

#: JSON inside other JSON, byte for byte: a view of the bytes around it, or separate bytes.
Piece: TypeAlias = bytes | msgspec.Raw

MOST_MESSAGES = 100_000  # in one request; more would block everybody, and no window is that large


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """What a client asks a model. `fields` are the raw fields of the body, `messages` the raw members of its list.

    The list itself is not copied: `fields` has a view of it.
    """

    address: Address
    fields: Mapping[str, Piece]
    messages: tuple[Piece, ...]
    model: str
    #: The original body; b"" if something in it was changed.
    original: bytes = b""
    stream: bool = False
    max_tokens: int | None = None
    #: Tokens of the answer that thinking may take.
    thinking: int = 0
    #: The window that the client asks for; 0 if it asks for none.
    window: int = 0
    tools: tuple[JsonText, ...] = ()
    #: Whether the client wants a stream to end with its usage.
    wants_usage: bool = True
    #: Whether the upstream stores a part of the conversation that is not in the request.
    partial: bool = False
    #: Whether its body is in an unknown format; then nothing else is known about it.
    foreign: bool = False

    @property
    def format(self) -> Format:
        """The wire format."""
        return self.address.surface.format

    @property
    def fmt(self) -> str:
        """The name of the wire format."""
        return self.format.name

    @property
    def body(self) -> bytes:
        """The whole request."""
        return self.original or self.as_read

    @property
    def as_read(self) -> bytes:
        """The request as it was read, with the usual names of its fields."""
        return _object_of(self.fields)

    def value(self, name: str) -> Json:
        """Return a field, decoded; None if it is missing."""
        return _value(self.fields, name)

    def with_tools(self, tools: list[Json]) -> "ModelRequest":
        """Return the request with other tools."""
        raw = encoded(tools)
        return replace(self.with_fields({"tools": raw}), tools=_tools(raw))

    def with_messages(self, messages: Sequence[Piece]) -> "ModelRequest":
        """Return the request with other messages."""
        raw = b"[" + b",".join(messages) + b"]"
        return replace(self.with_fields({self.format.api.messages: raw}), messages=tuple(messages))

    def with_fields(self, others: Mapping[str, Piece]) -> "ModelRequest":
        """Return the request with other fields; not for those that have an attribute here."""
        return replace(self, fields={**self.fields, **others}, original=b"")

    def without_fields(self, names: Iterable[str]) -> "ModelRequest":
        """Return the request without fields that name what its upstream stores; it is then the whole conversation."""
        gone = frozenset(names)
        fields = {name: raw for name, raw in self.fields.items() if name not in gone}
        partial = any(_value(fields, name) is not None for name in self.format.api.held_elsewhere)
        return replace(self, fields=fields, original=b"", partial=partial)

    def with_model(self, model: str) -> "ModelRequest":
        """Return the request for another model."""
        if self.address.surface.names_model:
            return replace(self, address=self.address.with_model(model), model=model)
        return replace(self.with_fields({"model": encoded(model)}), model=model)

    @property
    def length_field(self) -> str:
        """The field that limits the length of the reply: the one that the client used, else the format's usual one."""
        lengths = self.format.api.lengths
        return next((each for each in lengths if _inner(self.fields, each) is not None), lengths[0])

    def changed(self, values: Mapping[str, Json]) -> dict[str, bytes]:
        """Return the fields of the body with these values set; each is named "a" or "a.b"."""
        whole: JsonObject = {}
        for name, value in values.items():
            outer, *inside = name.split(".")
            before = whole.get(outer, self.value(outer)) if inside else None
            whole[outer] = _with_inner(before if isinstance(before, dict) else {}, inside, value) if inside else value
        return {name: encoded(value) for name, value in whole.items()}

    def written(self, messages: Iterable[Piece], others: Mapping[str, Piece]) -> bytes:
        """Return the body with these messages and these other fields; the rest is unchanged."""
        field, listed = self.format.api.messages, b",".join(messages)
        return _object_of({**self.fields, field: b"", **others}, {field: listed})


def parse_request(address: Address, body: bytes) -> ModelRequest:
    """Return the request that was sent to an address. Raises Refused that says what is wrong."""
    format_ = address.surface.format
    api, fields = format_.api, _fields(address, body)
    model = address.model if address.surface.names_model else _value(fields, "model")
    if not isinstance(model, str) or not model.strip():
        raise Refused("model is missing: send the name of a model", status=400, kind="invalid_body")
    if model.encode(errors="replace").decode() != model:
        raise Refused("model is not a valid name: it contains half a surrogate pair", status=400, kind="invalid_body")
    sign = address.surface.sign
    if sign and sign not in fields:
        streamed = bool(address.surface.stream)
        return ModelRequest(
            address=address, original=body, fields=fields, messages=(), model=model, stream=streamed, foreign=True
        )
    partial = any(_value(fields, name) is not None for name in api.held_elsewhere)
    options = _value(fields, "stream_options")
    asks_for_usage = isinstance(options, dict) and options.get("include_usage") is True
    return ModelRequest(
        address=address,
        original=body,
        fields=fields,
        messages=() if address.surface.prompts else _messages(format_, fields, partial=partial),
        model=model,
        stream=_is_streamed(address, fields),
        max_tokens=next((tokens for name in api.lengths if (tokens := _tokens(_inner(fields, name)))), None),
        thinking=next((tokens for name in api.thinking if (tokens := _tokens(_inner(fields, name)))), 0),
        window=_tokens(_inner(fields, api.window)),
        tools=_tools(fields.get("tools", b"null")),
        wants_usage=not api.usage_on_request or asks_for_usage,
        partial=partial,
    )


def _fields(address: Address, body: bytes) -> dict[str, Piece]:
    """The fields of a body under their usual names; a single object in place of a list is put into a list."""
    api, pieces = address.surface.format.api, pieces_of_object(body)
    if api.spellings:
        pieces = {api.spellings.get(name, name): raw for name, raw in pieces.items()}
    inside = pieces.get(api.counted_inside) if address.surface.counts else None
    if inside is not None:
        return _fields(address, bytes(inside))
    fields: dict[str, Piece] = {name: raw if name == api.messages else bytes(raw) for name, raw in pieces.items()}
    for name in api.lone:
        if name in fields and bytes(memoryview(fields[name])[:1]) == b"{":
            fields[name] = b"[" + fields[name] + b"]"
    return fields


def _is_streamed(address: Address, fields: Mapping[str, Piece]) -> bool:
    """Whether the answer is a stream: the path or a field of the body says so."""
    if address.surface.stream is not None:
        return address.surface.stream
    api: Api = address.surface.format.api
    asked = _value(fields, api.stream)
    return api.streams_unasked if asked is None else asked is True


def _tokens(value: Json) -> int:
    """A number of tokens; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _inner(fields: Mapping[str, Piece], name: str) -> Json:
    """A field or, with "a.b", a field inside another; None if it is missing.

    Example: "thinking.budget_tokens" -> 4096
    """
    outer, *inside = name.split(".")
    value = _value(fields, outer)
    for key in inside:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _with_inner(value: JsonObject, inside: Sequence[str], new: Json) -> JsonObject:
    """The object with another value in one field, or in a field inside another."""
    name, *deeper = inside
    field = value.get(name)
    return value | {name: _with_inner(field if isinstance(field, dict) else {}, deeper, new) if deeper else new}


def _value(fields: Mapping[str, Piece], name: str) -> Json:
    return decoded(fields[name]) if name in fields else None


def _messages(format_: Format, fields: Mapping[str, Piece], *, partial: bool) -> tuple[Piece, ...]:
    name, text_message = format_.api.messages, format_.server.text_message
    raw = fields.get(name)
    if format_.api.loads and raw is not None and bytes(raw) == b"null":
        raw = None
    if raw is None:
        if partial or format_.api.loads:
            return ()
        raise Refused(f"{name} is missing", status=400, kind="invalid_body")
    if text_message is not None and bytes(memoryview(raw)[:1]) == b'"':
        return (encoded(text_message(str(decoded(raw)))),)
    messages = tuple(pieces_of_list(raw, name))
    if len(messages) > MOST_MESSAGES:
        raise Refused(f"{name} has {len(messages):,} items, more than {MOST_MESSAGES:,}", status=413, kind="too_large")
    return messages


def _tools(raw: Piece) -> tuple[JsonText, ...]:
    if decoded(raw) is None:
        return ()
    return tuple(bytes(piece).decode("utf-8", "replace") for piece in pieces_of_list(raw, "tools"))


def _object_of(fields: Mapping[str, Piece], lists: Mapping[str, bytes] | None = None) -> bytes:
    """Write an object; `lists` are members of lists without their brackets."""
    parts: list[Piece] = []
    for name, raw in fields.items():
        parts += [b"," if parts else b"{", encoded(name), b":"]
        parts += [b"[", lists[name], b"]"] if lists and name in lists else [raw]
    return b"".join([*parts, b"}"])


# --- raw JSON: fast if it can be, forgiving if clients are odd --------------------------------------

#: Largest JSON in bytes for the forgiving reader, which is slower and blocks while it reads.
FORGIVING = 4 * 1024 * 1024
DEEPEST = 8  # levels that are decoded one by one
LONGEST_BLANK = 64
ESCAPE = 6  # bytes of an escaped character, such as \u00e9
CONTINUED, CONTINUATION = 0xC0, 0x80  # the bits of continuation bytes in UTF-8

_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
#: As many complete characters as possible; the first half of a surrogate pair only if the second follows.
_WHOLE_SIGNS = re.compile(rb"(?:[^\\]++|\\[^u]|" + _HIGH + _LOW + rb"|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*+", re.DOTALL)
_text = msgspec.json.Decoder(str)
_any = msgspec.json.Decoder()
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])


def decoded(data: Piece) -> Json:
    """Return the value of JSON. Raises Refused if it is not JSON.

    Lone surrogates, NaN and numbers of any size are allowed, because the upstream may accept them.
    """
    try:
        return _decoded(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if len(data) > FORGIVING:
            raise Refused(f"the body is not JSON: {error}", status=400, kind="invalid_json") from None
    try:
        return cast(Json, json.loads(bytes(data)))
    except (ValueError, RecursionError) as error:
        raise Refused(f"the body is not JSON: {error}", status=400, kind="invalid_json") from None


def _decoded(data: Piece, depth: int = 0) -> Json:
    """Return the value of JSON, decoded in limited pieces, because no other thread runs while one is decoded."""
    if len(data) <= LARGE or depth > DEEPEST:
        return cast(Json, _any.decode(data))
    match bytes(memoryview(data)[:LONGEST_BLANK]).lstrip()[:1]:
        case b"{":
            return {name: _decoded(raw, depth + 1) for name, raw in _object.decode(data).items()}
        case b"[":
            return [_decoded(raw, depth + 1) for raw in _list.decode(data)]
        case b'"':
            return "".join(_text_pieces(bytes(data).strip()))
        case _:
            return cast(Json, _any.decode(data))


def _text_pieces(raw: bytes) -> Iterator[str]:
    """Yield the text of a JSON string in pieces; no escape and no character is split."""
    start, stop = 1, len(raw) - 1
    while start < stop:
        found = _WHOLE_SIGNS.match(raw, start, min(start + LARGE, stop))
        end = found.end() if found else start
        while end < stop and raw[end] & CONTINUED == CONTINUATION:
            end -= 1
        if end <= start:  # a lone surrogate, or not JSON
            end = start + ESCAPE if raw.startswith(b"\\u", start) else stop
        piece = b'"%b"' % raw[start:end]
        try:
            yield _text.decode(piece)
        except msgspec.DecodeError:
            yield _forgiven(piece)
        start = end


def _forgiven(piece: bytes) -> str:
    try:
        return str(json.loads(piece))
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from None


def encoded(value: Json, *, large: bool = False) -> bytes:
    """Return the shortest JSON of a value; a large value is written in pieces, so that other threads can run."""
    try:
        return b"".join(write_json(value, msgspec.json.encode)) if large else msgspec.json.encode(value)
    except (UnicodeEncodeError, msgspec.EncodeError, OverflowError):
        return b"".join(write_json(value, _dumped)) if large else _dumped(value)


def _dumped(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def pieces_of_object(data: bytes) -> Mapping[str, Piece]:
    """Return the fields of an object, each still JSON, byte for byte."""
    try:
        return _object.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = decoded(data)
    if not isinstance(value, dict):
        raise Refused(f"the body must be a JSON object, not {_named(value)}", status=400, kind="invalid_body")
    return {name: encoded(field) for name, field in value.items()}


def pieces_of_list(data: Piece, name: str) -> Sequence[Piece]:
    """Return the members of a list, each still JSON, byte for byte. `name` is the field, for the error."""
    try:
        return _list.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = decoded(data)
    if not isinstance(value, list):
        raise Refused(f"{name} must be a list, not {_named(value)}", status=400, kind="invalid_body")
    return [encoded(member) for member in value]


def _named(value: Json) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
