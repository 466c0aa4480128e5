"""Taking JSON objects apart and putting them together again without losing a field.

What a format module does not model goes, as JSON text, into `extra`; the key `SHAPE` inside it holds
the hints that the module needs to write the same shape again (a string or blocks, null or absent).
"""

import json
from typing import Any, cast

from everlong.core import Json, JsonObject, JsonText, Opaque
from everlong.errors import WireError

__all__ = ["SHAPE", "dump", "load", "opaque", "opaque_body", "pack", "shown", "unpack", "without"]

SHAPE = "$shape"
LONGEST_SHOWN = 40  # characters of a value in an error
#: What people call the types of JSON.
NAMES: dict[type, str] = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a number",
    list: "a list",
    type(None): "null",
}


def dump(value: Json) -> JsonText:
    """Compact JSON text. Raises WireError for what is no JSON: bytes, an object, a list in itself, endless digits."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise WireError("nested too deeply", fmt="JSON") from None
    except (TypeError, ValueError) as error:
        raise WireError(_unwritable(error), fmt="JSON", where=_unwritable_place(value)) from None


def shown(value: Any) -> str:
    """A value for an error: text if it is short, of anything else what it is. Example: ["user"] -> "a list" """
    if isinstance(value, str):
        text = value if len(value) <= LONGEST_SHOWN else f"{value[:LONGEST_SHOWN]}…"
        return repr(text.encode("utf-8", "replace").decode())
    return NAMES.get(type(value), f"a {type(value).__name__}")


def _unwritable(error: TypeError | ValueError) -> str:
    """Why JSON cannot say it, without Python's advice."""
    text = str(error)
    if "Circular" in text:
        return "a value holds itself"
    if "digits" in text:
        return "a number has too many digits"
    return "only text, numbers, true, false, null, lists and objects with text as keys can be sent"


def _unwritable_place(value: Any) -> str:
    """The way to the first value that cannot be written. Example: {"a": [b"x"]} -> "a[0]" """
    where, inside = "", True
    while inside:
        inside = False
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, member in members:
            try:
                json.dumps({key: member})
            except (TypeError, ValueError, RecursionError):
                where += f"[{key}]" if isinstance(value, list) else f".{shown(key).strip(chr(39))}"
                value, inside = member, len(where) < 2 * LONGEST_SHOWN
                break
    return where.removeprefix(".")


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
