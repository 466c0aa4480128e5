"""Check the arguments of public functions. An error says which argument is wrong, what it must be, and what it was.

Only for the Python interface. Input from a wire or a file is checked where it is read.
"""

from collections.abc import Iterable, Mapping
from types import NoneType

from everlong.errors import InputError

__all__ = ["expect", "expect_function", "expect_list", "expect_number", "expect_text"]

LONGEST_SHOWN = 40  # characters of a value that an error repeats
NAMES: Mapping[type, str] = {NoneType: "None", list: "a list", dict: "a dict", tuple: "a tuple", bytes: "bytes"}


def expect(name: str, value: object, kind: type | tuple[type, ...], what: str) -> None:
    """Raise InputError unless the value is an instance of `kind`.

    Example: expect("threads", "chat.db", Store, "a store") -> "threads must be a store, not the string 'chat.db'"
    """
    if not isinstance(value, kind):
        raise InputError(f"{name} must be {what}, not {_described(value)}")


def expect_text(name: str, value: object, what: str = "a string") -> None:
    """Raise InputError unless the value is a string."""
    expect(name, value, str, what)


def expect_number(name: str, value: object, what: str, *, least: int = 0) -> None:
    """Raise InputError unless the value is an int of at least `least`. True and 5.0 do not count."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be {what}, an integer of at least {least}, not {_described(value)}")


def expect_list(name: str, value: object, what: str) -> None:
    """Raise InputError unless the value is a list or another iterable. A string, bytes or a single dict is not."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise InputError(f"{name} must be {what}, not {_described(value)}")


def expect_function(name: str, value: object, what: str) -> None:
    """Raise InputError unless the value is a function or another object to call. A class is not."""
    if not callable(value) or isinstance(value, type):
        raise InputError(f"{name} must be {what}, not {_described(value)}")


def _described(value: object) -> str:
    """Return a value as error messages show it.

    Example: "hello" -> "the string 'hello'"; 5 -> "5"; {"a": 1} -> "a dict"
    """
    if isinstance(value, str):
        return f"the string {value[:LONGEST_SHOWN]!r}"
    if isinstance(value, int | float):
        return repr(value)[:LONGEST_SHOWN]
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return NAMES.get(type(value)) or f"a {type(value).__name__}"
