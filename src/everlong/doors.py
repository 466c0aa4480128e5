"""Doors: what a package shows, loaded when it is first used.

A package's `__init__.py` lists its public names twice: once as imports that only type checkers read, once as a table
of the modules they come from. A whole-tree test keeps the two lists equal. Nothing else may be imported from outside.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules

from everlong.extras import EXTRA_OF, command_for

__all__ = ["open_door"]


def open_door(
    package: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package. `homes` maps a module to the names it gives.

    A module is named from the package on, or by its full name.
    Example: open_door("everlong.engine", {"settings": "Settings Summaries"})
    """
    module_of = {
        name: module if module.startswith("everlong.") else f"{package}.{module}"
        for module, names in homes.items()
        for name in names.split()
    }
    public = sorted(module_of)

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(module_of[name]), name)
        except ModuleNotFoundError as error:
            raise _named(error, name) from None
        setattr(modules[package], name, value)  # from now on an ordinary attribute
        return value

    return public, load, lambda: sorted({*vars(modules[package]), *public})


def _named(error: ModuleNotFoundError, wanted: str) -> ModuleNotFoundError:
    """Return the error with what to install, if an extra brings what is missing."""
    extra = EXTRA_OF.get((error.name or "").partition(".")[0])
    if extra is None:
        return error
    return ModuleNotFoundError(f"{wanted} needs {error.name}: {command_for(extra)}", name=error.name)
