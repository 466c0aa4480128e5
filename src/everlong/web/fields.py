"""What a request says, read field by field: the right type, or a refusal that names the field."""

from everlong.core import Json, JsonObject
from everlong.errors import Refused

__all__ = ["flag", "needed_text", "number", "optional_text", "rows_of", "wrong"]

LONGEST = 500  # characters of a name, a title, an address


def wrong(message: str) -> Refused:
    """The refusal of a request that makes no sense."""
    return Refused(message, status=400, kind="input")


def optional_text(said: JsonObject, name: str, *, most: int = LONGEST) -> str | None:
    """A text, None if it is not there or null."""
    value = said.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong(f"{name} is a text")
    if len(value) > most:
        raise wrong(f"{name} has at most {most:,} characters")
    return value


def needed_text(said: JsonObject, name: str, *, most: int = LONGEST) -> str:
    """A text that says something."""
    value = optional_text(said, name, most=most)
    if value is None or not value.strip():
        raise wrong(f"{name} is missing")
    return value


def flag(said: JsonObject, name: str) -> bool | None:
    """True or false; None if it is not there."""
    value = said.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise wrong(f"{name} is true or false")


def number(said: JsonObject, name: str) -> int | None:
    """A whole number from 0 on; None if it is not there."""
    value = said.get(name)
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= 1 << 31:
        raise wrong(f"{name} is a whole number from 0 on")
    return value


def rows_of(said: JsonObject, name: str, *, most: int) -> list[JsonObject]:
    """A list of objects; empty if it is not there."""
    value: Json = said.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > most:
        raise wrong(f"{name} is a list of at most {most}")
    rows = [row for row in value if isinstance(row, dict)]
    if len(rows) != len(value):
        raise wrong(f"{name} is a list of objects")
    return rows
