"""Functions and other values that a user names in a setting or an option, as `module:name`."""

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from everlong.core.suggestions import did_you_mean
from everlong.errors import InputError

__all__ = ["function_named", "value_named"]

#: What a module of the user's own commonly raises when it is imported.
FAILURES = (ArithmeticError, AttributeError, LookupError, NameError, OSError, RuntimeError, SyntaxError, TypeError)


def value_named(name: str, setting: str = "") -> Any:
    """Return the value that `module:name` names. Modules in the current folder count too.

    It runs the module's code: call it only for a name that the user of the program gave. Raises InputError if there is
    none; the error begins with the name of the setting. Example: "math:pi" -> 3.14159…
    """
    origin = f"{setting}: {name}" if setting else name
    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:  # noqa: PTH109 - sys.path holds strings
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        found = importlib.import_module(module)
    except (ImportError, ValueError) as error:
        raise InputError(f"{origin}: {error}") from error
    except FAILURES as error:
        raise InputError(f"{origin}: {module} cannot be imported: {type(error).__name__}: {error}") from error
    try:
        return getattr(found, attribute)
    except AttributeError:
        meant = did_you_mean(attribute, vars(found))
        raise InputError(f"{origin}: module {module!r} has no attribute {attribute!r}{meant}") from None


def function_named(name: str, setting: str = "") -> Callable[..., Any]:
    """Return the function that `module:function` names. Modules in the current folder count too.

    Raises InputError if there is none; the error begins with the name of the setting.
    Example: "json:loads" -> json.loads
    """
    value = value_named(name, setting)
    if not callable(value):
        raise InputError(f"{setting}: {name} is not a function" if setting else f"{name} is not a function")
    return value  # type: ignore[no-any-return]
