"""The context window, the output limit and the prices of models, each figure with its source.

The registry comes with the package; figures from servers and users take precedence. No network, no clock.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.windows.bounds import Bounds as Bounds
    from everlong.windows.entries import Entry as Entry, Prices as Prices
    from everlong.windows.providers import canonical as canonical
    from everlong.windows.registry import Registry as Registry
    from everlong.windows.resolution import Window as Window, window as window
    from everlong.windows.served import (
        Served as Served,
        listing_window as listing_window,
        llama_cpp_window as llama_cpp_window,
        ollama_running_window as ollama_running_window,
        ollama_show_window as ollama_show_window,
        row_window as row_window,
    )
    from everlong.windows.sources import SOURCES as SOURCES
    from everlong.windows.tables import (
        FILE as FILE,
        LEAST_WINDOW as LEAST_WINDOW,
        Source as Source,
        assembled as assembled,
        bundled as bundled,
        pack as pack,
        unpack as unpack,
    )
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "bounds": "Bounds",
            "entries": "Entry Prices",
            "providers": "canonical",
            "registry": "Registry",
            "resolution": "Window window",
            "served": "Served listing_window llama_cpp_window ollama_running_window ollama_show_window row_window",
            "sources": "SOURCES",
            "tables": "FILE LEAST_WINDOW Source assembled bundled pack unpack",
        },
    )
