"""`open_engine`: an engine on a store in one call. A separate module, because most users of a store need no engine."""

from everlong.engine import DEFAULT_SETTINGS, Busy, Engine, Settings
from everlong.store.urls import open_store

__all__ = ["open_engine"]


def open_engine(url: str, *, settings: Settings = DEFAULT_SETTINGS, busy: Busy = "wait") -> Engine:
    """Open a store and return an engine on it. Close the engine, or use it in a `with` statement.

    - `url`: the store: a SQLite file, or a URL that `open_store` accepts.
    - `settings`: the settings for all threads.
    - `busy`: what a second turn of a thread does while the first is running: "wait", or "refuse" with ThreadBusy.

    Example: open_engine("chat.db")
    """
    return Engine(open_store(url), settings=settings, busy=busy)
