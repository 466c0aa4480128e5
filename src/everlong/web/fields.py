"""Read the fields of a JSON object from a request. A field of the wrong type raises Refused with its name."""

import json

from everlong.core import Json, JsonObject, JsonText
from everlong.errors import Refused

__all__ = ["decimal", "flag", "invalid", "number", "object_list", "optional_text", "required_text", "stored_object"]

LONGEST = 500  # characters of a name, a title, an address
LARGEST_NUMBER = 1 << 31


def invalid(message: str) -> Refused:
    """Return the refusal of a request whose content is wrong."""
    return Refused(message, status=400, kind="input")


def optional_text(body: JsonObject, name: str, *, most: int = LONGEST) -> str | None:
    """Return a text; None if it is missing or null."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise invalid(f"{name} must be a string")
    if len(value) > most:
        raise invalid(f"{name} can have at most {most:,} characters")
    return value


def required_text(body: JsonObject, name: str, *, most: int = LONGEST) -> str:
    """Return a text that is not blank."""
    value = optional_text(body, name, most=most)
    if value is None or not value.strip():
        raise invalid(f"{name} is missing")
    return value


def flag(body: JsonObject, name: str) -> bool | None:
    """Return true or false; None if it is missing."""
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise invalid(f"{name} must be true or false")


def number(body: JsonObject, name: str) -> int | None:
    """Return a whole number, at least 0; None if it is missing."""
    value = body.get(name)
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= LARGEST_NUMBER:
        raise invalid(f"{name} must be a whole number of at least 0")
    return value


def decimal(body: JsonObject, name: str, least: float, most: float) -> float | None:
    """Return a number within bounds; None if it is missing."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise invalid(f"{name} must be a number from {least:g} to {most:g}")
    return float(value)


def object_list(body: JsonObject, name: str, *, most: int) -> list[JsonObject]:
    """Return a list of objects; empty if it is missing."""
    value: Json = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > most:
        raise invalid(f"{name} must be a list of at most {most} items")
    objects = [row for row in value if isinstance(row, dict)]
    if len(objects) != len(value):
        raise invalid(f"{name} must be a list of objects")
    return objects


def stored_object(text: JsonText) -> JsonObject:
    """Return an object that was stored as text, such as a thread's metadata; an empty one if it cannot be read."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
