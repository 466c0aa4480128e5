"""Taking JSON objects apart and putting them together again without losing a field.

What a format module does not model goes, as JSON text, into `extra`; the key `SHAPE` inside it holds
the hints that the module needs to write the same shape again (a string or blocks, null or absent).
"""

import json
from typing import cast

from everlong.core import Json, JsonObject, JsonText, Opaque
from everlong.errors import WireError

__all__ = ["SHAPE", "dump", "load", "opaque", "opaque_body", "pack", "unpack", "without"]

SHAPE = "$shape"


def dump(value: Json) -> JsonText:
    """Compact JSON text."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise WireError("nested too deeply", fmt="JSON") from None


def load(text: JsonText) -> Json:
    """What `dump` wrote."""
    return cast(Json, json.loads(text))


def pack(fields: JsonObject, **shape: Json) -> JsonText:
    """Fields that are carried along, with hints; "" if there is nothing to carry."""
    hints: JsonObject = {key: hint for key, hint in shape.items() if hint is not None}
    if SHAPE in fields:  # a client's own field of that name must not be taken for hints
        hints[SHAPE] = fields[SHAPE]
    carried: JsonObject = {**fields, SHAPE: hints} if hints else fields
    return dump(carried) if carried else ""


def unpack(extra: JsonText) -> tuple[JsonObject, JsonObject]:
    """The carried fields and the hints."""
    if not extra:
        return {}, {}
    fields = cast(JsonObject, json.loads(extra))
    hints = cast(JsonObject, fields.pop(SHAPE, {}))
    if SHAPE in hints:
        fields[SHAPE] = hints.pop(SHAPE)
    return fields, hints


def opaque(block: Json) -> Opaque:
    """A block that is carried along as it is."""
    kind = block.get("type") if isinstance(block, dict) else None
    return Opaque(kind if isinstance(kind, str) else type(block).__name__, dump(block))


def opaque_body(part: Opaque) -> Json:
    """The block again."""
    return load(part.body)


def without(extra: JsonText, *, hints: tuple[str, ...] = (), fields: tuple[str, ...] = ()) -> JsonText:
    """Return what is carried without these hints and fields; the same text if none of them was there."""
    if not extra:
        return extra
    carried, shape = unpack(extra)
    if not any(key in shape for key in hints) and not any(key in carried for key in fields):
        return extra
    kept = {key: value for key, value in carried.items() if key not in fields}
    return pack(kept, **{key: hint for key, hint in shape.items() if key not in hints})
