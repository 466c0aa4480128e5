"""Take JSON objects apart and put them together again without losing a field.

What a format does not model goes into `extra`, as JSON text. The key `SHAPE` in it has the hints that the format needs
to write the same shape again (a string or blocks, null or absent).
"""

import json
from typing import Any, cast

from everlong.core import Json, JsonObject, JsonText, Opaque
from everlong.errors import WireError

__all__ = ["SHAPE", "dump", "load", "opaque", "opaque_body", "pack", "shown", "unpack", "without"]

SHAPE = "$shape"
LONGEST_SHOWN = 40  # characters of a value in an error
#: The names of JSON types in errors.
NAMES: dict[type, str] = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a number",
    list: "a list",
    type(None): "null",
}


def dump(value: Json) -> JsonText:
    """Return compact JSON text. Raises WireError for bytes, objects, circular lists and overlong numbers."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise WireError("nested too deeply", fmt="JSON") from None
    except (TypeError, ValueError) as error:
        raise WireError(_unwritable(error), fmt="JSON", where=_unwritable_place(value)) from None


def shown(value: Any) -> str:
    """Return a value as errors show it: a text, clipped, or the type of anything else.

    Example: ["user"] -> "a list"
    """
    if isinstance(value, str):
        text = value if len(value) <= LONGEST_SHOWN else f"{value[:LONGEST_SHOWN]}…"
        return repr(text.encode("utf-8", "replace").decode())
    return NAMES.get(type(value), f"a {type(value).__name__}")


def _unwritable(error: TypeError | ValueError) -> str:
    """Return why a value cannot be written as JSON, in our own words."""
    text = str(error)
    if "Circular" in text:
        return "a value contains itself"
    if "digits" in text:
        return "a number has too many digits"
    return "only text, numbers, true, false, null, lists and objects with text as keys can be sent"


def _unwritable_place(value: Any) -> str:
    """Return the path to the first value that cannot be written. Example: {"a": [b"x"]} -> "a[0]" """
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
    """Read what `dump` wrote."""
    return cast(Json, json.loads(text))


def pack(fields: JsonObject, **shape: Json) -> JsonText:
    """Return carried fields and hints as JSON; "" if there are none."""
    hints: JsonObject = {key: hint for key, hint in shape.items() if hint is not None}
    if SHAPE in fields:  # a client's own field with this name must not be mistaken for hints
        hints[SHAPE] = fields[SHAPE]
    carried: JsonObject = {**fields, SHAPE: hints} if hints else fields
    return dump(carried) if carried else ""


def unpack(extra: JsonText) -> tuple[JsonObject, JsonObject]:
    """Return the carried fields and the hints."""
    if not extra:
        return {}, {}
    fields = cast(JsonObject, json.loads(extra))
    hints = cast(JsonObject, fields.pop(SHAPE, {}))
    if SHAPE in hints:
        fields[SHAPE] = hints.pop(SHAPE)
    return fields, hints


def opaque(block: Json) -> Opaque:
    """Return a block as an opaque part, which is passed through unchanged."""
    kind = block.get("type") if isinstance(block, dict) else None
    return Opaque(kind if isinstance(kind, str) else type(block).__name__, dump(block))


def opaque_body(part: Opaque) -> Json:
    """Return the block of an opaque part."""
    return load(part.body)


def without(extra: JsonText, *, hints: tuple[str, ...] = (), fields: tuple[str, ...] = ()) -> JsonText:
    """Return `extra` without these hints and fields; the same text if it has none of them."""
    if not extra:
        return extra
    carried, shape = unpack(extra)
    if not any(key in shape for key in hints) and not any(key in carried for key in fields):
        return extra
    kept = {key: value for key, value in carried.items() if key not in fields}
    return pack(kept, **{key: hint for key, hint in shape.items() if key not in hints})
