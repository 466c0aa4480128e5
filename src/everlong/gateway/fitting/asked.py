"""Requests to the engine over HTTP: their fields, read and checked once. Every error names the field."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote

from everlong.core import Json, JsonObject, expect, expect_number, expect_text
from everlong.errors import InputError, ProviderError, Refused
from everlong.gateway.request import ModelRequest, Piece, decoded, encoded, parse_request, pieces_of_object
from everlong.gateway.surfaces import FORMATS, SURFACES, Address, Surface
from everlong.wire import Format, Usage, as_error, body_format, classify, list_format, read_usage

__all__ = ["MOST_PINS", "Asked", "checked_pin", "checked_thread", "read_asked", "read_fields"]

LONGEST_NAME = 200  # characters of a thread's name, as in a header
LONGEST_MODEL = 1_000
LONGEST_TEXT = 20_000  # characters of a pin
MOST_PINS = 64
#: The model's name for messages that come without one.
NO_MODEL = "any"
CONVERSATION = 'a list of messages, such as [{"role": "user", "content": "hello"}], or a whole request body'
FIELDS = (
    "messages",
    "model",
    "provider",
    "budget",
    "window",
    "max_tokens",
    "tools",
    "preset",
    "thread",
    "pins",
    "system",
    "format",
    "recall_tool",
    "refused",
    "usage",
)
#: Fields that need a thread: without one, nothing is remembered between calls.
OF_THREADS = ("recall_tool", "refused", "usage")
#: The path of each format's models.
USUAL: Mapping[str, Surface] = {
    name: next(
        each
        for each in SURFACES
        if each.format is format_ and not (each.cloud or each.counts or each.compacts or each.prompts)
    )
    for name, format_ in FORMATS.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One conversation, and what to do with it. `thread` is "" if nothing is remembered between calls."""

    request: ModelRequest
    #: Whether its system text was put before the messages, because the format has no other place for it.
    headed: bool = False
    model: str = ""
    provider: str = ""
    budget: int | None = None
    window: int | None = None
    max_tokens: int | None = None
    preset: str = ""
    thread: str = ""
    #: Indexes of messages, and texts of your own.
    pins: tuple[int | str, ...] = ()
    recall_tool: str = ""
    #: The outcome of the previous request in this thread.
    refused: ProviderError | None = None
    usage: Usage | None = None


def read_fields(body: bytes, known: Iterable[str]) -> Mapping[str, Piece]:
    """Return the fields of a body, each still JSON. Raises InputError for an unknown field."""
    fields, known = pieces_of_object(body), sorted(known)
    for name in fields:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"did you mean {near[0]}?" if near else f"known fields: {', '.join(known)}"
            raise InputError(f"unknown field: {name[:60]!r} ({meant})")
    return fields


def checked_thread(name: Json) -> str:
    """Return the name of a thread. Raises InputError if it is not valid."""
    expect_text("thread", name, "the name of a thread")
    text = str(name)
    if not text.strip() or len(text) > LONGEST_NAME or not text.isprintable():
        raise InputError(f"thread must be a name of at most {LONGEST_NAME} printable characters")
    return text


def read_asked(body: bytes) -> Asked:
    """Return the request in a body. Raises InputError or Refused that names the wrong field."""
    fields = read_fields(body, FIELDS)
    if "messages" not in fields:
        raise InputError(f"messages is missing: {CONVERSATION}")
    values = {name: decoded(raw) for name, raw in fields.items() if name not in ("messages", "tools", "system")}
    given = {name: value for name, value in values.items() if value is not None}
    thread = checked_thread(given["thread"]) if "thread" in given else ""
    useless = next((name for name in OF_THREADS if name in given and not thread), "")
    if useless:
        raise InputError(f"{useless} needs a thread: name one in `thread`")
    request, headed = _request(fields, _text(given, "model"), _text(given, "format"))
    return Asked(
        request=request,
        headed=headed,
        model="" if request.model == NO_MODEL else request.model,
        provider=_text(given, "provider"),
        budget=_number(given, "budget"),
        window=_number(given, "window"),
        max_tokens=_number(given, "max_tokens", least=1) or request.max_tokens,
        preset=_text(given, "preset"),
        thread=thread,
        pins=_pins(given.get("pins"), thread),
        recall_tool=_text(given, "recall_tool"),
        refused=_refusal(given.get("refused")),
        usage=_usage(given.get("usage")),
    )


# --- the conversation ------------------------------------------------------------------------------


def _request(fields: Mapping[str, Piece], model: str, fmt: str) -> tuple[ModelRequest, bool]:
    """Return the messages as a client's request in their format, and whether system text was put before them."""
    raw = bytes(fields["messages"]).strip()
    beside = {name: bytes(fields[name]) for name in ("tools",) if name in fields}
    if raw[:1] == b"{":
        if "system" in fields:
            raise InputError("a whole body has its own system text: put system there")
        value = cast(JsonObject, decoded(raw))
        format_ = _format(fmt) or _served(body_format(value).name)
        whole = {name: bytes(piece) for name, piece in pieces_of_object(raw).items()} | beside
        model = model or str(value.get("model") or "")
        return _parsed(format_, whole, model), False
    rows = decoded(raw)
    expect("messages", rows, list, CONVERSATION)
    format_ = _format(fmt) or _served(list_format(cast("list[Json]", rows)))
    return _listed(format_, raw, fields.get("system"), beside, model)


def _listed(
    format_: Format, raw: bytes, system: Piece | None, beside: dict[str, bytes], model: str
) -> tuple[ModelRequest, bool]:
    listed = {format_.api.messages: raw} | beside
    if system is None or decoded(system) is None:
        return _parsed(format_, listed, model), False
    if format_.api.system:
        return _parsed(format_, listed | {format_.api.system: bytes(system)}, model), False
    expect_text("system", decoded(system), "the system text")
    first = b'{"role":"system","content":%b}' % bytes(system)
    rest = raw[1:].lstrip()
    listed[format_.api.messages] = b"[" + first + (b"" if rest.startswith(b"]") else b",") + rest
    return _parsed(format_, listed, model), True


def _parsed(format_: Format, fields: Mapping[str, bytes], model: str) -> ModelRequest:
    expect_text("model", model, "a model's name")
    if len(model) > LONGEST_MODEL:
        raise InputError(f"a model name has at most {LONGEST_MODEL} characters")
    name, surface = model or NO_MODEL, USUAL[format_.name]
    values = (("model", quote(name, safe=":@")),) if surface.names_model else ()
    written = fields if surface.names_model else {**fields, "model": encoded(name)}
    body = b"{" + b",".join(encoded(name) + b":" + raw for name, raw in written.items()) + b"}"
    request = parse_request(Address(surface=surface, values=values), body)
    if request.partial:
        raise Refused(
            "part of this conversation is stored at its provider: send all messages", status=400, kind="partial"
        )
    return request


def _format(name: str) -> Format | None:
    return _served(name) if name else None


def _served(name: str) -> Format:
    if name not in FORMATS:
        raise InputError(f"format must be one of {', '.join(sorted(FORMATS))}, not {name[:60]!r}")
    return FORMATS[name]


# --- the other fields ------------------------------------------------------------------------------


def _text(given: Mapping[str, Json], name: str) -> str:
    value = given.get(name, "")
    expect_text(name, value)
    text = str(value)
    if len(text) > LONGEST_MODEL:
        raise InputError(f"{name} has at most {LONGEST_MODEL} characters")
    return text


def _number(given: Mapping[str, Json], name: str, *, least: int = 0) -> int | None:
    if name not in given:
        return None
    expect_number(name, given[name], "a number of tokens", least=least)
    return cast(int, given[name])


def _pins(value: Json, thread: str) -> tuple[int | str, ...]:
    if value is None:
        return ()
    expect("pins", value, list, "a list of indexes of messages, or of texts")
    pins = cast("list[Json]", value)
    for pin in pins:
        if isinstance(pin, bool) or not isinstance(pin, int | str):
            raise InputError("a pin must be the index of a message, or a text")
        if isinstance(pin, str) and not thread:
            raise InputError("pinning a text needs a thread: name one in `thread`, or pin messages by index")
        if isinstance(pin, str):
            checked_pin(pin)
    if sum(isinstance(pin, str) for pin in pins) > MOST_PINS:
        raise InputError(f"a thread has at most {MOST_PINS} pins")
    return cast("tuple[int | str, ...]", tuple(pins))


def checked_pin(text: Json) -> str:
    """Return a text to pin. Raises InputError if it is empty or too long."""
    expect_text("text", text, "the text to pin")
    pinned = str(text)
    if not pinned.strip() or len(pinned) > LONGEST_TEXT:
        raise InputError(f"a pinned text must have 1 to {LONGEST_TEXT:,} characters")
    return pinned


def _refusal(value: Json) -> ProviderError | None:
    """Read a provider's refusal: {"status": 400, "body": …}, or only its text."""
    if value is None:
        return None
    expect("refused", value, (dict, str), 'what the provider answered, such as {"status": 400, "body": {…}}')
    if isinstance(value, str):
        return as_error(classify(value))
    fields = cast(JsonObject, value)
    status = fields.get("status")
    if status is not None:
        expect_number("refused.status", status, "an HTTP status", least=100)
    said = fields.get("body", fields.get("message", ""))
    return as_error(classify(said, status=cast("int | None", status)))


def _usage(value: Json) -> Usage | None:
    """Read the usage that a provider reported, in any provider's fields or in ours: prompt, cached, output."""
    if value is None:
        return None
    expect("usage", value, dict, 'what the provider reported, such as {"prompt_tokens": 1200}')
    fields = cast(JsonObject, value)
    if "prompt" not in fields:
        usage = read_usage(fields)
        if usage is None:
            raise InputError('usage has no tokens: send the provider\'s usage, or {"prompt": 1200, "output": 80}')
        return usage
    figures = {name: fields.get(name, 0) for name in ("prompt", "cached", "cache_written", "output", "reasoning")}
    for name, figure in figures.items():
        expect_number(f"usage.{name}", figure, "a number of tokens")
    return Usage(**cast("dict[str, int]", figures))
