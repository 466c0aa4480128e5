"""Check what a caller passes to a public function: one line says which argument, what it must be, and what came.

Only for arguments of the Python interface. What comes over a wire or from a file is checked where it is read.
"""

from collections.abc import Iterable, Mapping
from types import NoneType

from everlong.errors import InputError

__all__ = ["expect", "expect_list", "expect_number", "expect_text"]

LONGEST_SHOWN = 40  # characters of a value that an error repeats
NAMES: Mapping[type, str] = {NoneType: "None", list: "a list", dict: "a dict", tuple: "a tuple", bytes: "bytes"}


def expect(name: str, value: object, kind: type | tuple[type, ...], what: str) -> None:
    """Raise InputError unless the value is of that kind.

    Example: expect("threads", "chat.db", Store, "a store") -> "threads must be a store, not the text 'chat.db'"
    """
    if not isinstance(value, kind):
        raise InputError(f"{name} must be {what}, not {_described(value)}")


def expect_text(name: str, value: object, what: str = "a text") -> None:
    """Raise InputError unless the value is a text."""
    expect(name, value, str, what)


def expect_number(name: str, value: object, what: str, *, least: int = 0) -> None:
    """Raise InputError unless the value is a whole number, not below `least`. True and 5.0 are not."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be {what}, a whole number from {least} on, not {_described(value)}")


def expect_list(name: str, value: object, what: str) -> None:
    """Raise InputError unless the value has items: a text and a single dict are no lists."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise InputError(f"{name} must be {what}, not {_described(value)}")


def _described(value: object) -> str:
    """Return a value in words.

    Example: "hello" -> "the text 'hello'"; 5 -> "5"; {"a": 1} -> "a dict"
    """
    if isinstance(value, str):
        return f"the text {value[:LONGEST_SHOWN]!r}"
    if isinstance(value, int | float):
        return repr(value)[:LONGEST_SHOWN]
    return NAMES.get(type(value)) or f"a {type(value).__name__}"
