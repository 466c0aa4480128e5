"""How large a model's window is and what it costs, each figure with its source. No network, no clock."""

from everlong.windows.entries import Entry, Prices
from everlong.windows.registry import Registry
from everlong.windows.resolution import DEFAULT_WINDOW, Source, Window, window
from everlong.windows.snapshot import bundled

__all__ = ["DEFAULT_WINDOW", "Entry", "Prices", "Registry", "Source", "Window", "bundled", "window"]
