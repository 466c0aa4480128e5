"""Keeps a conversation with a language model going for ever."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everlong.engine import Engine, Fitted, count, fit
    from everlong.windows import window

__version__ = "0.1.0"

__all__ = ["Engine", "Fitted", "count", "fit", "window"]

_HOMES = {
    "Engine": "everlong.engine.engine",
    "Fitted": "everlong.engine.fitted",
    "count": "everlong.engine.fitted",
    "fit": "everlong.engine.fitted",
    "window": "everlong.windows",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used: importing everlong alone costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
