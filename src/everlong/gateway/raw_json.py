"""JSON in and out of the gateway: fast where it can be, forgiving where clients are odd.

Half of a surrogate pair, NaN and numbers of any size are no reason to refuse what the upstream may take.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

import msgspec

from everlong.core import Json
from everlong.errors import Refused

__all__ = ["Piece", "decoded", "encoded", "pieces_of_list", "pieces_of_object"]

#: JSON inside other JSON, byte for byte: a look at the bytes it stands in, or bytes of its own.
Piece: TypeAlias = bytes | msgspec.Raw

_any = msgspec.json.Decoder()
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])


def decoded(data: Piece) -> Json:
    """What the JSON says. Raises Refused where it says nothing."""
    try:
        return cast(Json, _any.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return cast(Json, json.loads(bytes(data)))
    except (ValueError, RecursionError) as error:
        raise Refused(f"the body is not JSON: {error}", status=400, kind="invalid_json") from None


def encoded(value: Json) -> bytes:
    """The shortest JSON of it."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, msgspec.EncodeError, OverflowError):
        return json.dumps(value, separators=(",", ":")).encode()


def pieces_of_object(data: bytes) -> Mapping[str, Piece]:
    """The fields of an object, each still JSON, byte for byte."""
    try:
        return _object.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = decoded(data)
    if not isinstance(value, dict):
        raise Refused(f"the body is a JSON object, not {_named(value)}", status=400, kind="invalid_body")
    return {name: encoded(field) for name, field in value.items()}


def pieces_of_list(data: Piece, name: str) -> Sequence[Piece]:
    """The members of a list, each still JSON, byte for byte. `name` is the field, for who gets it wrong."""
    try:
        return _list.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = decoded(data)
    if not isinstance(value, list):
        raise Refused(f"{name} is a list, not {_named(value)}", status=400, kind="invalid_body")
    return [encoded(member) for member in value]


def _named(value: Json) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
