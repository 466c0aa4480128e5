"""A request's body, taken apart: its fields as they came, its messages one by one. Nothing is judged here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from everlong.core import Json, JsonText
from everlong.errors import Refused
from everlong.gateway.raw_json import Piece, decoded, encoded, pieces_of_list, pieces_of_object

__all__ = ["DIALECTS", "Dialect", "ModelRequest", "parse_request"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One wire format as clients speak it. `path` is below the base address, fields are those of the body."""

    fmt: str
    path: str
    #: The field of the messages, and the one of the system text; "" where it is a message.
    messages: str
    system: str
    #: Fields that say how long the answer may be; the first is the one that is written where none is there.
    lengths: tuple[str, ...]


DIALECTS: Mapping[str, Dialect] = {
    dialect.fmt: dialect
    for dialect in (
        Dialect(
            fmt="openai-chat",
            path="/chat/completions",
            messages="messages",
            system="",
            lengths=("max_tokens", "max_completion_tokens"),
        ),
        Dialect(
            fmt="openai-responses",
            path="/responses",
            messages="input",
            system="instructions",
            lengths=("max_output_tokens",),
        ),
        Dialect(fmt="anthropic", path="/messages", messages="messages", system="system", lengths=("max_tokens",)),
    )
}


#: Fields of a Responses request whose server holds (a part of) the conversation: what it says is not all there is.
HELD_ELSEWHERE = ("previous_response_id", "conversation", "prompt")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """What a client asks for. `fields` are the raw fields of the body, `messages` the raw members of its list.

    The list itself is not copied: in `fields` stands a look at it.
    """

    dialect: Dialect
    fields: Mapping[str, Piece]
    messages: tuple[Piece, ...]
    model: str
    #: The body as it came; b"" where something in it was changed.
    original: bytes = b""
    stream: bool = False
    max_tokens: int | None = None
    tools: tuple[JsonText, ...] = ()
    #: Whether a stream was asked to end with its usage.
    wants_usage: bool = True
    #: Whether the upstream holds a part of the conversation that is not in the request.
    partial: bool = False

    @property
    def fmt(self) -> str:
        """The wire format."""
        return self.dialect.fmt

    @property
    def body(self) -> bytes:
        """The whole request."""
        return self.original or _object_of(self.fields)

    def value(self, name: str) -> Json:
        """A field, decoded; None where there is none."""
        raw = self.fields.get(name)
        return None if raw is None else decoded(raw)

    def with_tools(self, tools: list[Json]) -> "ModelRequest":
        """The same with other tools."""
        raw = encoded(tools)
        return replace(self.with_fields({"tools": raw}), tools=_tools(raw))

    def with_messages(self, messages: Sequence[Piece]) -> "ModelRequest":
        """The same with other messages."""
        raw = b"[" + b",".join(messages) + b"]"
        return replace(self.with_fields({self.dialect.messages: raw}), messages=tuple(messages))

    def with_fields(self, others: Mapping[str, Piece]) -> "ModelRequest":
        """The same with other fields, which are not those that are kept apart here."""
        return replace(self, fields={**self.fields, **others}, original=b"")

    def with_model(self, model: str) -> "ModelRequest":
        """The same asked of a model of another name."""
        return replace(self.with_fields({"model": encoded(model)}), model=model)

    def written(self, messages: Iterable[bytes], others: Mapping[str, Piece]) -> bytes:
        """The body again with these messages and these other fields; the rest as it came."""
        listed = b",".join(messages)
        return _object_of({**self.fields, self.dialect.messages: b"", **others}, {self.dialect.messages: listed})


def parse_request(dialect: Dialect, body: bytes) -> ModelRequest:
    """The request in a body. Raises Refused, naming what is wrong with it."""
    pieces = pieces_of_object(body)
    fields: dict[str, Piece] = {name: raw if name == dialect.messages else bytes(raw) for name, raw in pieces.items()}
    model = _field(fields, "model")
    if not isinstance(model, str) or not model.strip():
        raise Refused("model is missing: the name of a model, as text", status=400, kind="invalid_body")
    partial = any(_field(fields, name) is not None for name in HELD_ELSEWHERE if dialect.messages == "input")
    length = next((_field(fields, name) for name in dialect.lengths if name in fields), None)
    options = _field(fields, "stream_options")
    asked_for = isinstance(options, dict) and options.get("include_usage") is True
    return ModelRequest(
        dialect=dialect,
        original=body,
        fields=fields,
        messages=_messages(dialect, fields, partial=partial),
        model=model,
        stream=_field(fields, "stream") is True,
        max_tokens=length if isinstance(length, int) and not isinstance(length, bool) and length > 0 else None,
        tools=_tools(fields.get("tools", b"null")),
        wants_usage=dialect.fmt != "openai-chat" or asked_for,
        partial=partial,
    )


def _field(fields: Mapping[str, Piece], name: str) -> Json:
    return decoded(fields[name]) if name in fields else None


def _object_of(fields: Mapping[str, Piece], lists: Mapping[str, bytes] | None = None) -> bytes:
    """An object; of `lists` the members are given, without their brackets."""
    parts: list[Piece] = []
    for name, raw in fields.items():
        parts += [b"," if parts else b"{", encoded(name), b":"]
        parts += [b"[", lists[name], b"]"] if lists and name in lists else [raw]
    return b"".join([*parts, b"}"])


def _messages(dialect: Dialect, fields: Mapping[str, Piece], *, partial: bool) -> tuple[Piece, ...]:
    raw = fields.get(dialect.messages)
    if raw is None:
        if partial:
            return ()
        raise Refused(f"{dialect.messages} is missing", status=400, kind="invalid_body")
    if dialect.messages == "input" and bytes(memoryview(raw)[:1]) == b'"':
        return (encoded({"role": "user", "content": decoded(raw)}),)
    return tuple(pieces_of_list(raw, dialect.messages))


def _tools(raw: Piece) -> tuple[JsonText, ...]:
    if decoded(raw) is None:
        return ()
    return tuple(bytes(piece).decode("utf-8", "replace") for piece in pieces_of_list(raw, "tools"))
