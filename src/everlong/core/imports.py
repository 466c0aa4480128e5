"""Functions that a user names in a setting or an option, as `module:function`."""

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from everlong.errors import InputError

__all__ = ["function_named"]


def function_named(name: str, setting: str = "") -> Callable[..., Any]:
    """Return the function that `module:function` names. Modules in the current folder count too.

    Raises InputError if there is none; the error begins with the name of the setting.
    Example: "json:loads" -> json.loads
    """
    said = f"{setting}: {name}" if setting else name
    module, _, function = name.partition(":")
    if os.getcwd() not in sys.path:  # noqa: PTH109 - sys.path holds strings
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        value = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{said}: {error}") from error
    if not callable(value):
        raise InputError(f"{said} is not a function")
    return value  # type: ignore[no-any-return]
